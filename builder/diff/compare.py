"""Compare two builds, variant by variant."""

from collections.abc import Iterator
from pathlib import Path

from builder.diff import device_code, facts, library, ops, python_api
from builder.diff.changes import FactChange, VariantDifference
from builder.diff.ops import Build, Loading
from builder.diff.sides import Side
from builder.matrix.variant import Variant


def sides(before: Side, after: Side, loading: Loading | None) -> Iterator[VariantDifference]:
    """Yield the difference of each variant; a single build of each is compared with the other, whatever its variant.

    Raises:
        WheelError: a wheel is damaged.
    """
    if len(before.builds) == len(after.builds) == 1:
        (old, old_path), (new, new_path) = *before.builds.items(), *after.builds.items()
        yield pair(old, new, old_path, new_path, loading)
        return
    for variant in sorted({*before.builds, *after.builds}):
        one, other = before.builds.get(variant), after.builds.get(variant)
        if one is not None and other is not None:
            yield pair(variant, variant, one, other, loading)
            continue
        name = (one or other or Path()).name
        lost = other is None
        breaks = "there was a build of this variant, and there is none any more" if lost else ""
        change = FactChange(
            part=library.PART, subject=variant, before=name if lost else "", after="" if lost else name, breaks=breaks
        )
        yield VariantDifference(variant=variant, before=change.before, after=change.after, changes=(change,))


def pair(old_name: str, new_name: str, before: Path, after: Path, loading: Loading | None) -> VariantDifference:
    """Return the difference of two builds of a kernel; without `loading`, neither is loaded.

    Raises:
        WheelError: one is damaged.
    """
    old, new = facts.of(before), facts.of(after)
    api, not_read = python_api.compare(before, after)
    variants = _variant(old_name), _variant(new_name)
    first = Build(path=before, facts=old, variant=variants[0])
    own, not_loaded = ops.compare(first, Build(path=after, facts=new, variant=variants[1]), loading)
    notes = [f"the functions of {name}: {why}" for each in (old, new) for name, why in each.unreadable.items()]
    return VariantDifference(
        variant=new_name,
        before=before.name,
        after=after.name,
        changes=(
            *own,
            *api,
            *device_code.compare(old, new),
            *library.compare(old, new, variants),
            *library.identity(old, new),
        ),
        notes=tuple(filter(None, (*notes, not_loaded, not_read))),
    )


def _variant(name: str) -> Variant | None:
    try:
        return Variant.parse(name)
    except ValueError:
        return None
