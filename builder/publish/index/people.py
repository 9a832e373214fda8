"""The pages for people: a front page with a card for each kernel, and a page with a chooser for each kernel."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from builder import json_text, templates, wording
from builder.config import Framework, Version
from builder.config.gpus import known
from builder.matrix import rows
from builder.metadata import KernelMetadata
from builder.publish.index import grid, words
from builder.publish.index.grid import View
from builder.publish.index.table import Environment, Pick, Place, Table, in_matrix, systems_of, torch_index
from builder.wheel.kernel_wheel import KernelWheel

INSTALLERS = {"pip": "pip", "uv": "uv", "pyproject": "pyproject.toml", "kernels": "kernels"}
ON_FRONT = 100
"""The number of cards on the front page; more would load slowly."""
_HUB = re.compile(r"https://huggingface\.co/(?:kernels/)?([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)/?")
_GITHUB = re.compile(r"https://github\.com/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")


def chooser(table: Table) -> View:
    """Return all choices of a page, and the answer to each; the first choice has an answer."""
    torch, (compute, system) = _first(table)
    axes = (
        ("torch", "PyTorch", {words.value(each): str(each) for each in reversed(table.torches)}, words.value(torch)),
        ("compute", "Compute", {each: words.compute(each) for each in table.computes}, compute),
        ("system", "System", {each: words.system(each) for each in table.systems}, system),
        ("installer", "Installer", INSTALLERS, "pip"),
    )
    return {
        "axes": [
            {
                "name": name,
                "title": title,
                "options": [
                    {"value": value, "title": said, "chosen": value == chosen} for value, said in values.items()
                ],
            }
            for name, title, values, chosen in axes
        ],
        "answers": [_answer(pick, among=table.torches) for pick in table.picks],
        "lacks": list(_lacks(table)),
    }


def _first(table: Table) -> tuple[Version, Place]:
    """Return the most common choice: a released PyTorch, CUDA, x86_64, and the newest of these."""
    released = {row.torch for row in rows() if row.set == "release"}

    def weight(each: tuple[Version, Place]) -> tuple[bool, bool, bool, Version, str]:
        torch, (compute, system) = each
        return torch in released, compute.startswith("cu"), system == "x86_64-linux", torch, compute

    return max(((torch, pick.place) for pick in table.picks for torch in pick.torches), key=weight)


def _answer(pick: Pick, *, among: Sequence[Version]) -> View:
    """Return the wheel to install for some choices, as the page shows it."""
    best = pick.wheels[0]
    compute, system = pick.place
    where = f"{words.compute(compute)}, {words.system(system)}"
    return {
        "torches": [words.value(torch) for torch in pick.torches],
        "compute": compute,
        "system": system,
        "version": best.wheel.version.public,
        "built_for": f"torch {words.torches(pick.torches, among=among)}, {where}",
        "wheels": [(each.wheel.path.name, wording.size(each.size)) for each in pick.wheels],
        "frameworks": list(_frameworks(pick)),
        "requires": [shlex.quote(wording.escaped(each)) for each in _others(best)],
        "hub": _hub(best),
    }


def _frameworks(pick: Pick) -> Iterator[View]:
    """Yield the PyTorch of each choice, and the index that has it, where that is not the default one."""
    if pick.wheels[0].variant.framework in (Framework.TORCH, Framework.TORCH_NOARCH):
        for torch in pick.torches:
            index = torch_index(torch, pick.place)
            yield {"torch": words.value(torch), "requirement": f"torch=={torch}.*", "index": index}


def pip_lines(wheel: KernelWheel, environment: Environment, address: str) -> Iterator[str]:
    """Yield the commands that install a wheel from nothing, given an environment, and the address of its index."""
    torch, compute = environment
    place = compute, wheel.variant.system or systems_of(compute)[0]
    for each in _frameworks(Pick(place=place, torches=(torch,), wheels=(wheel,))):
        index = [] if each["index"] is None else ["--index-url", each["index"]]
        yield shlex.join(["pip", "install", *index, each["requirement"]])
    others = _others(wheel)
    if others:
        yield shlex.join(["pip", "install", *map(wording.escaped, others)])
    yield shlex.join(["pip", "install", "--index-url", address, wheel.wheel.name])


def _others(kernel_wheel: KernelWheel) -> tuple[str, ...]:
    """Return what must be installed besides PyTorch."""
    if kernel_wheel.variant.framework is Framework.TVM_FFI:
        return tuple(map(str, kernel_wheel.fields.get_all("Requires-Dist", [])))
    return words.requires(kernel_wheel)


def _lacks(table: Table) -> Iterator[View]:
    """Yield why there is no wheel: one reason for all systems of a compute platform with the same reason."""
    among = table.torches
    taken = {(torch, pick.place) for pick in table.picks for torch in pick.torches}
    found: dict[tuple[str, tuple[Version, ...], bool], list[str]] = {}
    for place in ((compute, system) for compute in table.computes for system in table.systems):
        for listed in (True, False):
            lacking = (torch for torch in among if (torch, place) not in taken and in_matrix(torch, place) is listed)
            found.setdefault((place[0], tuple(lacking), listed), []).append(place[1])
    for (compute, torches, listed), systems in found.items():
        if not torches:
            continue
        title = words.compute(compute)
        there = "; ".join(
            f"torch {words.torches(pick.torches, among=among)} on {words.system(pick.place[1])}"
            for pick in table.picks
            if pick.place[0] == compute
        )
        yield {
            "torches": [words.value(torch) for torch in torches],
            "compute": compute,
            "systems": systems,
            "why": f"There is no wheel for torch {words.torches(torches, among=among)} with {title} on "
            f"{' and '.join(map(words.system, systems))}: "
            + ("it was not built." if listed else "no such PyTorch is known."),
            "instead": f"With {title} there is: {there}.",
        }


def _hub(kernel_wheel: KernelWheel) -> str | None:
    """Return the repository that a kernel names, or a placeholder; None if the client cannot load the kernel."""
    variant = kernel_wheel.variant
    if variant.python is not None or variant.framework is Framework.CTYPES:
        return None
    metadata = kernel_wheel.metadata
    said = (_HUB.fullmatch(url or "") for url in (metadata.source, metadata.upstream))
    known = next((match[1] for match in said if match is not None), None)
    return known or f"OWNER/{kernel_wheel.wheel.name}"


@dataclass(frozen=True, slots=True)
class Option:
    """A value by which visitors filter kernels."""

    value: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A kernel at a glance."""

    name: str
    summary: str
    version: str
    """The newest version."""
    backends: tuple[Option, ...]
    torches: tuple[Option, ...]
    """The PyTorch versions, the newest first."""
    gpus: tuple[Option, ...]
    """The GPUs that run one of its wheels, or may run one whose code is unknown."""
    range: str
    wheels: str
    size: str
    """The size of all its wheels."""
    released: str
    """The upload day of its newest version; empty if unknown."""

    @classmethod
    def of(cls, table: Table) -> "Card":
        """Return the card of a kernel."""
        backends = sorted({each.variant.backend for each in table.wheels})
        running = {gpu.arch for each in table.wheels for gpu in table.code[each.wheel.path].running}
        return cls(
            name=table.name,
            summary=words.summary(table.newest),
            version=table.version,
            backends=tuple(Option(each.value, each.facts.title.removeprefix("the ")) for each in backends),
            torches=tuple(Option(words.value(each), str(each)) for each in reversed(table.torches)),
            gpus=tuple(Option(gpu.arch, words.gpu_title(gpu)) for gpu in known() if gpu.arch in running),
            range=words.torches(table.torches, among=table.torches),
            wheels=f"{len(table.wheels)} wheel{'' if len(table.wheels) == 1 else 's'}",
            size=wording.size(sum(each.size for each in table.wheels)),
            released=table.released,
        )

    def to_json(self) -> dict[str, object]:
        """Return the search data of a kernel that is not on the front page."""
        return {
            "name": self.name,
            "summary": self.summary,
            "version": self.version,
            "backends": {option.value: option.title for option in self.backends},
            "torches": [option.value for option in self.torches],
            "gpus": [option.value for option in self.gpus],
            "range": self.range,
            "wheels": self.wheels,
            "size": self.size,
            **({"released": self.released} if self.released else {}),
        }


