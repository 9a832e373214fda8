"""The pages for people: a front page with a card for each kernel, and a page with a chooser for each kernel."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import json_text, templates, wording
from builder.config import Framework, Version
from builder.config.gpus import known
from builder.matrix import rows
from builder.metadata import KernelMetadata
from builder.publish.index import grid, picks, simple, words
from builder.publish.index.derived import FamilyWheel
from builder.publish.index.picks import Offer, Pick, Place
from builder.publish.index.simple import NO_UPLOADS, Uploads
from builder.publish.index.words import DeviceCode
from builder.wheel.kernel_wheel import KernelWheel

INSTALLERS = (("pip", "pip"), ("uv", "uv"), ("pyproject", "pyproject.toml"), ("kernels", "kernels"))
_HUB = re.compile(r"https://huggingface\.co/(?:kernels/)?([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/?")
ON_FRONT = 100
"""The number of cards on the front page; more make it slow to load."""
_INSTALLERS = frozenset(("installer", value) for value, _ in INSTALLERS)
_GITHUB = re.compile(r"https://github\.com/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One of several values."""

    value: str
    title: str
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One choice, with a name for the page and one for people."""

    name: str
    title: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The wheel to install for some choices; the page shows it where they are made."""

    torches: tuple[str, ...]
    compute: str
    system: str
    version: str
    built_for: str
    wheels: tuple[tuple[str, str], ...]
    """Name and size of each."""
    requires: tuple[str, ...]
    """The requirements besides the framework, quoted for a shell."""
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
        lacks=tuple(_lacks(offer)),
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
        requires=tuple(shlex.quote(wording.escaped(each)) for each in simple.requires(best)),
        hub=_hub(best),
    )


