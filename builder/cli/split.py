"""`builder split`: a wheel for each family of GPUs."""

from pathlib import Path

import click

from builder import terminal
from builder.cli.arguments import FOLDER, allow_quick_option, wheels_argument
from builder.files import write_atomic
from builder.publish import families
from builder.wheel import kernel_wheel
from builder.wording import size


@click.command()
@wheels_argument
@click.option("--output", default="families", show_default=True, type=FOLDER)
@allow_quick_option
def command(wheels: tuple[Path, ...], output: Path, *, allow_quick: bool) -> None:
    """Make a wheel for each family of GPUs: OUTPUT/sm90/... has the device code for 9.x alone.

    Each wheel is complete, so pip, uv and the `kernels` client install it unchanged. `builder index --families` makes
    an index for each family.
    """
    read = kernel_wheel.read_all(wheels)
    obstacles = {str(each.wheel.path): each.metadata.not_for_release for each in read}
    kernel_wheel.require_release(obstacles, allowed=allow_quick)
    for each in read:
        found = tuple(families.split(each))
        for family, wheel in found:
            path = output / str(family) / wheel.name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, wheel.content)
            terminal.out(f"{path}: {size(len(wheel.content))} of {size(each.size)}")
        if not found:
            terminal.err(f"note: {each.wheel.path.name} has no device code of CUDA, and is of no family")
