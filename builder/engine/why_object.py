"""Tell why the last build of a cell compiled a file again, and whether the next build will."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder import codec, render
from builder.kernel import Kernel
from builder.make.build_report import Built
from builder.make.ninja_log import File
from builder.make.objects import ObjectInputs
from builder.make.record import file_digests
from builder.matrix import Cell
from builder.plan.ask import Ask
from builder.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectHistory:
    """An object of the last build of a cell."""

    source: str
    text: str
    """Whether the last build compiled it, and why."""
    pending: tuple[str, ...] = ()
    """Files that have changed since that build."""

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {"source": self.source, "last": self.text, "changed-since": list(self.pending)}


def remember(store: Store, kernel: str, variant: str, built: Built) -> None:
    """Record the inputs of a build's objects, next to those of the build before."""
    name = _note(kernel, variant)
    last = store.note(name) or {}
    origins = {file["output"]: dict(file) for file in built.report.objects}
    now = {
        output: {"inputs": codec.encode(each), "file": origins.get(output)} for output, each in built.objects.items()
    }
    store.set_note(name, {"now": now, "before": last.get("now", {})})


def earlier(store: Store, kernel: str, variant: str, files: Sequence[File]) -> dict[str, File]:
    """Return the objects of the build before that of `files`, by path; empty if that build is unknown."""
    note = store.note(_note(kernel, variant)) or {}
    for name in ("now", "before"):
        known = _objects(note.get(name))
        shared = [file for file in files if file["output"] in known]
        # Files with the same times are from this build; a store that cannot be written still has the build before.
        if known and not (shared and all(file == known[file["output"]] for file in shared)):
            return known
    return {}


def _objects(table: Any) -> dict[str, File]:
    """Return the objects of a note, which another version of `builder` may have written."""
    tables = table.values() if isinstance(table, dict) else ()
    try:
        files = [codec.decode(File, each["file"]) for each in tables if each["file"] is not None]
    except (KeyError, TypeError, ValueError):
        return {}
    return {file["output"]: file for file in files}


def histories(kernel: Kernel, cell: Cell, ask: Ask, path: str) -> tuple[ObjectHistory, ...]:
    """Return the objects of a cell that were made from a file of the kernel; empty if no build is known.

    Raises:
        BuilderError: the kernel cannot be rendered for the cell.
    """
    note = ask.store.note(_note(kernel.config.general.name, cell.variant))
    if note is None:
        return ()
    project = render.render(
        kernel, cell.backend, unique_id=ask.options.unique_id, allow_unsafe_flags=ask.options.allow_unsafe_flags
    )
    return tuple(compared(note["now"], note["before"], path, file_digests(project.files)))


def compared(
    now: Mapping[str, Any], before: Mapping[str, Any], path: str, project: Mapping[str, str]
) -> Iterator[ObjectHistory]:
    """Yield the objects of the last build, `now`, made from `path`, each compared with the build `before`."""
    for output, each in sorted(now.items()):
        inputs = codec.decode(ObjectInputs, each["inputs"])
        if path not in inputs.files:
            continue
        earlier = codec.decode(ObjectInputs, before[output]["inputs"]) if output in before else None
        pending = tuple(name for name, digest in sorted(inputs.files.items()) if project.get(name) != digest)
        yield ObjectHistory(source=inputs.source, text=_text(each["file"], inputs, earlier), pending=pending)


def _text(file: Mapping[str, Any] | None, inputs: ObjectInputs, before: ObjectInputs | None) -> str:
    if file is not None and "cache" in file:
        where = "the store" if file["cache"] == "store" else file["cache"]
        return f"taken from {where}, compiled by {file['writer']} in {file['saved']:.1f} s"
    seconds = "" if file is None else f" in {file['end'] - file['start']:.1f} s"
    if before is None:
        return f"compiled{seconds}: the first build that is known"
    changed = inputs.changed_since(before)
    why = ", ".join(changed) if changed else "nothing, but no cache had it"
    return f"compiled{seconds}; changed: {why}"


def _note(kernel: str, variant: str) -> str:
    return f"objects-{kernel}-{variant}"
