"""`builder bundle`: hub layout."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from builder import terminal
from builder.cli import selecting
from builder.cli.arguments import PATH, allow_quick_option, kernel_option, wheels_argument
from builder.errors import BuilderError
from builder.plan import kernels
from builder.publish import bundle, card, signature
from builder.wheel import kernel_wheel
from builder.wheel.kernel_wheel import KernelWheel
from builder.wording import quoted


@click.command()
@wheels_argument
@click.option("--output", default="build", show_default=True, type=PATH, help="Directory of the variants.")
@kernel_option(
    "Kernel's directory, for its commit and CARD.md. For several kernels a pattern: their layouts are "
    "OUTPUT/NAME/build."
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
@click.option("--trust-config", type=PATH, help="Sign with this instance of sigstore.")
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
        layouts: list[tuple[Path | None, Sequence[KernelWheel], Path]] = [(kernel, read, output)]
    elif repo_id is not None:
        raise BuilderError("--repo-id is the repository of one kernel", help="leave it out, or bundle each on its own")
    else:
        layouts = [(folder, own, output / own[0].kernel / "build") for folder, own in _by_kernel(read, kernel).items()]
    for folder, own, where in layouts:
        _write(own, where, kernel=folder, commit=commit, repo_id=repo_id, force=force)
        if signs:
            variants = sorted(where / str(each.variant) for each in own)
            token = os.environ.get("SIGSTORE_ID_TOKEN")
            for path in signature.sign(variants, token=token, trust_config=trust_config):
                terminal.out(str(path))


def _by_kernel(read: Sequence[KernelWheel], pattern: Path) -> dict[Path, list[KernelWheel]]:
    """Group the wheels by the folder of their kernel."""
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
    """Write the layout of one kernel, and show its variants."""
    origin = bundle.origin(kernel=kernel, commit=commit)
    if origin is None and kernel is not None:
        terminal.err(
            f"warning: '{kernel}' is not in a git checkout, so metadata.json will name no commit\n"
            "  help: pass --commit SHA",
        )
    tree = bundle.lay_out(read, commit=origin)
    text = card.fill(card.read(kernel), read[0], variants=(*tree, *bundle.variants_in(output)), repo_id=repo_id)
    new = bundle.write(tree, output, card=text, overwrite=force)
    for variant in tree:
        state = "" if variant in new else " (was there)"
        terminal.out(f"{output / variant}{state}")
