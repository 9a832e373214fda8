"""The wheels of what a kernel requires by name: chosen by uv once, and remembered by the store."""

from collections.abc import Mapping
from dataclasses import asdict

from builder import json_text
from builder.environment import resolve
from builder.errors import ToolError
from builder.hashes import sha256
from builder.pins import PinnedWheel, PinSet
from builder.store import Store


def wheels(requires: tuple[str, ...], *, base: PinSet, store: Store, env: Mapping[str, str]) -> tuple[PinnedWheel, ...]:
    """Return the wheels that `base` lacks for some requirements; what it has is taken as it is.

    No wheel of a kernel depends on them: they are only for its load test, and are not in its build key.

    Raises:
        ToolError: no index has them, or none can be reached.
    """
    if not requires:
        return ()
    have = sorted(wheel.name for wheel in base.wheels)
    question = json_text.line([requires, base.system, base.python, have])
    name = f"requires-{sha256(question)}"
    known = store.note(name)
    if known is not None:
        return tuple(PinnedWheel(**wheel) for wheel in known["wheels"])
    try:
        found = resolve.of_requirements(requires, without=have, python=base.python, env=env)
    except resolve.UnresolvedError as error:
        raise ToolError(
            f"the load test needs what [wheel] requires, and uv finds no wheels of it\n{error.message}",
            help="correct 'requires' in [wheel], or build without the load test, with '--load-test skip'",
        ) from error
    store.set_note(name, {"wheels": [asdict(wheel) for wheel in found]})
    return found
