"""Find the name, version, license, readme and requirements of a project, each with where it was found."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from builder import toml
from builder.config import dependencies
from builder.config.dependencies import PythonDependency
from builder.config.giturl import GitUrl
from builder.config.values import InvalidValueError, KernelName
from builder.config.wheel_values import PackageRequirement, WheelVersion, license_problem
from builder.matrix import rows
from builder.matrix.variant import dotted
from builder.port import source_facts
from builder.port.recording import SetupCall
from builder.port.source_facts import Todo
from builder.wording import listed

_NO_KEY = ("entry-points", "gui-scripts", "optional-dependencies", "scripts", "urls")
_READMES = ("README.md", "README.rst", "README.txt", "README")


def readme(call: SetupCall, project: Mapping[str, Any], root: Path, todo: Todo) -> str | None:
    """Return the file that is the long description; tell a person of one that is no file."""
    named = project.get("readme")
    path = named.get("file") if isinstance(named, dict) else named
    if isinstance(path, str) and source_facts.is_path(path) and _is_readable(root, path):
        return posixpath.normpath(path)
    text = call.texts.get("long_description", "").strip()
    if not text:
        return None
    found = next((name for name in _READMES if source_facts.read(root, name).strip() == text), None)
    if found is None:
        todo.add("the long description is the text of no README: write one, and name it in wheel.readme", at=call.at)
    return found


def _is_readable(root: Path, path: str) -> bool:
    try:
        (root / path).read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return False
    return True


def say_pythons(call: SetupCall, project: Mapping[str, Any], todo: Todo) -> None:
    """Tell a person of Pythons that a torch has and the project refuses: wheels are for all of them."""
    declared = project.get("requires-python")
    text = call.texts.get("python_requires") or (declared if isinstance(declared, str) else "")
    try:
        wanted = SpecifierSet(text)
    except InvalidSpecifier:
        todo.add(f"'{text}' is no range of Pythons", at=call.at)
        return
    known = dict.fromkeys(dotted(tag) for row in rows() for tag in row.pythons)
    # A late patch release, so that a bound such as '>3.10.2' refuses nothing as a whole.
    refused = [python for python in known if f"{python}.99" not in wanted]
    if refused:
        todo.add(
            f"the package is for Python '{text}', which no key says: wheels are for {listed(refused)}, too", at=call.at
        )


def say_what_has_no_key(call: SetupCall, project: Mapping[str, Any], todo: Todo) -> None:
    """Tell a person of commands, extras and the like, which wheels of kernels do not have."""
    declared = [f"project.{name}" for name in _NO_KEY if project.get(name)]
    for names, at in ((call.lists.get("no_key", ()), call.at), (declared, "pyproject.toml")):
        if names:
            todo.add(f"the wheel has nothing of {listed(names)}, of which no key says anything", at=at)


_BUILT_WITH = frozenset({"torch", "ninja", "setuptools", "wheel", "packaging", "pybind11", "cmake"})
"""Requirements of a build, and torch, which every kernel requires by itself."""
_LONGEST_NAME = 100
_BASES = ("", "src/", "python/")
"""The folders of a Python package, if `setup` names none."""
_UNKNOWN = "LicenseRef-unknown"
_LICENSE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and where it was found."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The values of `[general]` and `[wheel]`."""

    name: Found
    version: Found
    license: Found
    wheel_version: Found | None = None
    readme: str | None = None
    upstream: str | None = None
    python_depends: tuple[str, ...] = ()
    package: str | None = None
    requires: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


def of(setup: SetupCall | None, root: Path, extensions: Mapping[str, tuple[str, str]], todo: Todo) -> Metadata:
    """Return the metadata of a project, by `setup()` and by `pyproject.toml`.

    `extensions` says of each whether it makes a Python module.
    """
    call = setup or SetupCall(at="")
    project = _project(root)
    name = _name(call, project, root, todo)
    package = _package(call, root, name.value, extensions, todo)
    depends, requires = _requirements(call, project, todo)
    data = tuple(_data(call, root, package, todo))
    _say_more_data(root, package, data, todo)
    say_pythons(call, project, todo)
    say_what_has_no_key(call, project, todo)
    return Metadata(
        name=name,
        version=_version(call, project, todo),
        wheel_version=_wheel_version(call, project),
        license=_license(call, project, root, todo),
        readme=readme(call, project, root, todo),
        upstream=_upstream(call, project),
        python_depends=depends,
        package=package,
        requires=requires,
        data=data,
    )


