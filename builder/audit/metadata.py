"""`metadata.json`: what the client reads, compared with the files that it names."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.config.values import Framework
from builder.metadata import ARCHS_KEY, ID, KernelMetadata, is_digested, is_extension
from builder.untrusted import UntrustedError

RULE = "layout"

_REQUIRED = {"name": str, "id": str, "version": int, "license": str, "python-depends": list, "backend": dict}
_ORDER = (
    "name", "id", "version", "kernels-minver", "license", "upstream", "source", "python-depends", "kernel-depends",
    "extensions", "backend", "exports", "digest", "provenance",
)  # fmt: skip
_ARCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+:-]{0,63}", re.ASCII)
_LONGEST_NUMBER = 9
_SHOWN = 80


def check(subject: Subject) -> Iterator[Finding]:
    """Compare `metadata.json` with the wheel's name, its library and its files."""
    path = f"{subject.module}/metadata.json"
    if path not in subject.files:
        yield _finding(path, "metadata.json", "the wheel lacks it, so no client knows what the kernel is")
        return
    try:
        values = KernelMetadata.read(subject.text(path)).table
    except UntrustedError as error:
        yield _finding(path, "metadata.json", str(error))
        return
    yield from _keys(path, values)
    yield from _identity(path, values, subject)
    yield from _extensions(path, values, subject)
    yield from _backend(path, values, subject)
    yield from _digest(path, values, subject)


def _finding(file: str, symbol: str, why: str) -> Finding:
    return Finding(file, RULE, symbol, why)


def _keys(path: str, values: Mapping[str, object]) -> Iterator[Finding]:
    for key, kind in _REQUIRED.items():
        if key not in values:
            yield _finding(path, key, "this key is missing")
        elif not isinstance(values[key], kind) or isinstance(values[key], bool):
            yield _finding(path, key, f"its value is {repr(values[key])[:_SHOWN]}, not of type {kind.__name__}")
    known = [key for key in values if key in _ORDER]
    for have, want in zip(known, sorted(known, key=_ORDER.index), strict=True):
        if have != want:
            yield _finding(path, have, f"its keys are not in their order: '{want}' belongs here")
            return


def _identity(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    name, ops = values.get("name"), values.get("id")
    if isinstance(name, str) and canonicalize_name(name) != subject.name:
        yield _finding(path, "name", f"it says '{name[:_SHOWN]}', the wheel '{subject.name}'")
    major = values.get("version")
    if isinstance(major, int) and str(major) != subject.version.split(".")[0].split("+")[0]:
        yield _finding(path, "version", f"it says {major}, the wheel {subject.version}")
    if isinstance(ops, str):
        if ID.fullmatch(ops) is None:
            yield _finding(path, "id", f"'{ops[:_SHOWN]}' is no Python name")
            return
        if subject.plan.ops is not None and ops != subject.plan.ops:
            yield _finding(path, "id", f"it says '{ops}', the plan '{subject.plan.ops}'")
        yield from _ops_file(f"{subject.generated}.py", ops, subject)


def _extensions(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    table = values.get("extensions", {})
    if not isinstance(table, dict) or not all(is_extension(name, ops) for name, ops in table.items()):
        yield _finding(
            path, "extensions", "it is not a table from the names of extensions to the ids of their libraries"
        )
    else:
        ids = [each for each in (values.get("id"), *table.values()) if isinstance(each, str)]
        if len(set(ids)) < len(ids):
            yield _finding(path, "extensions", "two libraries have one id")
    promised = subject.plan.extensions
    for name in sorted((promised or frozenset()) - subject.extensions.keys()):
        yield _finding(path, f"extensions.{name}", f"the cell has the extension '{name}', and this file does not")
    for name, ops in subject.extensions.items():
        if promised is not None and name not in promised:
            yield _finding(path, f"extensions.{name}", f"the cell leaves the extension '{name}' out")
        yield from _ops_file(f"_ops_{name}.py", ops, subject)


def _ops_file(file: str, ops: str, subject: Subject) -> Iterator[Finding]:
    path = f"{subject.module}/{file}"
    text = subject.text(path).decode("utf-8", "replace")
    if path in subject.files and re.search(rf"(?<![A-Za-z0-9_]){re.escape(ops)}(?![A-Za-z0-9_])", text) is None:
        noarch = subject.facts is not None and subject.facts.framework is Framework.TORCH_NOARCH
        if not noarch:  # a noarch package finds its backend, and so its namespace, when it is imported
            yield _finding(path, ops, f"it does not name '{ops}', the id of metadata.json")


def _backend(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    backend = values.get("backend")
    if not isinstance(backend, dict):
        return
    kind, archs = backend.get("type"), backend.get("archs")
    if subject.facts is None:
        yield _finding(
            path, "backend.type", f"'{str(kind)[:_SHOWN]}' and the wheel's label '{subject.version}' do not go together"
        )
    elif kind != subject.facts.backend.value:
        yield _finding(
            path, "backend.type", f"it says '{str(kind)[:_SHOWN]}', the wheel's label '{subject.facts.backend}'"
        )
    if archs is None:
        return
    if not isinstance(archs, list) or not all(isinstance(arch, str) and _ARCH.fullmatch(arch) for arch in archs):
        yield _finding(path, ARCHS_KEY, "it is not a list of architectures, such as '9.0a' or 'gfx90a'")
        return
    if archs != sorted(set(archs), key=natural):
        yield _finding(path, ARCHS_KEY, f"{' '.join(archs)} is not sorted by number, without doubles")
    planned = subject.plan.archs
    if planned is not None and set(archs) != set(planned):
        yield _finding(path, ARCHS_KEY, f"it says '{' '.join(archs)}', the plan '{' '.join(planned)}'")


def natural(arch: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts numbers as numbers: 8.9 before 10.0."""
    return tuple(
        (int(part), "") if index % 2 and len(part) <= _LONGEST_NUMBER else (-1, part)
        for index, part in enumerate(re.split(r"([0-9]+)", arch))
    )


def _digest(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    digest = values.get("digest")
    if digest is None:
        return
    files = digest.get("files") if isinstance(digest, dict) else None
    if not isinstance(digest, dict) or digest.get("algorithm") != "sha256" or not isinstance(files, dict):
        yield _finding(path, "digest", "it is not {algorithm: 'sha256', files: {…}}")
        return
    expected = {
        name.removeprefix(f"{subject.module}/"): file.sha256
        for name, file in subject.files.items()
        if name.startswith(f"{subject.module}/") and is_digested(name.removeprefix(f"{subject.module}/"))
    }
    for name in sorted(expected.keys() - files.keys()):
        yield _finding(path, name, "the digest does not name this file")
    for name in sorted(files.keys() - expected.keys()):
        yield _finding(path, str(name), "the digest names it, and it is not in the wheel or not to be digested")
    for name in sorted(expected.keys() & files.keys()):
        if _decode(files[name]) != expected[name]:
            yield _finding(path, name, "the digest's hash is not that of the file")


def _decode(value: object) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
