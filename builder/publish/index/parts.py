"""The parts of a site, made from the files of its wheels: each kernel by itself, so that every core can make some."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from builder.matrix.variant import Variant
from builder.publish.index.part import Part, Settings, part
from builder.publish.index.uploads import NONE, Uploads
from builder.publish.index.workers import Map
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError


def settings(
    paths: Iterable[Path], *, base_url: str | None, with_variants: bool, with_families: bool = False
) -> Settings:
    """Return the settings of a site that has the wheels at `paths`, of which only the names are looked at."""
    return Settings.of(
        _variants(path.name for path in paths),
        base_url=base_url,
        with_variants=with_variants,
        with_families=with_families,
    )


def _variants(names: Iterable[str]) -> Iterator[Variant]:
    """Yield the variants that names of wheels say; who reads a wheel refuses one that says none."""
    alike = {tuple(name.partition("+")[::2])[1]: name for name in names}  # a label and tags say it all
    for name in alike.values():
        try:
            _, version, _, tags = parse_wheel_filename(name)
            yield kernel_wheel.variant_of(version.local, tags)
        except (InvalidWheelFilename, WheelError):  # noqa: PERF203  each name by itself
            continue


def parts(paths: Iterable[Path], common: Settings, *, uploaded: Uploads = NONE, each: Map = map) -> tuple[Part, ...]:
    """Read wheels, and return the part of a site that each kernel is.

    Raises:
        WheelError: what is wrong with any of the wheels.
    """
    kernels: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.name):
        kernels.setdefault(canonicalize_name(path.name.partition("-")[0]), []).append(path)
    work = [
        (own, {path.name: uploaded[path.name] for path in own if path.name in uploaded}) for own in kernels.values()
    ]
    found = list(each(partial(_part, common=common), work))
    problems = [problem for problem in found if isinstance(problem, str)]
    if problems:
        raise WheelError("\nerror: ".join(problems))
    return tuple(part for part in found if not isinstance(part, str))


def _part(own: tuple[Sequence[Path], Uploads], common: Settings) -> Part | str:
    """Return the part of one kernel, by its wheels and when they came; or what is wrong with them."""
    paths, uploaded = own
    try:
        return part(kernel_wheel.read_all(paths), common, uploaded)
    except WheelError as error:
        return str(error)
