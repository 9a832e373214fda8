"""`builder port`: from a setup.py to a build.toml."""

import os
from pathlib import Path

import click

from builder import terminal


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--env", "variables", metavar="NAME=VALUE", multiple=True, help="A variable for setup.py; may be repeated."
)
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
    force: bool,
    printed: bool,
    no_sandbox: bool,
    time_limit: float,
) -> None:
    """Record what DIR's setup.py compiles, and write a build.toml that says the same.

    setup.py runs in a sandbox without a network, among stand-ins for torch and the toolkits: nothing is compiled, and
    nothing in DIR changes but what this command writes.
    """
    from builder.port import record, write  # noqa: PLC0415  `--help` needs none of it

    home = os.environ.get("HOME")
    recording = record.record(
        directory,
        home=None if home is None else Path(home),
        variables=_variables(variables),
        sandboxed=not no_sandbox,
        seconds=time_limit,
    )
    ported = write.port(recording, directory)
    if printed:
        terminal.document(ported.files["build.toml"])
    else:
        write.write(ported, directory, force=force)
        for path in ported.files:
            terminal.out(str(directory / path))
    if ported.remaining:
        terminal.err("\nremains for a person:")
        for item in ported.remaining:
            terminal.err(f"  {item}")
    terminal.err(f"\nnext: builder check {directory} && builder port --verify {directory}")


def _variables(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.isidentifier():
            raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--env")
        found[name] = value
    return found
