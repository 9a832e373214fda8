"""What the front page says of each kernel."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from builder import wording
from builder.publish.index import words
from builder.publish.index.chooser import Axis, Option
from builder.publish.index.picks import Offer
from builder.wheel.kernel_wheel import KernelWheel


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
    range: str
    wheels: str
    size: str
    """Of all its wheels."""


def card(wheels: Sequence[KernelWheel], offer: Offer) -> Card:
    """Return the card of a kernel that has these wheels."""
    newest = max(wheels, key=lambda each: (each.wheel.version, each.wheel.path.name))
    backends = sorted({each.variant.backend for each in wheels})
    return Card(
        name=newest.wheel.name,
        summary=words.summary(newest),
        version=newest.wheel.version.public,
        backends=tuple(Option(value=each.value, title=each.facts.title.removeprefix("the ")) for each in backends),
        torches=tuple(Option(value=words.value(each), title=str(each)) for each in offer.torches[::-1]),
        range=words.torches(offer.torches, among=offer.torches),
        wheels=f"{len(wheels)} wheel{'' if len(wheels) == 1 else 's'}",
        size=wording.size(sum(each.size for each in wheels)),
    )


def filters(cards: Iterable[Card]) -> tuple[Axis, ...]:
    """Return what cards can be picked by: all that any of them has."""
    listed = tuple(cards)
    backends = {option for card in listed for option in card.backends}
    torches = {option for card in listed for option in card.torches}
    return (
        Axis(name="backend", title="Backend", options=tuple(sorted(backends, key=lambda option: option.value))),
        Axis(name="torch", title="PyTorch", options=tuple(sorted(torches, key=_newest))),
    )


def _newest(option: Option) -> tuple[int, ...]:
    return tuple(-int(number) for number in option.title.split("."))


def as_json(cards: Iterable[Card]) -> bytes:
    """Return what the search reads of kernels that are not on the front page."""
    table = [
        {
            "name": card.name,
            "summary": card.summary,
            "version": card.version,
            "backends": {option.value: option.title for option in card.backends},
            "torches": [option.value for option in card.torches],
            "range": card.range,
            "wheels": card.wheels,
            "size": card.size,
        }
        for card in cards
    ]
    return (json.dumps(table, separators=(",", ":"), ensure_ascii=True) + "\n").encode()
