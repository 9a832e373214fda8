"""Compare two builds, variant by variant."""

from collections.abc import Iterator
from pathlib import Path

from builder.diff import device_code, facts, library, python_api
from builder.diff.changes import Change, Difference
from builder.diff.sides import Side
from builder.matrix.variant import Variant


def sides(before: Side, after: Side) -> Iterator[Difference]:
    """Yield the difference of each variant; a single build of each is compared with the other, whatever its variant.

    Raises:
        WheelError: a wheel is damaged.
    """
    if len(before.builds) == len(after.builds) == 1:
        (old, old_path), (new, new_path) = *before.builds.items(), *after.builds.items()
        yield pair(old, new, old_path, new_path)
        return
    for variant in sorted({*before.builds, *after.builds}):
        one, other = before.builds.get(variant), after.builds.get(variant)
        if one is not None and other is not None:
            yield pair(variant, variant, one, other)
            continue
        name = (one or other or Path()).name
        lost = other is None
        breaks = "there was a build of this variant, and there is none any more" if lost else ""
        change = Change(
            part=library.PART, subject=variant, before=name if lost else "", after="" if lost else name, breaks=breaks
        )
        yield Difference(variant=variant, before=change.before, after=change.after, changes=(change,))


def pair(old_name: str, new_name: str, before: Path, after: Path) -> Difference:
    """Return the difference of two builds of a kernel.

    Raises:
        WheelError: one is damaged.
    """
    old, new = facts.of(before), facts.of(after)
    api, not_read = python_api.compare(before, after)
    notes = [f"the functions of {name}: {why}" for each in (old, new) for name, why in each.unreadable.items()]
    return Difference(
        variant=new_name,
        before=before.name,
        after=after.name,
        changes=(
            *api,
            *device_code.compare(old, new),
            *library.compare(old, new, (_variant(old_name), _variant(new_name))),
            *library.identity(old, new),
        ),
        notes=tuple(filter(None, (*notes, not_read))),
    )


def _variant(name: str) -> Variant | None:
    try:
        return Variant.parse(name)
    except ValueError:
        return None
