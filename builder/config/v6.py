"""Edition 6, a preview: edition 5, except that `general.upstream` is a list of repositories."""

from dataclasses import dataclass, field
from typing import Literal

from builder.config import v5
from builder.config.giturl import GitUrl
from builder.config.shape import carried


@dataclass(frozen=True, slots=True, kw_only=True)
class General(v5.General):
    """Settings of the whole kernel."""

    edition: Literal[6] = field(default=6, metadata={"required": True})  # type: ignore[assignment]
    upstream: tuple[GitUrl, ...] = ()  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(v5.Config):
    """A file of edition 6."""

    general: General

    def upgrade(self) -> v5.Config:
        """Return the same kernel in edition 5; clients are told only the first repository."""
        first, *more = self.general.upstream or (None,)
        general = carried(self.general, v5.General, edition=v5.EDITION, upstream=first, more_upstreams=tuple(more))
        return carried(self, v5.Config, general=general)
