"""What the front page says of each kernel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import json_text, wording
from builder.config.gpus import known
from builder.publish.index import uploads, words
from builder.publish.index.chooser import Axis, Option
from builder.publish.index.gpus import DeviceCode, said
from builder.publish.index.picks import Offer
from builder.publish.index.uploads import Uploads
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
    gpus: tuple[Option, ...]
    """Those that run some wheel of it, or of which no wheel says that they do not."""
    range: str
    wheels: str
    size: str
    """Of all its wheels."""
    released: str
    """The day on which its newest version came into the index; empty where that is not known."""


def card(
    wheels: Sequence[KernelWheel], offer: Offer, code: Mapping[Path, DeviceCode], uploaded: Uploads = uploads.NONE
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
        gpus=tuple(Option(value=gpu.arch, title=said(gpu)) for gpu in known() if gpu.arch in running),
        range=words.torches(offer.torches, among=offer.torches),
        wheels=f"{len(wheels)} wheel{'' if len(wheels) == 1 else 's'}",
        size=wording.size(sum(each.size for each in wheels)),
        released=uploads.day_of((each for each in wheels if _is_of(newest, each)), uploaded),
    )


def _is_of(newest: KernelWheel, each: KernelWheel) -> bool:
    return each.wheel.version.public == newest.wheel.version.public


def filters(cards: Iterable[Card]) -> tuple[Axis, ...]:
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


def as_json(cards: Iterable[Card]) -> bytes:
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
