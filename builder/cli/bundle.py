"""`builder bundle`: hub layout."""

from pathlib import Path

import click

from builder import terminal
from builder.cli import completing
from builder.cli.arguments import allow_quick_option
from builder.publish import bundle, card
from builder.wheel import kernel_wheel, release


@click.command()
@click.argument("wheels", metavar="WHEEL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output", default="build", show_default=True, type=click.Path(path_type=Path), help="Directory of the variants."
)
@click.option(
    "--kernel",
    type=click.Path(path_type=Path),
    shell_complete=completing.kernels,
    help="The kernel's directory: its commit and its CARD.md.",
)
@click.option("--commit", metavar="SHA", help="Commit that the wheels were built from; all of its digits.")
@click.option("--repo-id", metavar="OWNER/NAME", help="Repository on the hub, for the card.")
@allow_quick_option
@click.option("--force", is_flag=True, help="Replace variants that are there with other content.")
def command(
    wheels: tuple[Path, ...],
    output: Path,
    kernel: Path | None,
    commit: str | None,
    repo_id: str | None,
    *,
    allow_quick: bool,
    force: bool,
) -> None:
    """Lay wheels out for the hub: build/<variant>/..., which the `kernels` client loads."""
    read = kernel_wheel.read_all(wheels)
    release.require({str(each.wheel.path): each.not_for_release for each in read}, allowed=allow_quick)
    origin = _origin(kernel, commit)
    tree = bundle.lay_out(read, commit=origin)
    text = card.fill(card.read(kernel), read[0], variants=(*tree, *bundle.variants_in(output)), repo_id=repo_id)
    new = bundle.write(tree, output, card=text, overwrite=force)
    for variant in tree:
        state = "" if variant in new else " (was there)"
        terminal.out(f"{output / variant}{state}")


def _origin(kernel: Path | None, commit: str | None) -> bundle.Commit | None:
    found = bundle.origin(kernel=kernel, commit=commit)
    if found is None and kernel is not None:
        terminal.err(
            f"warning: '{kernel}' is not in a git checkout, so metadata.json will name no commit\n"
            "  help: pass --commit SHA",
        )
    return found
