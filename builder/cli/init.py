"""`builder init`: a new kernel."""

from pathlib import Path
from typing import Literal

import click

from builder import init, terminal
from builder.ci.workflow import PLACEHOLDER, SERVICES, Service
from builder.cli.arguments import PATH, BackendType
from builder.config.values import Framework
from builder.init import FRAMEWORKS


@click.command()
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--name", help="Name of the kernel; that of DIR if not given.")
@click.option(
    "--framework",
    type=click.Choice([framework.value for framework in FRAMEWORKS]),
    default=Framework.TORCH.value,
    show_default=True,
    help="What the kernel binds to; torch-noarch is pure Python.",
)
@click.option(
    "--backend",
    "backends",
    type=BackendType(),
    multiple=True,
    help="A backend; may be repeated. [default: cpu, cuda]",
)
@click.option("--backends", "listed", metavar="B,B", help="Backends, separated by commas.")
@click.option("--license", "license_", default="Apache-2.0", show_default=True, help="SPDX expression.")
@click.option(
    "--ci",
    type=click.Choice([*SERVICES, "none"]),
    default=SERVICES[0],
    show_default=True,
    help="Service that builds the kernel, and signs where each wheel was built.",
)
@click.option(
    "--builder-url",
    envvar="BUILDER_URL",
    metavar="URL",
    help="Repository that flake and CI take this builder from. [env: BUILDER_URL; default: where it came from]",
)
@click.pass_context
def command(
    context: click.Context,
    directory: Path,
    name: str | None,
    framework: str,
    backends: tuple[str, ...],
    listed: str | None,
    license_: str,
    ci: Service | Literal["none"],
    builder_url: str | None,
) -> None:
    """Start a new kernel in DIR: a small one that builds, with tests, benchmark, card, flake and CI."""
    words = [word.strip() for word in (listed or "").split(",") if word.strip()]
    parameter = next(one for one in context.command.params if one.name == "listed")
    chosen = [*backends, *(BackendType().convert(word, parameter, context) for word in words)]
    answers = init.Answers.of(
        name=name if name is not None else directory.absolute().name,
        framework=Framework(framework),
        backends=chosen,
        license_=license_,
        builder_url=builder_url,
        ci=None if ci == "none" else ci,
    )
    tree = init.files(answers)
    init.write(tree, directory)
    for path in tree:
        terminal.out(str(directory / path))
    unknown = {
        "flake.nix": answers.flake is None,
        "the workflow of CI": answers.ci == "github" and answers.home is None,
    }
    if any(unknown.values()):
        files = " and ".join(name for name, is_unknown in unknown.items() if is_unknown)
        text = f"the repository of this builder is not known: put it in place of {PLACEHOLDER} in {files}"
        terminal.err(f"\nnote: {text}, or name it with --builder-url")
    terminal.err(f"\nnext: cd {directory} && builder check --strict && builder build")
