"""The pages for people: a front page with a card for each kernel, and a page for each kernel."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from builder import pages, wording
from builder.publish.index import cards, chooser, gpus, grid, picks, words
from builder.publish.index.cards import Card
from builder.publish.index.gpus import DeviceCode
from builder.publish.index.picks import Offer
from builder.wheel.kernel_wheel import KernelWheel

ON_FRONT = 100
"""How many cards the front page has; more make it slow to load."""
_GITHUB = re.compile(r"https://github\.com/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")


def render(
    wheels: Sequence[KernelWheel], environments: tuple[str, ...], *, base_url: str | None, files: str
) -> dict[str, bytes]:
    """Return the pages, by their path in the site; `files` is where the wheels are in it."""
    address = {"base": "URL" if base_url is None else base_url.rstrip("/"), "base_known": base_url is not None}
    kernels: dict[str, list[KernelWheel]] = {}
    for kernel_wheel in wheels:
        kernels.setdefault(kernel_wheel.wheel.name, []).append(kernel_wheel)
    code = gpus.read(wheels)
    result = {}
    offers = []
    shown = []
    for name, own in sorted(kernels.items()):
        offer = picks.offer(own)
        offers.append(offer)
        shown.append(cards.card(own, offer, code))
        result[f"kernels/{name}/index.html"] = _kernel(name, own, offer, code=code, files=f"../../{files}", **address)
    result |= front(shown, environments, **address)
    result["style.css"] = pages.render("site.css.j2", values=_values(offers, shown))
    result["site.js"] = pages.render("site.js")
    return result


def _kernel(
    name: str,
    own: Sequence[KernelWheel],
    offer: Offer,
    *,
    code: Mapping[Path, DeviceCode],
    files: str,
    **address: object,
) -> bytes:
    newest = max(own, key=lambda kernel_wheel: (kernel_wheel.wheel.version, kernel_wheel.wheel.path.name))
    return pages.render(
        "kernel.html.j2",
        root="../../",
        name=name,
        module=newest.module,
        summary=words.summary(newest),
        readme=words.description(newest),
        metadata=newest.metadata,
        links=_links(newest),
        requires=chooser.requires(newest),
        chooser=chooser.chooser(offer),
        grids=grid.grids(own, files=files, code=code),
        repository=_repository(newest),
        made_with=_text(newest, "provenance", "kernel-builder", "version"),
        project=_text(newest, "build", "project"),
        commit=_text(newest, "provenance", "kernel", "commit"),
        **address,
    )


def front(shown: Sequence[Card], environments: tuple[str, ...], **address: object) -> dict[str, bytes]:
    """Return the front page; where it cannot have every kernel, also a list of all, and what the search reads."""
    common: dict[str, object] = {"count": len(shown), "filters": cards.filters(shown), **address}
    here = {"root": "", "environments": environments, "more": len(shown) > ON_FRONT, "cards": shown[:ON_FRONT]}
    result = {"index.html": pages.render("index.html.j2", **common, **here)}
    if len(shown) > ON_FRONT:
        result["all/index.html"] = pages.render("all.html.j2", **common, root="../", cards=shown)
        result["kernels.json"] = cards.as_json(shown[ON_FRONT:])
    return result


def _values(offers: Sequence[Offer], shown: Sequence[Card]) -> Sequence[tuple[str, str]]:
    """Return every value that some page lets one choose, with what it is a value of."""
    found = {("torch", words.value(torch)) for offer in offers for torch in offer.torches}
    found |= {("compute", compute) for offer in offers for compute in offer.computes}
    found |= {("system", system) for offer in offers for system in offer.systems}
    found |= {("installer", value) for value, _ in chooser.INSTALLERS}
    found |= {("backend", option.value) for card in shown for option in card.backends}
    found |= {("gpu", option.value) for card in shown for option in card.gpus}
    return sorted(found)


def _links(kernel_wheel: KernelWheel) -> tuple[tuple[str, str], ...]:
    urls = ((label, kernel_wheel.metadata.get(label)) for label in ("source", "upstream"))
    return tuple((label, str(url)) for label, url in urls if str(url).startswith(("https://", "http://")))


def _repository(kernel_wheel: KernelWheel) -> str | None:
    """Return the repository on GitHub that a kernel says it is from."""
    found = _GITHUB.fullmatch(str(kernel_wheel.metadata.get("source")))
    return None if found is None else found[1]


def _text(kernel_wheel: KernelWheel, *keys: str) -> str:
    """Return a text of the metadata, or an empty one where it has none."""
    value: object = kernel_wheel.metadata
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return wording.escaped(value) if isinstance(value, str) else ""
