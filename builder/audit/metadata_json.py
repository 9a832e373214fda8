"""Compare `metadata.json`, which the client reads, with the files that it names."""

import base64
import contextlib
import re
from collections.abc import Iterator, Mapping

from packaging.utils import canonicalize_name

from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.matrix import architectures
from builder.metadata import ARCHS_KEY, ID, KernelMetadata, is_digested, is_extension
from builder.untrusted import UntrustedError

RULE = "layout"

_REQUIRED = {"name": str, "id": str, "version": int, "license": str, "python-depends": list, "backend": dict}
_ORDER = (
    "name", "id", "version", "kernels-minver", "license", "upstream", "source", "python-depends", "kernel-depends",
    "extensions", "backend", "exports", "digest", "provenance",
)  # fmt: skip
_ARCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+:-]{0,63}", re.ASCII)
_SHOWN = 80


def check(subject: Subject) -> Iterator[Finding]:
    """Compare `metadata.json` with the wheel's name, its library and its files."""
    path = f"{subject.module}/metadata.json"
    if path not in subject.files:
        yield Finding(path, RULE, "metadata.json", "the wheel lacks it, so no client knows what the kernel is")
        return
    try:
        values = KernelMetadata.read(subject.text(path)).table
    except UntrustedError as error:
        yield Finding(path, RULE, "metadata.json", str(error))
        return
    yield from _keys(path, values)
    yield from _identity(path, values, subject)
    yield from _extensions(path, values, subject)
    yield from _backend(path, values, subject)
    yield from _digest(path, values, subject)


def _keys(path: str, values: Mapping[str, object]) -> Iterator[Finding]:
    for key, kind in _REQUIRED.items():
        if key not in values:
            yield Finding(path, RULE, key, "this key is missing")
        elif not isinstance(values[key], kind) or isinstance(values[key], bool):
            yield Finding(path, RULE, key, f"its value is {repr(values[key])[:_SHOWN]}, not of type {kind.__name__}")
    known = [key for key in values if key in _ORDER]
    for have, want in zip(known, sorted(known, key=_ORDER.index), strict=True):
        if have != want:
            yield Finding(path, RULE, have, f"its keys are not in their order: '{want}' belongs here")
            return


def _identity(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    name, ops = values.get("name"), values.get("id")
    if isinstance(name, str) and canonicalize_name(name) != subject.name:
        yield Finding(path, RULE, "name", f"it says '{name[:_SHOWN]}', the wheel '{subject.name}'")
    major = values.get("version")
    if isinstance(major, int) and str(major) != subject.version.split(".")[0].split("+")[0]:
        yield Finding(path, RULE, "version", f"it says {major}, the wheel {subject.version}")
    if isinstance(ops, str):
        if ID.fullmatch(ops) is None:
            yield Finding(path, RULE, "id", f"'{ops[:_SHOWN]}' is no Python name")
            return
        if subject.plan.ops is not None and ops != subject.plan.ops:
            yield Finding(path, RULE, "id", f"it says '{ops}', the plan '{subject.plan.ops}'")
        yield from _ops_file(f"{subject.generated}.py", ops, subject)


def _extensions(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    table = values.get("extensions", {})
    if not isinstance(table, dict) or not all(is_extension(name, ops) for name, ops in table.items()):
        why = "it is not a table from the names of extensions to the ids of their libraries"
        yield Finding(path, RULE, "extensions", why)
    else:
        ids = [each for each in (values.get("id"), *table.values()) if isinstance(each, str)]
        if len(set(ids)) < len(ids):
            yield Finding(path, RULE, "extensions", "two libraries have one id")
    promised = subject.plan.extensions
    for name in sorted((promised or frozenset()) - subject.metadata.extensions.keys()):
        yield Finding(path, RULE, f"extensions.{name}", f"the cell has the extension '{name}', and this file does not")
    for name, ops in subject.metadata.extensions.items():
        if promised is not None and name not in promised:
            yield Finding(path, RULE, f"extensions.{name}", f"the cell leaves the extension '{name}' out")
        yield from _ops_file(f"_ops_{name}.py", ops, subject)


def _ops_file(file: str, ops: str, subject: Subject) -> Iterator[Finding]:
    path = f"{subject.module}/{file}"
    if path not in subject.files or subject.noarch:
        return  # a noarch package finds its backend, and so its namespace, only when it is imported
    text = subject.text(path).decode("utf-8", "replace")
    if re.search(rf"(?<![A-Za-z0-9_]){re.escape(ops)}(?![A-Za-z0-9_])", text) is None:
        yield Finding(path, RULE, ops, f"it does not name '{ops}', the id of metadata.json")


def _backend(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    backend = values.get("backend")
    if not isinstance(backend, dict):
        return
    kind, archs = backend.get("type"), backend.get("archs")
    said = str(kind)[:_SHOWN]
    if subject.facts is None:
        why = f"'{said}' and the wheel's label '{subject.version}' do not go together"
        yield Finding(path, RULE, "backend.type", why)
    elif kind != subject.facts.backend.value:
        why = f"it says '{said}', the wheel's label '{subject.facts.backend}'"
        yield Finding(path, RULE, "backend.type", why)
    if archs is None:
        return
    if not isinstance(archs, list) or not all(isinstance(arch, str) and _ARCH.fullmatch(arch) for arch in archs):
        yield Finding(path, RULE, ARCHS_KEY, "it is not a list of architectures, such as '9.0a' or 'gfx90a'")
        return
    if archs != sorted(set(archs), key=lambda arch: (architectures.natural(arch), arch)):
        yield Finding(path, RULE, ARCHS_KEY, f"{' '.join(archs)} is not sorted by number, without doubles")
    planned = subject.plan.archs
    if planned is not None and set(archs) != set(planned):
        yield Finding(path, RULE, ARCHS_KEY, f"it says '{' '.join(archs)}', the plan '{' '.join(planned)}'")


def _digest(path: str, values: Mapping[str, object], subject: Subject) -> Iterator[Finding]:
    digest = values.get("digest")
    if digest is None:
        return
    files = digest.get("files") if isinstance(digest, dict) else None
    if not isinstance(digest, dict) or digest.get("algorithm") != "sha256" or not isinstance(files, dict):
        yield Finding(path, RULE, "digest", "it is not {algorithm: 'sha256', files: {…}}")
        return
    package = f"{subject.module}/"
    members = {name.removeprefix(package): file for name, file in subject.files.items() if name.startswith(package)}
    expected = {name: file.sha256 for name, file in members.items() if is_digested(name)}
    for name in sorted(expected.keys() - files.keys()):
        yield Finding(path, RULE, name, "the digest does not name this file")
    for name in sorted(files.keys() - expected.keys()):
        yield Finding(path, RULE, str(name), "the digest names it, and it is not in the wheel or not to be digested")
    for name in sorted(expected.keys() & files.keys()):
        found, hashed = None, files[name]
        if isinstance(hashed, str):
            with contextlib.suppress(ValueError):
                found = base64.b64decode(hashed, validate=True)
        if found != expected[name]:
            yield Finding(path, RULE, name, "the digest's hash is not that of the file")
