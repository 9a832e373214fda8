"""`builder init`: a new kernel."""

from pathlib import Path

import click

from builder import init
from builder.cli.arguments import BackendType
from builder.config.values import Framework
from builder.init.answers import BUILDER_URL


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the kernel; that of DIR if not given.")
@click.option(
    "--framework",
    type=click.Choice([framework.value for framework in Framework]),
    default=Framework.TORCH.value,
    show_default=True,
    help="What the kernel binds to; torch-noarch is Python alone.",
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
@click.option("--builder-url", default=BUILDER_URL, metavar="URL", help="Flake of the builder, for flake.nix.")
@click.pass_context
def command(
    context: click.Context,
    directory: Path,
    name: str | None,
    framework: str,
    backends: tuple[str, ...],
    listed: str | None,
    license_: str,
    builder_url: str,
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
    )
    tree = init.files(answers)
    init.write(tree, directory)
    for path in tree:
        click.echo(directory / path)
    click.echo(f"\nnext: cd {directory} && builder check --strict && builder build", err=True)
