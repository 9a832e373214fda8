"""`builder bundle`: hub layout."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from builder import terminal
from builder.cli import completing, selecting
from builder.cli.arguments import allow_quick_option
from builder.errors import BuilderError
from builder.plan import kernels
from builder.publish import bundle, card, signature
from builder.wheel import kernel_wheel
from builder.wheel.kernel_wheel import KernelWheel
from builder.wording import quoted


@click.command()
@click.argument("wheels", metavar="WHEEL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--output", default="build", show_default=True, type=click.Path(path_type=Path), help="Directory of the variants."
)
@click.option(
    "--kernel",
    type=click.Path(path_type=Path),
    shell_complete=completing.kernels,
    help="The kernel's directory: its commit and its CARD.md. Of several kernels a pattern: their layouts are "
    "OUTPUT/NAME/build.",
)
@click.option("--commit", metavar="SHA", help="Commit that the wheels were built from; all of its digits.")
@click.option("--repo-id", metavar="OWNER/NAME", help="Repository on the hub, for the card.")
@allow_quick_option
@click.option(
    "--sign",
    "signs",
    is_flag=True,
    help="Sign each variant with sigstore, as the identity of the CI job. [env: SIGSTORE_ID_TOKEN]",
)
@click.option("--trust-config", type=click.Path(path_type=Path), help="Sign with this instance of sigstore.")
@click.option("--force", is_flag=True, help="Replace variants that are there with other content.")
def command(
    wheels: tuple[Path, ...],
    output: Path,
    kernel: Path | None,
    commit: str | None,
    repo_id: str | None,
    trust_config: Path | None,
    *,
    allow_quick: bool,
    signs: bool,
    force: bool,
) -> None:
    """Lay wheels out for the hub: build/<variant>/..., which the `kernels` client loads."""
    read = kernel_wheel.read_all(wheels)
    obstacles = {str(each.wheel.path): each.metadata.not_for_release for each in read}
    kernel_wheel.require_release(obstacles, allowed=allow_quick)
    if kernel is None or not selecting.is_pattern(kernel):
        _write(read, output, kernel=kernel, commit=commit, repo_id=repo_id, force=force)
        _sign((output / str(each.variant) for each in read), trust_config, signs=signs)
        return
    if repo_id is not None:
        raise BuilderError("--repo-id is the repository of one kernel", help="leave it out, or bundle each on its own")
    for folder, wheels_of in _by_kernel(read, kernel).items():
        where = output / wheels_of[0].kernel / "build"
        _write(wheels_of, where, kernel=folder, commit=commit, repo_id=None, force=force)
        _sign((where / str(each.variant) for each in wheels_of), trust_config, signs=signs)


def _sign(variants: Iterable[Path], trust_config: Path | None, *, signs: bool) -> None:
    """Sign variants, where that is asked for."""
    if signs:
        token = os.environ.get("SIGSTORE_ID_TOKEN")
        for path in signature.sign(sorted(variants), token=token, trust_config=trust_config):
            terminal.out(str(path))


def _by_kernel(read: Sequence[KernelWheel], pattern: Path) -> dict[Path, list[KernelWheel]]:
    """Return the wheels by the folder of their kernel.

    Raises:
        BuilderError: a kernel cannot be read, or a wheel is of none of them.
    """
    loaded, refusals = kernels.load(selecting.find((pattern,)).folders)
    if refusals:
        raise kernels.joined([refusal.error for refusal in refusals])
    folders = {str(kernel.config.general.name): kernel.root for kernel in loaded}
    found: dict[Path, list[KernelWheel]] = {}
    for wheel in read:
        if wheel.kernel not in folders:
            raise BuilderError(
                f"'{wheel.wheel.path}' is of '{wheel.kernel}', and {quoted(str(pattern))} has no such kernel",
                help="name a pattern that picks its folder, or leave the wheel out",
            )
        found.setdefault(folders[wheel.kernel], []).append(wheel)
    return found


def _write(
    read: Sequence[KernelWheel],
    output: Path,
    *,
    kernel: Path | None,
    commit: str | None,
    repo_id: str | None,
    force: bool,
) -> None:
    """Write the layout of one kernel, and name its variants."""
    tree = bundle.lay_out(read, commit=_origin(kernel, commit))
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
