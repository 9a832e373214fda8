"""Build a cell again under varied circumstances, compare the bytes, and find the circumstance that changes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder import codec
from builder.repro import difference
from builder.repro.difference import WheelDifference
from builder.repro.setting import Builder, BuiltWheel, Circumstances, Workspace
from builder.repro.variations import Variation, frozen

REPEATED = "repetition"
"""The cause of differences without any variation: random numbers, process ids."""
_CLOCK = "time"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A variation, with the differences that it causes."""

    variations: tuple[str, ...]
    """One name, or several that only cause a difference together."""
    differences: tuple[WheelDifference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of varied builds of a cell."""

    variant: str
    builds: int
    varied: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    """Variations that this machine cannot make, with the reasons."""
    wheel: Path
    sha256: str
    causes: tuple[Cause, ...]
    other: Path | None = None
    """The first wheel that differs."""

    @property
    def same(self) -> bool:
        """Whether all builds gave the same bytes."""
        return not self.causes

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "variant": self.variant,
            "same": self.same,
            "builds": self.builds,
            "varied": list(self.varied),
            "skipped": dict(self.skipped),
            "sha256": self.sha256,
            "causes": codec.encode(self.causes),
        }


def repeat(
    builder: Builder, setting: Circumstances, workspace: Workspace, *, wanted: Sequence[Variation], times: int, say: Say
) -> Result:
    """Build once unvaried, and `times` - 1 times with all of `wanted`; then look for the cause of a difference."""
    skipped = tuple((each.name, why) for each in wanted if (why := each.why_not(workspace)) is not None)
    left = tuple(each for each in wanted if each.name not in dict(skipped))
    say("building as it is")
    first = builder.build(setting)
    causes: tuple[Cause, ...] = ()
    other: Path | None = None
    for number in range(1, times):
        names = ", ".join(each.name for each in left) or "nothing"
        say(f"building again, round {number} of {times - 1}: {names} varied")
        search = _Search(
            builder=builder, setting=setting, workspace=replace(workspace, round=number), first=first, say=say
        )
        varied = search.vary(left)
        if varied.sha256 != first.sha256:
            other = varied.wheel
            causes = search.causes(left, varied)
            break
    return Result(
        variant=builder.variant,
        builds=builder.count,
        varied=tuple(each.name for each in left),
        skipped=skipped,
        wheel=first.wheel,
        sha256=first.sha256,
        causes=causes,
        other=other,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Searches for the variations that cause a difference from the first build."""

    builder: Builder
    setting: Circumstances
    workspace: Workspace
    first: BuiltWheel
    say: Say

    def vary(self, variations: Sequence[Variation]) -> BuiltWheel:
        setting = self.setting
        for variation in variations:
            setting = variation.apply(setting, self.workspace)
        return self.builder.build(setting)

    def causes(self, variations: tuple[Variation, ...], varied: BuiltWheel) -> tuple[Cause, ...]:
        """Find the causes: first differences without any variation, then, by halving, those of each variation."""
        self.say("the bytes differ: building once more as it is")
        noise = self._new(self.builder.build(self.setting), frozenset())
        found = [Cause(variations=(self._why_unstable(),), differences=noise)] if noise else []
        ignored = frozenset(map(_place, noise))
        if self._new(varied, ignored):
            found += self._halve(variations, varied, ignored)
        return tuple(found)

    def _why_unstable(self) -> str:
        """Return why builds differ without variations: because of the clock, or for another reason."""
        setting = frozen(self.setting, self.workspace)
        if setting == self.setting:
            return REPEATED
        self.say("it differs by itself: building twice with a clock that stands still")
        return _CLOCK if self.builder.build(setting).sha256 == self.builder.build(setting).sha256 else REPEATED

    def _halve(
        self, variations: tuple[Variation, ...], varied: BuiltWheel, ignored: frozenset[tuple[str, str]]
    ) -> list[Cause]:
        middle = len(variations) // 2
        found: list[Cause] = []
        for half in (variations[:middle], variations[middle:]) if middle else ():
            self.say(f"building with {', '.join(each.name for each in half)} varied")
            built = self.vary(half)
            if self._new(built, ignored):
                found += self._halve(half, built, ignored)
        names = tuple(each.name for each in variations)
        return found or [Cause(variations=names, differences=self._new(varied, ignored))]

    def _new(self, built: BuiltWheel, ignored: frozenset[tuple[str, str]]) -> tuple[WheelDifference, ...]:
        """Return the differences from the first build, without those in ignored places."""
        found = difference.between(self.first.wheel, built.wheel)
        return tuple(each for each in found if _place(each) not in ignored)


def _place(found: WheelDifference) -> tuple[str, str]:
    """Return the place of a difference, without random parts of it such as a symbol's name."""
    return found.member, "symbol" if found.part.startswith("symbol ") else found.part
