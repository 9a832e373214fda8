"""The pages for people: a front page with a card for each kernel, and a page for each kernel."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from builder import templates, wording
from builder.metadata import KernelMetadata
from builder.publish.index import cards, chooser, grid, words
from builder.publish.index.by_family import FamilyWheel
from builder.publish.index.cards import Card
from builder.publish.index.gpus import DeviceCode
from builder.publish.index.picks import Offer
from builder.publish.index.uploads import Uploads
from builder.wheel.kernel_wheel import KernelWheel

ON_FRONT = 100
"""How many cards the front page has; more make it slow to load."""
_INSTALLERS = frozenset(("installer", value) for value, _ in chooser.INSTALLERS)
_GITHUB = re.compile(r"https://github\.com/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")


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
        requires=chooser.requires(newest),
        chooser=chooser.chooser(offer),
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
    common: dict[str, object] = {"count": len(shown), "filters": cards.filters(shown), **_address(base_url)}
    here = {"root": "", "environments": environments, "more": len(shown) > ON_FRONT, "cards": shown[:ON_FRONT]}
    result = {"index.html": templates.page("index.html.j2", **common, **here)}
    if len(shown) > ON_FRONT:
        result["all/index.html"] = templates.page("all.html.j2", **common, root="../", cards=shown)
        result["kernels.json"] = cards.as_json(shown[ON_FRONT:])
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
