"""Whether a wheel is to be published: one of a quick build is not, and says so in its metadata.json."""

from collections.abc import Mapping
from typing import Any

from builder.errors import PublishError
from builder.wheel.options import BuildOptions

ARCHS = "archs"
"""Where `build` of metadata.json has the GPUs of a quick build."""
NOT_FOR_RELEASE = "not-for-release"
"""Where it has the reason."""


def of_build(options: BuildOptions) -> dict[str, object]:
    """Return what metadata.json says of a quick build; nothing for a full one."""
    if not options.only:
        return {}
    return {ARCHS: list(options.only), NOT_FOR_RELEASE: f"built for {', '.join(options.only)} alone"}


def obstacle(table: Mapping[str, Any]) -> str | None:
    """Return why a wheel is not to be published, by its metadata.json; None where nothing speaks against it."""
    build = table.get("build")
    reason = build.get(NOT_FOR_RELEASE) if isinstance(build, dict) else None
    return None if reason is None else str(reason)


def require(obstacles: Mapping[str, str | None], *, allowed: bool) -> None:
    """Refuse wheels of quick builds, by name, unless they are `allowed`.

    Raises:
        PublishError: naming each, with its reason.
    """
    found = [f"{name} ({reason})" for name, reason in obstacles.items() if reason is not None]
    if found and not allowed:
        raise PublishError(
            f"not for release: {', '.join(found)}", help="build without --archs, or pass --allow-quick to take them too"
        )
