"""`builder port`: from a setup.py to a build.toml."""

import os
import shlex
from pathlib import Path

import click

from builder import terminal
from builder.errors import DifferenceError


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--env", "variables", metavar="NAME=VALUE", multiple=True, help="A variable for setup.py; may be repeated."
)
@click.option(
    "--compile-commands",
    "lines",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Start from the compile_commands.json of a CMake project, and run no setup.py.",
)
@click.option("--verify", "verifying", is_flag=True, help="Write nothing; compare the compile lines of both.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option("--print", "printed", is_flag=True, help="Write nothing; show the build.toml.")
@click.option("--no-sandbox", is_flag=True, help="Run setup.py as 'pip install' would: it can do what you can.")
@click.option(
    "--time-limit", metavar="SECONDS", type=click.FloatRange(min=1), default=60.0, help="For each run of setup.py."
)
def command(
    *,
    directory: Path,
    variables: tuple[str, ...],
    lines: Path | None,
    verifying: bool,
    force: bool,
    printed: bool,
    no_sandbox: bool,
    time_limit: float,
) -> None:
    """Record what DIR's setup.py compiles, and write a build.toml for the same.

    setup.py runs in a sandbox without a network, with stand-ins for torch and the toolkits: nothing is compiled, and
    DIR gets only the files that this command writes.
    """
    from builder import port  # noqa: PLC0415  `--help` needs none of it
    from builder.port import lines as compile_lines  # noqa: PLC0415
    from builder.port import record  # noqa: PLC0415
    from builder.port import variables as switches  # noqa: PLC0415

    given = _variables(variables)
    if verifying:
        if lines is not None:
            raise click.UsageError("--verify compares with a setup.py: leave --compile-commands out")
        if force or printed:
            raise click.UsageError("--verify writes nothing: leave --force and --print out")
        _verify(directory, given, sandboxed=not no_sandbox, seconds=time_limit)
        return
    if lines is not None:
        recording = compile_lines.recording(lines, directory)
    else:
        sandboxed = not no_sandbox
        recording = record.record(directory, home=_home(), variables=given, sandboxed=sandboxed, seconds=time_limit)
        needed = switches.needs_some(
            recording, directory, home=_home(), given=given, sandboxed=sandboxed, seconds=time_limit
        )
        if needed is not None:
            raise needed
    ported = port.port(recording, directory)
    if printed:
        terminal.document(ported.files["build.toml"])
    else:
        port.write(ported, directory, force=force)
        for path in ported.files:
            terminal.out(str(directory / path))
    if ported.remaining:
        terminal.err("\nremains for a person:")
        for item in ported.remaining:
            terminal.err(f"  {item}")
    again = "".join(f" --env {shlex.quote(variable)}" for variable in variables)
    verifying_too = "" if lines is not None else f" && builder port --verify{again} {directory}"
    terminal.err(f"\nnext: builder check {directory}{verifying_too}")


def _verify(directory: Path, given: dict[str, str], *, sandboxed: bool, seconds: float) -> None:
    from builder.port import verify  # noqa: PLC0415

    different = 0
    found = verify.verify(
        directory, home=_home(), variables=given, environ=os.environ, sandboxed=sandboxed, seconds=seconds
    )
    for compared in found:
        different += len(compared.differences)
        if compared.refused is not None:
            terminal.out(f"{compared.setting.name}: left out: {compared.refused}")
        else:
            terminal.out(
                f"{compared.setting.name}: {compared.sources} sources equal, {len(compared.differences)} different"
            )
        for line in verify.in_groups(compared.differences):
            terminal.out(f"  {line}")
    others = ", ".join(backend.facts.title for backend in verify.uncompared(directory))
    if others:
        terminal.err(f"not compared: the lines for {others}")
    if different:
        raise DifferenceError(
            "build.toml and setup.py compile differently",
            help="missing is what only setup.py has, extra what only build.toml has",
        )


def _home() -> Path | None:
    home = os.environ.get("HOME")
    return None if home is None else Path(home)


def _variables(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--env")
        found[name] = value
    return found
