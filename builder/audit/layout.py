"""Check RECORD, WHEEL and METADATA, the files next to them, and `metadata.json` with its digest."""

import base64
import csv
import io
import re
from collections.abc import Iterator
from email.message import Message
from itertools import islice
from pathlib import PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from builder.audit import metadata_json
from builder.audit.report import Finding
from builder.audit.subject import Library, MemberFile, Subject, requirement, requirements
from builder.config.values import Framework, Version
from builder.untrusted import UntrustedError
from builder.wheel import fields
from builder.wording import listed

RULE = "layout"

_BYTECODE = (".pyc", ".pyo")
_LEFT_OVER = (
    ".a", ".bak", ".d", ".ii", ".lib", ".log", ".ninja", ".o", ".obj", ".orig", ".rej", ".swp", ".tmp", "~",
)  # fmt: skip
_ACTED_ON = frozenset(("entry_points.txt",))
"""Files of the `.dist-info` directory that take effect when installed: the commands and plugins of a package."""
_MOST_MODULES = 10
_LEFT_OVER_NAMES = frozenset(("CMakeCache.txt", "CMakeLists.txt", "build.ninja", "compile_commands.json", "Makefile"))

_FRAMEWORKS = {Framework.TORCH: "torch", Framework.TVM_FFI: "apache-tvm-ffi"}
_SHOWN = 80
_MOST_ROWS = 1 << 15
_UNHASHED = ("RECORD.jws", "RECORD.p7s")


def check(subject: Subject) -> Iterator[Finding]:
    """Judge the files of the wheel, and their descriptions of each other."""
    yield from check_description(subject)
    yield from _places(subject)
    yield from _libraries(subject)
    yield from metadata_json.check(subject)


def check_description(subject: Subject) -> Iterator[Finding]:
    """Compare RECORD, WHEEL and METADATA with the wheel."""
    yield from _record(subject)
    for name, judge in (("WHEEL", _wheel), ("METADATA", _metadata)):
        path = f"{subject.dist_info}/{name}"
        if path not in subject.files:
            yield Finding(path, RULE, name, "the wheel lacks it")
            continue
        message = Message()
        try:
            message = fields.read(subject.text(path))
        except UntrustedError as error:
            yield Finding(path, RULE, name, str(error))
        yield from judge(path, message, subject)


def _places(subject: Subject) -> Iterator[Finding]:
    extensions = subject.metadata.extensions
    modules = ("__init__", subject.generated, *(f"{subject.generated}_{name}" for name in extensions))
    for required in (f"{subject.module}/{name}.py" for name in modules):
        if required not in subject.files:
            yield Finding(required, RULE, required, "the wheel lacks this file")
    for name in sorted(subject.files):
        top, _, rest = name.partition("/")
        base = name.rsplit("/", 1)[-1]
        if base.endswith(_BYTECODE) or "__pycache__" in name.split("/"):
            yield Finding(name, RULE, base, "bytecode belongs to one Python and to one machine", "leave it out")
        elif top not in (subject.module, subject.dist_info):
            why = f"a wheel of this kernel holds '{subject.module}/' and '{subject.dist_info}/', nothing else"
            yield Finding(name, RULE, top, why, "do not install it, or install it into the package")
        elif top == subject.dist_info and rest.casefold() in _ACTED_ON:
            why = (
                "it adds commands or plugins to every environment that the wheel is installed in, and a kernel is only "
                "imported"
            )
            yield Finding(name, RULE, rest, why, "leave it out")
        elif base.startswith(".") or base.endswith(_LEFT_OVER) or base in _LEFT_OVER_NAMES:
            yield Finding(name, RULE, base, "it is a left-over of a build or of an editor", "leave it out")
        elif rest.startswith(f"{subject.module}/"):
            why = f"'{subject.module}/' has a second '{subject.module}/' in it, which no import reaches"
            yield Finding(name, RULE, rest, why, "move its files one directory up")


def _libraries(subject: Subject) -> Iterator[Finding]:
    if subject.noarch:
        for library in subject.libraries:
            yield Finding(library.name, RULE, library.name, "a noarch wheel has no library", "build it for its backend")
        return
    modules: dict[str, str] = {}
    """The file of each library that belongs to the package, with the module that loads it."""
    if subject.library:
        further = {subject.file_of(ops): f"_ops_{name}.py" for name, ops in subject.metadata.extensions.items()}
        modules = {subject.library: "_ops.py", **further}
    for file in modules:
        if file not in subject.files:
            yield Finding(file, RULE, file, "the library that metadata.json names is not in the wheel")
    for library in subject.libraries:
        if modules and library.name not in modules:
            why = f"only {listed(modules)} {'belongs' if len(modules) == 1 else 'belong'} to the package"
            yield Finding(library.name, RULE, library.name, why, "link its code into that library")
        elif subject.facts is not None and subject.facts.framework is Framework.TORCH:
            yield from _module(subject, library, modules.get(library.name, "_ops.py"))


def _module(subject: Subject, library: Library, file: str) -> Iterator[Finding]:
    """Judge a library that `_ops.py` imports as a Python module; a library for `load_library` is not a module."""
    named = PurePosixPath(library.name).name.partition(".")[0]
    text = subject.text(f"{subject.module}/{file}").decode("utf-8", "replace")
    imported = re.search(rf"^from \. import {re.escape(named)}$", text, re.MULTILINE) is not None
    if subject.library and imported and named not in library.extension.modules:
        modules = ", ".join(library.extension.modules[:_MOST_MODULES]) or "no module"
        yield Finding(
            library.name,
            RULE,
            f"PyInit_{named}",
            f"'{file}' imports the library as '{named}': it defines {modules}",
            "name the module TORCH_EXTENSION_NAME, as in PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), or load the library "
            "with torch.ops.load_library",
        )