def _project(root: Path) -> Mapping[str, Any]:
    try:
        found = toml.loads(source_facts.read(root, "pyproject.toml")).get("project")
    except toml.TOMLDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _texts(call: SetupCall, project: Mapping[str, Any], key: str) -> Found | None:
    if key in call.texts:
        return Found(call.texts[key], f"{key} of {call.at}")
    value = project.get(key)
    return Found(value, f"project.{key} of pyproject.toml") if isinstance(value, str) else None


def _name(call: SetupCall, project: Mapping[str, Any], root: Path, todo: Todo) -> Found:
    found = _texts(call, project, "name") or Found(root.resolve().name, "the folder")
    guess = (
        re.sub(r"[^a-z0-9]+", "-", found.value[:_LONGEST_NAME].lower()).lstrip("0123456789-").rstrip("-") or "kernel"
    )
    try:
        return Found(str(KernelName(guess)), found.origin)
    except InvalidValueError:
        todo.add(f"'{found.value}' gives no name of a kernel", at=call.at)
        return Found("kernel", "nowhere")


def _public(version: Found) -> str:
    """Return a version without `v` and without a label."""
    return version.value.lstrip("vV").partition("+")[0]


def _wheel_version(call: SetupCall, project: Mapping[str, Any]) -> Found | None:
    """Return the whole version without a label; None where it says no more than its first number, or is none."""
    found = _texts(call, project, "version") or Found("0", "nowhere")
    public = _public(found)
    if not WheelVersion.matches(public) or public == f"{WheelVersion(public).major}.0.0" or "." not in public:
        return None
    return Found(public, found.origin)


def _version(call: SetupCall, project: Mapping[str, Any], todo: Todo) -> Found:
    found = _texts(call, project, "version") or Found("0", "nowhere")
    number = re.match(r"[vV]?([0-9]{1,9})", found.value)
    if number and not WheelVersion.matches(_public(found)):
        todo.add(
            f"a wheel has the version {number[1]}.0.0 unless --wheel-version names its own: '{found.value}' is none",
            at=call.at,
        )
    return Found(
        number[1] if number else "0", f"{found.value}, {found.origin}" if found.origin != "nowhere" else "nowhere"
    )


def _license(call: SetupCall, project: Mapping[str, Any], root: Path, todo: Todo) -> Found:
    for found in _licenses(call, project, root):
        if license_problem(found.value) is None:
            return found
    todo.add("no license was found that has an SPDX name: write it into general.license", at=call.at)
    return Found(_UNKNOWN, "nowhere")


def _licenses(call: SetupCall, project: Mapping[str, Any], root: Path) -> Iterator[Found]:
    for key in ("license_expression", "license"):
        found = _texts(call, project, key)
        if found is not None:
            yield found
    for name in _LICENSE_FILES:
        known = source_facts.license_of(source_facts.read(root, name))
        if known is not None:
            yield Found(known, f"the text of {name}")


def _upstream(call: SetupCall, project: Mapping[str, Any]) -> str | None:
    urls = project.get("urls")
    named = urls.values() if isinstance(urls, dict) else ()
    for url in (call.texts.get("url", ""), *(each for each in named if isinstance(each, str))):
        if re.fullmatch(r"https://(?:github|gitlab)\.com/[\w.-]+/[\w.-]+/?", url):
            try:
                return str(GitUrl(url.rstrip("/")))
            except InvalidValueError:
                continue
    return None


