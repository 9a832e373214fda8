"""Check the size of a wheel; for one that is too large, tell which parts take the space and how to make it smaller."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from builder.audit.report import Finding
from builder.audit.sizes import CodeSize, WheelSizes
from builder.audit.subject import Subject
from builder.config.wheel_values import WheelSize
from builder.matrix import architectures
from builder.metadata import KernelMetadata
from builder.wheel.archive import Wheel
from builder.wording import size as shown

RULE = "size"

_WAYS = 3
_COMPRESS = {False: "-Xfatbin=-compress-all' in 'cuda-flags", True: "--offload-compress' in 'hip-flags"}


def is_exceeded(subject: Subject, wheel: Wheel) -> bool:
    """Whether a wheel is larger than its kernel allows; a folder in hub layout never is."""
    limit = limit_of(subject.metadata)
    return limit is not None and wheel.path.is_file() and wheel.path.stat().st_size > limit.bytes


def check(subject: Subject) -> Iterator[Finding]:
    """Report a wheel that is too large, or whose limit cannot be read."""
    text, limit = subject.metadata.max_size, limit_of(subject.metadata)
    if text is not None and limit is None:
        why = "it is the most that the wheel may have, and is no size that this audit knows"
        remedy = "audit the wheel with the builder that made it, or a newer one"
        yield Finding(f"{subject.module}/metadata.json", RULE, str(text), why, remedy)
    sizes = subject.sizes
    if sizes is not None and limit is not None:
        parts = [f"{arch} takes {shown(size)}" for arch, size in _by_arch(sizes.code).items()]
        rest = sizes.unpacked - sum(each.size for each in sizes.code)
        taken = ", ".join([*parts, f"all but device code takes {shown(rest)}"])
        why = f"the wheel may have {limit} ({limit.bytes:,} bytes) and has {sizes.packed:,}; {taken} of it unpacked"
        remedy = "; or ".join(ways_out(sizes)[:_WAYS])
        yield Finding(f"{subject.module}/metadata.json", RULE, shown(sizes.packed), why, remedy)


def ways_out(sizes: WheelSizes) -> tuple[str, ...]:
    """Return ways to make a wheel smaller: first ways that cost its users nothing, then removing the largest parts."""
    code = sizes.code
    plain, ptx = sum(each.plain for each in code), sum(each.size for each in code if each.ptx)
    ways: list[str] = []
    if plain:
        option = _COMPRESS[any(each.arch.startswith("gfx") for each in code)]
        ways.append(f"compress the {shown(plain)} of device code that are not, by '{option}'")
    if ptx and any(not each.ptx for each in code):
        ways.append(f"leave out PTX, which takes {shown(ptx)} and serves GPUs that have no code of their own")
    machine = _by_arch(each for each in code if not each.ptx)
    if len(machine) > 1:
        ways += [f"leave out {arch}, which takes {shown(size)}" for arch, size in machine.items()]
    if len(ways) < _WAYS:
        ways.append("raise 'max-size' in [wheel] of build.toml")
    return tuple(ways)


def _by_arch(code: Iterable[CodeSize]) -> Mapping[str, int]:
    """Return the bytes of each architecture, the largest first."""
    found: Counter[str] = Counter()
    for each in code:
        found[each.arch] += each.size
    order = sorted(found, key=lambda arch: (-found[arch], architectures.natural(arch)))
    return {arch: found[arch] for arch in order}


def limit_of(metadata: KernelMetadata) -> WheelSize | None:
    """Return the size that a kernel allows its wheels; None without one, or for one that cannot be read."""
    text = metadata.max_size
    return WheelSize(text) if isinstance(text, str) and WheelSize.matches(text) else None
