"""Compare the device code of two builds: what their functions take, and the GPUs that run them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from builder.audit.resources import Compiled
from builder.diff.changes import FactChange
from builder.diff.facts import Facts
from builder.matrix import architectures

PART = "device code"
_Key = tuple[str, str, str]


def compare(before: Facts, after: Facts) -> Iterator[FactChange]:
    """Yield the GPUs and architectures that are lost or new, then what changed in each function."""
    yield from _gpus(before, after)
    yield from _archs(before, after)
    yield from _functions(before, after)


def _gpus(before: Facts, after: Facts) -> Iterator[FactChange]:
    for gpu in [*before.gpus, *(gpu for gpu in after.gpus if gpu not in before.gpus)]:
        old, new = before.gpus.get(gpu, ""), after.gpus.get(gpu, "")
        if old != new:
            lost = "" if new else "this GPU ran the whole wheel, and has no code for all of it any more"
            yield FactChange(part=PART, subject=gpu, before=old, after=new, breaks=lost)


def _archs(before: Facts, after: Facts) -> Iterator[FactChange]:
    """Yield the code that a library has no more, or has anew; a library that is gone is no loss of an architecture."""
    for library in sorted(before.code.keys() & after.code.keys()):
        old, new = ({each.what for each in facts.code[library]} for facts in (before, after))
        for what in sorted(old ^ new, key=architectures.natural):
            gone = what in old
            breaks = "it has no code for this architecture any more" if gone else ""
            yield FactChange(
                part=PART,
                subject=f"{library}, {what}",
                before="there" if gone else "",
                after="" if gone else "there",
                breaks=breaks,
            )


def _functions(before: Facts, after: Facts) -> Iterator[FactChange]:
    old, new = _by_name(before.functions), _by_name(after.functions)
    own, others = ({(library, arch) for library, arch, _ in found} for found in (old, new))
    for key in sorted(old.keys() | new.keys(), key=lambda key: (key[0], architectures.natural(key[1]), key[2])):
        library, arch, name = key
        if (library, arch) not in own & others:
            continue  # told as an architecture
        # Templates and overloads differ by name; equal ones come from several sources.
        for one, other in zip_longest(old.get(key, ()), new.get(key, ())):
            words = _difference(one, other)
            if words is not None:
                yield FactChange(part=PART, subject=f"{arch} {name}", before=words[0], after=words[1])


def _by_name(functions: Iterable[Compiled]) -> Mapping[_Key, list[Compiled]]:
    found: dict[_Key, list[Compiled]] = defaultdict(list)
    for each in functions:
        found[each.library, each.arch, each.source_name].append(each)
    return found


def _difference(before: Compiled | None, after: Compiled | None) -> tuple[str, str] | None:
    """Return the figures that differ, in words; None where all are equal."""
    old, new = (_figures(each) for each in (before, after))
    if old == new:
        return None
    names = [name for name in (old or new) if old.get(name) != new.get(name)]
    return ", ".join(old[name] for name in names if old), ", ".join(new[name] for name in names if new)


def _figures(each: Compiled | None) -> dict[str, str]:
    if each is None:
        return {}
    it = each.function
    percents = sorted(set(each.occupancy.values()))
    return {
        "registers": f"{it.registers} registers",
        "spills": f"spills: {each.spills or 'none'}",
        "stack": "stack without bound" if it.stack is None else f"{it.stack:,} bytes of stack",
        "shared": f"{it.shared:,} bytes shared",
        "constant": f"{it.constant:,} bytes constant",
        "threads": f"{it.threads or 'any'} threads",
        "size": f"{it.size:,} bytes of code",
        "occupancy": f"occupancy {' to '.join(f'{percent} %' for percent in _ends(percents)) or 'not known'}",
    }


def _ends(percents: list[int]) -> list[int]:
    return percents[:1] + percents[-1:] if len(percents) > 1 else percents
