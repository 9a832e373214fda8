"""The chooser of a kernel's page: PyTorch, compute platform, system and installer, and the line for each choice."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from builder import wording
from builder.config import Framework, Version
from builder.matrix import rows
from builder.publish.index import requirements, words
from builder.publish.index.picks import Gap, Offer, Pick
from builder.wheel.kernel_wheel import KernelWheel

INSTALLERS = (("pip", "pip"), ("uv", "uv"), ("pyproject", "pyproject.toml"), ("kernels", "kernels"))
_FRAMEWORK = re.compile(r"(?:torch|apache-tvm-ffi)(?![A-Za-z0-9._-])")
_HUB = re.compile(r"https://huggingface\.co/(?:kernels/)?([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One of several values."""

    value: str
    title: str
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is chosen: a name for the page, and one for people."""

    name: str
    title: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to install for some choices: it is shown for those whose values it has."""

    torches: tuple[str, ...]
    compute: str
    system: str
    version: str
    built_for: str
    wheels: tuple[tuple[str, str], ...]
    """Name and size of each."""
    requires: tuple[str, ...]
    """What must be there before, quoted for a shell."""
    hub: str | None
    """The repository that the `kernels` client loads it from; None where it cannot load it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Why there is nothing for some choices."""

    torches: tuple[str, ...]
    compute: str
    systems: tuple[str, ...]
    why: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """All choices of a page, and the answer to each."""

    axes: tuple[Axis, ...]
    answers: tuple[Answer, ...]
    lacks: tuple[Lack, ...]


def chooser(offer: Offer) -> Chooser:
    """Return the chooser for what there is; the first choice is one that has an answer."""
    torch, first = _first(offer)
    newest_first = offer.torches[::-1]
    return Chooser(
        axes=(
            Axis(
                name="torch",
                title="PyTorch",
                options=tuple(
                    Option(value=words.value(each), title=str(each), chosen=each == torch) for each in newest_first
                ),
            ),
            _axis("compute", "Compute", offer.computes, words.compute, first.place.compute),
            _axis("system", "System", offer.systems, words.system, first.place.system),
            Axis(
                name="installer",
                title="Installer",
                options=tuple(Option(value=value, title=title, chosen=value == "pip") for value, title in INSTALLERS),
            ),
        ),
        answers=tuple(_answer(pick, among=offer.torches) for pick in offer.picks),
        lacks=tuple(_lack(gap, offer) for gap in offer.gaps()),
    )


def _axis(name: str, title: str, values: Iterable[str], say: words.Saying, chosen: str) -> Axis:
    options = tuple(Option(value=value, title=say(value), chosen=value == chosen) for value in values)
    return Axis(name=name, title=title, options=options)


def _first(offer: Offer) -> tuple[Version, Pick]:
    """Return the choice that most people make: a PyTorch of a release, CUDA, x86_64, and the newest of these."""
    released = {row.torch for row in rows() if row.set == "release"}

    def weight(each: tuple[Version, Pick]) -> tuple[bool, bool, bool, Version, str]:
        torch, pick = each
        place = pick.place
        return torch in released, place.compute.startswith("cu"), place.system == "x86_64-linux", torch, place.compute

    return max(((torch, pick) for pick in offer.picks for torch in pick.torches), key=weight)


def _answer(pick: Pick, *, among: Sequence[Version]) -> Answer:
    best = pick.wheels[0]
    where = f"{words.compute(pick.place.compute)}, {words.system(pick.place.system)}"
    return Answer(
        torches=tuple(map(words.value, pick.torches)),
        compute=pick.place.compute,
        system=pick.place.system,
        version=best.wheel.version.public,
        built_for=f"torch {words.torches(pick.torches, among=among)}, {where}",
        wheels=tuple((each.wheel.path.name, wording.size(each.size)) for each in pick.wheels),
        requires=tuple(shlex.quote(wording.escaped(each)) for each in requires(best)),
        hub=_hub(best),
    )


def _lack(gap: Gap, offer: Offer) -> Lack:
    compute = gap.places[0].compute
    where = f"{words.compute(compute)} on {' and '.join(words.system(place.system) for place in gap.places)}"
    torches = words.torches(gap.torches, among=offer.torches)
    return Lack(
        torches=tuple(map(words.value, gap.torches)),
        compute=compute,
        systems=tuple(place.system for place in gap.places),
        why=f"There is no wheel for torch {torches} with {where}: "
        + ("it was not built." if gap.known else "no such PyTorch is known."),
        instead=_instead(compute, offer),
    )


def _instead(compute: str, offer: Offer) -> str:
    """Say what there is for a compute platform."""
    found = [
        f"torch {words.torches(pick.torches, among=offer.torches)} on {words.system(pick.place.system)}"
        for pick in offer.picks
        if pick.place.compute == compute
    ]
    return f"With {words.compute(compute)} there is: {'; '.join(found)}."


def requires(kernel_wheel: KernelWheel) -> tuple[str, ...]:
    """Return what must be installed besides the framework; that one differs from wheel to wheel."""
    found = requirements.read(kernel_wheel.core).packages
    return tuple(requirement for requirement in found if not _FRAMEWORK.match(requirement))


def _hub(kernel_wheel: KernelWheel) -> str | None:
    """Return the repository that a kernel says it is in, or one to complete; None where the client cannot load it."""
    variant = kernel_wheel.variant
    if variant.python is not None or variant.framework is Framework.CTYPES:
        return None
    metadata = kernel_wheel.metadata
    said = (_HUB.fullmatch(url or "") for url in (metadata.source, metadata.upstream))
    known = next((match[1] for match in said if match is not None), None)
    return known or f"OWNER/{kernel_wheel.wheel.name}"