def _requirements(call: SetupCall, project: Mapping[str, Any], todo: Todo) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of `python-depends`, and the requirements of `wheel.requires`."""
    declared = project.get("dependencies")
    texts = [*call.lists.get("install_requires", ()), *(declared if isinstance(declared, list) else ())]
    depends, requires, unsaid = [], [], []
    for text in dict.fromkeys(str(each) for each in texts):
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            todo.add(f"'{text}' is not a requirement as PEP 508 has it", at=call.at)
            continue
        name = canonicalize_name(requirement.name)
        if name in _BUILT_WITH or name.startswith("nvidia-"):
            continue
        if name in dependencies.table()["brought"]:
            todo.add(f"the requirement '{text}' is left out: torch brings {name}", at=call.at)
            continue
        if name in PythonDependency.names() and not requirement.specifier:
            depends.append(str(name))
        elif PackageRequirement.matches(str(requirement)):
            requires.append(str(requirement))
        else:
            unsaid.append(text)
    if unsaid:
        todo.add(f"the package requires {listed(unsaid)}, which no key says", at=call.at)
    return tuple(depends), tuple(requires)


def _package(
    call: SetupCall, root: Path, name: str, extensions: Mapping[str, tuple[str, str]], todo: Todo
) -> str | None:
    """Return the folder of the Python package, and tell a person what else there is."""
    module = name.replace("-", "_")
    tops = dict.fromkeys(package.partition(".")[0] for package in call.lists.get("packages", ()))
    folders = {top: _folder(call, top) for top in tops} or {f"{base}{module}": f"{base}{module}" for base in _BASES}
    there = {top: folder for top, folder in folders.items() if source_facts.is_file(root, f"{folder}/__init__.py")}
    wanted = module if module in there else next(iter(there), None)
    if wanted is None:
        todo.add(f"no Python package was found: write torch-ext/{module}/__init__.py", at=call.at)
        return None
    others = [top for top in there if top != wanted]
    if others:
        todo.add(f"a wheel has one Python package: {', '.join(others)} is left out", at=call.at)
    folders_below = tuple(_below(call, root, wanted))
    for extension, (what, place) in extensions.items():
        _say_imports(root, extension, f"{place} import {what}", package=there[wanted], folders=folders_below, todo=todo)
    for file, line in source_facts.loads_of(root, folders_below):
        todo.add("this compiles when it is imported: take the module of the wheel in every case", at=f"{file}:{line}")
    return there[wanted]


def _say_imports(
    root: Path, extension: str, import_: str, *, package: str, folders: tuple[str, ...], todo: Todo
) -> None:
    """Tell a person of the lines that import an extension, and of lines that have its name as a text."""
    for file, line in source_facts.imports_of(root, extension, folders, top=package):
        dots = "." * (file.removeprefix(f"{package}/").count("/") + 1)
        todo.add(f"in place of '{extension}', write: from {dots}{import_}", at=f"{file}:{line}")
    for file, line in source_facts.mentions_of(root, extension, folders):
        todo.add(f"no module of the wheel is named '{extension}': see what becomes of this", at=f"{file}:{line}")


def _below(call: SetupCall, root: Path, top: str) -> Iterator[str]:
    for package in call.lists.get("packages", ()):
        if package.partition(".")[0] == top and source_facts.is_folder(root, _folder(call, package)):
            yield _folder(call, package)


def _folder(call: SetupCall, package: str) -> str:
    folders = call.package_dir
    if package in folders:
        return folders[package]
    base = folders.get("", "")
    path = package.replace(".", "/")
    return f"{base}/{path}".strip("/") if base not in {"", "."} else path


def _data(call: SetupCall, root: Path, package: str | None, todo: Todo) -> Iterator[str]:
    """Yield the globs of files that the package has besides Python; those of other folders are told to a person."""
    unsaid: list[str] = []
    for name, globs in sorted(call.package_data.items()):
        for pattern in globs:
            path = f"{_folder(call, name) if name else package or '.'}/{pattern}"
            if pattern.endswith((".py", ".pyi")) or not _names_files(root, path):
                continue
            if package is not None and path.startswith(f"{package}/"):
                yield path
            else:
                unsaid.append(path)
    if unsaid:
        todo.add(f"the wheel has {listed(unsaid)}, which is not in its package", at=call.at)


def _say_more_data(root: Path, package: str | None, data: tuple[str, ...], todo: Todo) -> None:
    """Tell a person of files of the package that only MANIFEST.in may have put into the wheel."""
    if package is None or not source_facts.is_file(root, "MANIFEST.in"):
        return
    known = {path.relative_to(root).as_posix() for pattern in data for path in root.glob(pattern)}
    found = [path for path in source_facts.data_of(root, package) if path not in known]
    if found:
        more = f" and {len(found) - 1} more" if found[1:] else ""
        todo.add(f"MANIFEST.in is not read: unless wheel.data has them, files are left out: {found[0]}{more}")


def _names_files(root: Path, path: str) -> bool:
    try:
        return (
            source_facts.is_path(path)
            and ".." not in path.split("/")
            and any(each.is_file() for each in root.glob(path))
        )
    except (OSError, ValueError):
        return False