def _lacks(offer: Offer) -> Iterator[Lack]:
    """Yield why there is nothing to take: one reason for all systems of a compute platform that lack the same."""
    taken = {(torch, pick.place) for pick in offer.picks for torch in pick.torches}
    found: dict[tuple[str, tuple[Version, ...], bool], list[str]] = {}
    for place in (Place(compute=compute, system=system) for compute in offer.computes for system in offer.systems):
        for listed in (True, False):
            lacking = tuple(
                torch
                for torch in offer.torches
                if (torch, place) not in taken and picks.in_matrix(torch, place) is listed
            )
            if lacking:
                found.setdefault((place.compute, lacking, listed), []).append(place.system)
    for (compute, torches, listed), systems in found.items():
        where = f"{words.compute(compute)} on {' and '.join(map(words.system, systems))}"
        yield Lack(
            torches=tuple(map(words.value, torches)),
            compute=compute,
            systems=tuple(systems),
            why=f"There is no wheel for torch {words.torches(torches, among=offer.torches)} with {where}: "
            + ("it was not built." if listed else "no such PyTorch is known."),
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


def _hub(kernel_wheel: KernelWheel) -> str | None:
    """Return the repository that a kernel says it is in, or one to complete; None where the client cannot load it."""
    variant = kernel_wheel.variant
    if variant.python is not None or variant.framework is Framework.CTYPES:
        return None
    metadata = kernel_wheel.metadata
    said = (_HUB.fullmatch(url or "") for url in (metadata.source, metadata.upstream))
    known = next((match[1] for match in said if match is not None), None)
    return known or f"OWNER/{kernel_wheel.wheel.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A kernel at a glance."""

    name: str
    summary: str
    version: str
    """Its newest."""
    backends: tuple[Option, ...]
    torches: tuple[Option, ...]
    """The newest first."""
    gpus: tuple[Option, ...]
    """The GPUs that run a wheel of it, or may run one that does not tell."""
    range: str
    wheels: str
    size: str
    """Of all its wheels."""
    released: str
    """The day on which its newest version came into the index; empty where that is not known."""


def card(
    wheels: Sequence[KernelWheel], offer: Offer, code: Mapping[Path, DeviceCode], uploaded: Uploads = NO_UPLOADS
) -> Card:
    """Return the card of a kernel that has these wheels."""
    newest = max(wheels, key=lambda each: (each.wheel.version, each.wheel.path.name))
    backends = sorted({each.variant.backend for each in wheels})
    running = {gpu.arch for each in wheels for gpu in code[each.wheel.path].running}
    return Card(
        name=newest.wheel.name,
        summary=words.summary(newest),
        version=newest.wheel.version.public,
        backends=tuple(Option(value=each.value, title=each.facts.title.removeprefix("the ")) for each in backends),
        torches=tuple(Option(value=words.value(each), title=str(each)) for each in offer.torches[::-1]),
        gpus=tuple(Option(value=gpu.arch, title=words.gpu_title(gpu)) for gpu in known() if gpu.arch in running),
        range=words.torches(offer.torches, among=offer.torches),
        wheels=f"{len(wheels)} wheel{'' if len(wheels) == 1 else 's'}",
        size=wording.size(sum(each.size for each in wheels)),
        released=simple.day_of((each for each in wheels if _is_of(newest, each)), uploaded),
    )


def _is_of(newest: KernelWheel, each: KernelWheel) -> bool:
    return each.wheel.version.public == newest.wheel.version.public


def card_filters(cards: Iterable[Card]) -> tuple[Axis, ...]:
    """Return what cards can be picked by: all that any of them has."""
    listed = tuple(cards)
    backends = {option for card in listed for option in card.backends}
    torches = {option for card in listed for option in card.torches}
    gpus = {option.value: option for card in listed for option in card.gpus}
    axes = (
        Axis(name="backend", title="Backend", options=tuple(sorted(backends, key=lambda option: option.value))),
        Axis(name="torch", title="PyTorch", options=tuple(sorted(torches, key=_newest))),
        Axis(name="gpu", title="GPU", options=tuple(gpus[gpu.arch] for gpu in known() if gpu.arch in gpus)),
    )
    return tuple(axis for axis in axes if axis.options)


def _newest(option: Option) -> tuple[int, ...]:
    return tuple(-int(number) for number in option.title.split("."))


def cards_as_json(cards: Iterable[Card]) -> bytes:
    """Return what the search reads of kernels that are not on the front page."""
    table = [
        {
            "name": card.name,
            "summary": card.summary,
            "version": card.version,
            "backends": {option.value: option.title for option in card.backends},
            "torches": [option.value for option in card.torches],
            "gpus": [option.value for option in card.gpus],
            "range": card.range,
            "wheels": card.wheels,
            "size": card.size,
            **({"released": card.released} if card.released else {}),
        }
        for card in cards
    ]
    return (json_text.compact(table) + "\n").encode()


def kernel(
    wheels: Sequence[KernelWheel],
    offer: Offer,
    *,
    code: Mapping[Path, DeviceCode],
    split: Mapping[Path, tuple[FamilyWheel, ...]],
    uploaded: Uploads,
    base_url: str | None,
) -> bytes:
    """Return the page of the kernel that has these wheels; `split` are those for one family of GPUs each."""
    newest = max(wheels, key=lambda kernel_wheel: (kernel_wheel.wheel.version, kernel_wheel.wheel.path.name))
    return templates.page(
        "kernel.html.j2",
        root=grid.TOP,
        name=newest.wheel.name,
        module=newest.module,
        summary=words.summary(newest),
        readme=words.description(newest),
        metadata=newest.metadata,
        links=_links(newest.metadata),
        requires=simple.requires(newest),
        chooser=chooser(offer),
        grids=grid.grids(wheels, code=code, split=split, uploaded=uploaded),
        repository=_repository(newest),
        made_with=wording.escaped(newest.metadata.builder or ""),
        project=wording.escaped(newest.metadata.inputs.project or ""),
        commit=wording.escaped(newest.metadata.commit or ""),
        **_address(base_url),
    )


def front(
    shown: Sequence[Card], environments: tuple[str, ...], *, values: Iterable[tuple[str, str]], base_url: str | None
) -> dict[str, bytes]:
    """Return the pages and files of all kernels, by their path in the site.

    Where the front page cannot have every kernel, there is also a list of all, and what the search reads.
    """
    common: dict[str, object] = {"count": len(shown), "filters": card_filters(shown), **_address(base_url)}
    here = {"root": "", "environments": environments, "more": len(shown) > ON_FRONT, "cards": shown[:ON_FRONT]}
    result = {"index.html": templates.page("index.html.j2", **common, **here)}
    if len(shown) > ON_FRONT:
        result["all/index.html"] = templates.page("all.html.j2", **common, root="../", cards=shown)
        result["kernels.json"] = cards_as_json(shown[ON_FRONT:])
    result["style.css"] = templates.page("site.css.j2", values=sorted({*values, *_INSTALLERS}))
    result["site.js"] = templates.page("site.js")
    return result


def values(offer: Offer, card: Card) -> frozenset[tuple[str, str]]:
    """Return every value that the page and the card of a kernel let one choose, with what it is a value of."""
    return frozenset(
        (
            *(("torch", words.value(torch)) for torch in offer.torches),
            *(("compute", compute) for compute in offer.computes),
            *(("system", system) for system in offer.systems),
            *(("backend", option.value) for option in card.backends),
            *(("gpu", option.value) for option in card.gpus),
        )
    )


def _address(base_url: str | None) -> dict[str, object]:
    return {"base": "URL" if base_url is None else base_url.rstrip("/"), "base_known": base_url is not None}


def _links(metadata: KernelMetadata) -> tuple[tuple[str, str], ...]:
    urls = (("source", metadata.source), ("upstream", metadata.upstream))
    return tuple((label, url) for label, url in urls if url and url.startswith(("https://", "http://")))


def _repository(kernel_wheel: KernelWheel) -> str | None:
    """Return the repository on GitHub that a kernel says it is from."""
    found = _GITHUB.fullmatch(kernel_wheel.metadata.source or "")
    return None if found is None else found[1]