def _filters(cards: Sequence[Card]) -> list[View]:
    """Return the filters of the cards: every value that any card has."""
    order = {gpu.arch: place for place, gpu in enumerate(known())}
    axes = (
        ("backend", "Backend", {each for card in cards for each in card.backends}, lambda each: each.value),
        ("torch", "PyTorch", {each for card in cards for each in card.torches}, _newest_first),
        ("gpu", "GPU", {each for card in cards for each in card.gpus}, lambda each: order[each.value]),
    )
    return [
        {"name": name, "title": title, "options": sorted(options, key=key)}
        for name, title, options, key in axes
        if options
    ]


def _newest_first(torch: Option) -> tuple[int, ...]:
    return tuple(-int(number) for number in torch.title.split("."))


def kernel(table: Table, *, base_url: str | None) -> bytes:
    """Return the page of a kernel."""
    newest = table.newest
    metadata = newest.metadata
    repository = _GITHUB.fullmatch(metadata.source or "")
    return templates.page(
        "kernel.html.j2",
        root=grid.TOP,
        name=table.name,
        module=newest.module,
        summary=words.summary(newest),
        readme=words.description(newest),
        metadata=metadata,
        links=_links(metadata),
        requires=words.requires(newest),
        chooser=chooser(table),
        grids=grid.grids(table),
        repository=None if repository is None else repository[1],
        made_with=wording.escaped(metadata.builder or ""),
        project=wording.escaped(metadata.inputs.project or ""),
        commit=wording.escaped(metadata.commit or ""),
        **_address(base_url),
    )


