"""Wheels that a site makes of those that it is given: one for each family of GPUs."""

from collections.abc import Mapping

from builder.errors import BuilderError
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index.simple import FILES, Listing
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel


def by_family(wheel: KernelWheel, whole: Listing) -> Mapping[Family, Listing]:
    """Return the listing of a wheel for each family of GPUs that it serves.

    A wheel without device code, or with code for a single family, is listed unchanged.

    Raises:
        WheelError: its device code cannot be read.
    """
    try:
        served = families.of(wheel)
        if len(served) <= 1:
            return dict.fromkeys(served or families.all_known(), whole)
        return {
            family: whole.made(f"{FILES}/families/{made.name}", made.content) for family, made in families.split(wheel)
        }
    except BuilderError as error:
        raise WheelError(f"'{wheel.wheel.path}' cannot be split: {error.message}", help=error.help) from error