def _record(subject: Subject) -> Iterator[Finding]:
    path = f"{subject.dist_info}/RECORD"
    if path not in subject.files:
        yield Finding(path, RULE, "RECORD", "the wheel lacks it, so no installer can verify or remove its files")
        return
    listed: set[str] = set()
    free = {path, *(f"{subject.dist_info}/{name}" for name in _UNHASHED)}
    text = subject.text(path).decode("utf-8", "replace")
    try:
        rows = list(islice(csv.reader(io.StringIO(text), strict=True), _MOST_ROWS + 1))
    except csv.Error as error:
        yield Finding(path, RULE, "RECORD", f"it is not a table: {error}")
        return
    if len(rows) > _MOST_ROWS:
        yield Finding(path, RULE, "RECORD", f"it has more than the {_MOST_ROWS} rows that are read")
        return
    for row in filter(None, rows):
        name = row[0]
        if name in listed:
            yield Finding(path, RULE, name, "RECORD lists it twice")
        listed.add(name)
        if len(row) != 3:  # noqa: PLR2004  path, hash, size
            yield Finding(path, RULE, name, "its row does not have the three fields path, hash and size")
        elif name not in subject.files:
            yield Finding(path, RULE, name, "RECORD lists it, and it is not in the wheel")
        elif name not in free:
            yield from _row(path, row, subject.files[name])
    for name in sorted(subject.files.keys() - listed - free):
        yield Finding(name, RULE, name, "RECORD does not list it")


def _row(path: str, row: list[str], file: MemberFile) -> Iterator[Finding]:
    name, digest, size = row
    encoded = base64.urlsafe_b64encode(file.sha256).rstrip(b"=").decode()
    if not digest.startswith("sha256="):
        yield Finding(path, RULE, name, f"its hash in RECORD is {digest[:_SHOWN]!r}, not a sha256")
    elif digest.rstrip("=") != f"sha256={encoded}":
        yield Finding(path, RULE, name, "its hash in RECORD is not that of the file")
    if size != str(file.size):
        yield Finding(path, RULE, name, f"its size in RECORD is {size[:_SHOWN]}, the file has {file.size}")


def _wheel(path: str, message: Message, subject: Subject) -> Iterator[Finding]:
    tags = {str(tag) for tag in message.get_all("Tag", [])}
    for tag in sorted(tags ^ set(subject.tags)):
        where, other = ("WHEEL", "the file name") if tag in tags else ("the file name", "WHEEL")
        yield Finding(path, RULE, tag, f"{where} has this tag, {other} does not")
    if not subject.libraries:
        return
    if str(message.get("Root-Is-Purelib", "")).lower() == "true":
        yield Finding(path, RULE, "Root-Is-Purelib", "it says true, and the wheel has a library", "set it to false")
    facts = subject.facts
    of_one_python = facts is not None and facts.framework is Framework.TORCH and not facts.stable and subject.python
    for tag in sorted(subject.tags):
        python, abi, platform = tag.split("-")
        if abi not in ("abi3", "none") and not of_one_python:
            why = f"its ABI tag is '{abi}', which one Python has, and kernels are built for every one"
            yield Finding(path, RULE, tag, why, "tag it py3-none, or cp39-abi3 if its library uses Python's C API")
        if abi == "none" and python != "py3":
            why = f"it is for '{python}' alone, and its library needs nothing of Python"
            yield Finding(path, RULE, tag, why, "tag it py3-none")
        if platform == "any":
            why = "its platform tag is 'any', and it has a library"
            yield Finding(path, RULE, tag, why, "tag it with its platform")


def _metadata(path: str, message: Message, subject: Subject) -> Iterator[Finding]:
    name, version = str(message.get("Name", "")), str(message.get("Version", ""))
    if canonicalize_name(name) != subject.name:
        yield Finding(path, RULE, "Name", f"it says '{name[:_SHOWN]}', the file name '{subject.name}'")
    try:
        same = len(version) <= _SHOWN and PackageVersion(version) == PackageVersion(subject.version)
    except InvalidVersion:
        same = False
    if not same:
        yield Finding(path, RULE, "Version", f"it says '{version[:_SHOWN]}', the file name '{subject.version}'")
    for line in dict.fromkeys(message.get_all("Requires-Dist", [])):
        if requirement(line) is None:
            yield Finding(path, RULE, "Requires-Dist", f"'{line[:_SHOWN]}' is not a requirement that can be read")
    # A kernel for one torch requires exactly that torch: with another one, it would register nothing.
    stated = subject.facts
    if stated is None or stated.version is None:  # for no torch, or pure Python
        return
    package = _FRAMEWORKS[stated.framework]
    required = requirements(subject.text(path)).get(package)
    have = SpecifierSet() if required is None else required.specifier
    if required is None or not _admits_only(have, stated.version, later=stated.stable):
        wanted = f">={stated.version}" if stated.stable else f"=={stated.version}.*"
        why = f"it requires '{package}{str(have)[:_SHOWN]}', and the wheel is for '{package}{wanted}'"
        yield Finding(path, RULE, "Requires-Dist", why)


def _admits_only(specifier: SpecifierSet, version: Version, *, later: bool) -> bool:
    """Whether a specifier admits a minor version, no earlier one, and later ones only if `later` is set."""
    major, minor = version.major, version.minor
    earlier = minor > 0 and specifier.contains(f"{major}.{minor - 1}.99")
    own = any(specifier.contains(f"{major}.{minor}.{patch}") for patch in range(100))
    following = specifier.contains(f"{major}.{minor + 1}.0")
    return own and not earlier and following == later