def front(
    cards: Sequence[Card], environments: Sequence[str], *, places: Iterable[Place], base_url: str | None
) -> dict[str, bytes]:
    """Return the pages and files about all kernels, by their path in the site.

    If the front page has no room for every kernel, there are also a list of all, and data for the search. The style has
    a rule for each choice of a page; `places` are those of the kernels.
    """
    filters = _filters(cards)
    values = {(axis["name"], option.value) for axis in filters for option in axis["options"]}
    values |= {("installer", value) for value in INSTALLERS}
    values |= {value for compute, system in places for value in (("compute", compute), ("system", system))}
    common: dict[str, object] = {"count": len(cards), "filters": filters, **_address(base_url)}
    here = {"root": "", "environments": environments, "more": len(cards) > ON_FRONT, "cards": cards[:ON_FRONT]}
    result = {"index.html": templates.page("index.html.j2", **common, **here)}
    if len(cards) > ON_FRONT:
        result["all/index.html"] = templates.page("all.html.j2", **common, root="../", cards=cards)
        rest = [card.to_json() for card in cards[ON_FRONT:]]
        result["kernels.json"] = (json_text.compact(rest) + "\n").encode()
    result["style.css"] = templates.page("site.css.j2", values=sorted(values))
    result["site.js"] = templates.page("site.js")
    return result


def _address(base_url: str | None) -> dict[str, object]:
    return {"base": "URL" if base_url is None else base_url.rstrip("/"), "base_known": base_url is not None}


def _links(metadata: KernelMetadata) -> list[tuple[str, str]]:
    urls = (("source", metadata.source), ("upstream", metadata.upstream))
    return [(label, url) for label, url in urls if url and url.startswith(("https://", "http://"))]
