"""Find the name, version, license, readme and requirements of a project, each with its origin."""

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
from builder.config.values import Backend, InvalidValueError, KernelName
from builder.config.wheel_values import PackageRequirement, WheelVersion, license_problem
from builder.matrix import rows
from builder.matrix.variant import dotted
from builder.port import imports, source_facts
from builder.port.imports import Package
from builder.port.recording import SetupCall
from builder.port.source_facts import Place, Todo
from builder.port.tables import NOWHERE, Found, TableDraft, Value
from builder.wording import listed

_NO_KEY = ("entry-points", "gui-scripts", "optional-dependencies", "scripts", "urls")
_READMES = ("README.md", "README.rst", "README.txt", "README")
_BUILT_WITH = frozenset({"torch", "ninja", "setuptools", "wheel", "packaging", "pybind11", "cmake"})
"""Build requirements, and torch, which every kernel requires anyway."""
_LONGEST_NAME = 100
_BASES = ("", "src/", "python/")
"""Folders that may contain the Python package, if `setup` names none."""
_UNKNOWN = "LicenseRef-unknown"
_LICENSE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")


def tables(
    setup: SetupCall | None,
    root: Path,
    *,
    backends: tuple[Backend, ...],
    reached: Mapping[str, tuple[str, str]],
    todo: Todo,
) -> tuple[TableDraft, TableDraft, Mapping[str, str]]:
    """Return `[general]` and `[wheel]` of a project, by `setup()` and by `pyproject.toml`, and files of its package.

    `reached` has for each extension the new import name, and the module that defines it.
    """
    call = setup or SetupCall(at="")
    try:
        declared = toml.loads(source_facts.read(root, "pyproject.toml")).get("project")
    except toml.TOMLDecodeError:
        declared = None
    place = Place(root=root, at=call.at, todo=todo)
    project = _Project(call=call, declared=declared if isinstance(declared, dict) else {}, place=place)
    name = project.name()
    package = project.package(str(name.value))
    files = {} if package is None else imports.modules(package, reached, place)
    directory = None if package is None else package.directory
    depends, requires = project.requirements()
    data = tuple(project.data(directory))
    project.say_more_data(directory, data)
    project.say_pythons()
    project.say_what_has_no_key()
    general: dict[str, Value] = {
        "name": name,
        "version": project.version(),
        "edition": 5,
        "license": project.license(),
        "upstream": project.upstream(),
        "backends": tuple(map(str, backends)),
        "python-depends": depends,
    }
    wheel: dict[str, Value] = {
        "version": project.wheel_version(),
        "readme": project.readme(),
        "package": directory,
        "requires": requires,
        "data": data,
    }
    return TableDraft(name="general", keys=general), TableDraft(name="wheel", keys=wheel), files


@dataclass(frozen=True, slots=True, kw_only=True)
class _Project:
    """The arguments of `setup`, and `[project]` of `pyproject.toml`."""

    call: SetupCall
    declared: Mapping[str, Any]
    place: Place

    def _text(self, key: str) -> Found | None:
        if key in self.call.texts:
            return Found(self.call.texts[key], f"{key} of {self.call.at}")
        value = self.declared.get(key)
        return Found(value, f"project.{key} of pyproject.toml") if isinstance(value, str) else None

    def name(self) -> Found:
        root = self.place.root
        found = self._text("name") or Found(root.resolve().name, "the folder")
        letters = re.sub(r"[^a-z0-9]+", "-", str(found.value)[:_LONGEST_NAME].lower())
        try:
            return Found(str(KernelName(letters.lstrip("0123456789-").rstrip("-") or "kernel")), found.origin)
        except InvalidValueError:
            self.place.say(f"'{found.value}' gives no name of a kernel")
            return Found("kernel", NOWHERE)

    def version(self) -> Found:
        found, public = self._version()
        number = re.match(r"[vV]?([0-9]{1,9})", str(found.value))
        if number and not WheelVersion.matches(public):
            self.place.say(
                f"a wheel has the version {number[1]}.0.0 unless --wheel-version names its own: '{found.value}' is none"
            )
        origin = NOWHERE if found.origin == NOWHERE else f"{found.value}, {found.origin}"
        return Found(int(number[1]) if number else 0, origin)

    def wheel_version(self) -> Found | None:
        """Return the whole version without a label; None if it is only one number, or invalid."""
        found, public = self._version()
        if not WheelVersion.matches(public) or public == f"{WheelVersion(public).major}.0.0" or "." not in public:
            return None
        return Found(public, found.origin)

    def _version(self) -> tuple[Found, str]:
        """Return the version as found, and without `v` and label."""
        found = self._text("version") or Found("0", NOWHERE)
        return found, str(found.value).lstrip("vV").partition("+")[0]

    def license(self) -> Found:
        found = [self._text(key) for key in ("license_expression", "license")]
        for name in _LICENSE_FILES:
            known = source_facts.license_of(source_facts.read(self.place.root, name))
            found.append(None if known is None else Found(known, f"the text of {name}"))
        for each in found:
            if each is not None and license_problem(str(each.value)) is None:
                return each
        self.place.say("no license was found that has an SPDX name: write it into general.license")
        return Found(_UNKNOWN, NOWHERE)

    def upstream(self) -> str | None:
        urls = self.declared.get("urls")
        named = urls.values() if isinstance(urls, dict) else ()
        for url in (self.call.texts.get("url", ""), *(each for each in named if isinstance(each, str))):
            if re.fullmatch(r"https://(?:github|gitlab)\.com/[\w.-]+/[\w.-]+/?", url):
                try:
                    return str(GitUrl(url.rstrip("/")))
                except InvalidValueError:
                    continue
        return None

    def readme(self) -> str | None:
        """Return the file with the long description; report a missing file."""
        named = self.declared.get("readme")
        path = named.get("file") if isinstance(named, dict) else named
        if isinstance(path, str) and source_facts.is_path(path) and _is_readable(self.place.root / path):
            return posixpath.normpath(path)
        text = self.call.texts.get("long_description", "").strip()
        if not text:
            return None
        found = next((name for name in _READMES if source_facts.read(self.place.root, name).strip() == text), None)
        if found is None:
            self.place.say("the long description is the text of no README: write one, and name it in wheel.readme")
        return found

    def requirements(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of `python-depends`, and the requirements of `wheel.requires`."""
        declared = self.declared.get("dependencies")
        texts = [*self.call.lists.get("install_requires", ()), *(declared if isinstance(declared, list) else ())]
        depends, requires, unsaid = [], [], []
        for text in dict.fromkeys(re.sub(r"(^|\s+)#.*", "", str(each)).strip() for each in texts):
            if not text:
                continue  # a comment, which setuptools leaves out, too
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                self.place.say(f"'{text}' is not a requirement as PEP 508 has it")
                continue
            name = canonicalize_name(requirement.name)
            if name in _BUILT_WITH or name.startswith("nvidia-"):
                continue
            if name in dependencies.table()["brought"]:
                self.place.say(f"the requirement '{text}' is left out: torch brings {name}")
            elif name in PythonDependency.names() and not requirement.specifier:
                depends.append(str(name))
            elif PackageRequirement.matches(str(requirement)):
                requires.append(str(requirement))
            else:
                unsaid.append(text)
        if unsaid:
            self.place.say(f"the package requires {listed(unsaid)}, which no key says")
        return tuple(depends), tuple(requires)

    def say_pythons(self) -> None:
        """Report Pythons that torch supports but the project refuses: wheels are for all of them."""
        declared = self.declared.get("requires-python")
        text = self.call.texts.get("python_requires") or (declared if isinstance(declared, str) else "")
        try:
            wanted = SpecifierSet(text)
        except InvalidSpecifier:
            self.place.say(f"'{text}' is no range of Pythons")
            return
        known = dict.fromkeys(dotted(tag) for row in rows() for tag in row.pythons)
        # A late patch release, so that a bound such as '>3.10.2' does not exclude the whole minor version.
        refused = [python for python in known if f"{python}.99" not in wanted]
        if refused:
            self.place.say(
                f"the package is for Python '{text}', which no key says: wheels are for {listed(refused)}, too"
            )

    def say_what_has_no_key(self) -> None:
        """Report commands, extras and the like, which kernels' wheels do not have."""
        declared = [f"project.{name}" for name in _NO_KEY if self.declared.get(name)]
        for names, at in ((self.call.lists.get("no_key", ()), self.call.at), (declared, "pyproject.toml")):
            if names:
                self.place.todo.add(f"the wheel has nothing of {listed(names)}, of which no key says anything", at=at)

    def package(self, name: str) -> Package | None:
        """Return the Python package, and report other packages."""
        root, module = self.place.root, name.replace("-", "_")
        packages = self.call.lists.get("packages", ())
        tops = dict.fromkeys(package.partition(".")[0] for package in packages)
        folders = {top: self._folder(top) for top in tops} or {f"{base}{module}": f"{base}{module}" for base in _BASES}
        there = {top: folder for top, folder in folders.items() if source_facts.is_file(root, f"{folder}/__init__.py")}
        wanted = module if module in there else next(iter(there), None)
        if wanted is None:
            return None
        others = [top for top in there if top != wanted]
        if others:
            self.place.say(f"a wheel has one Python package: {', '.join(others)} is left out")
        mine = [self._folder(package) for package in packages if package.partition(".")[0] == wanted]
        below = [folder for folder in mine if source_facts.is_folder(root, folder)]
        return Package(
            directory=there[wanted],
            name=posixpath.basename(wanted),
            folders=below or [there[wanted]],
            folder_of=self._folder,
        )

    def _folder(self, package: str) -> str:
        folders = self.call.package_dir
        if package in folders:
            return folders[package]
        base = folders.get("", "")
        path = package.replace(".", "/")
        return f"{base}/{path}".strip("/") if base not in {"", "."} else path

    def data(self, package: str | None) -> Iterator[str]:
        """Yield globs for data files in the package; report data files of other folders."""
        unsaid: list[str] = []
        for name, globs in sorted(self.call.package_data.items()):
            for pattern in globs:
                path = f"{self._folder(name) if name else package or '.'}/{pattern}"
                if pattern.endswith((".py", ".pyi")) or not _names_files(self.place.root, path):
                    continue
                if package is not None and path.startswith(f"{package}/"):
                    yield path
                else:
                    unsaid.append(path)
        if unsaid:
            self.place.say(f"the wheel has {listed(unsaid)}, which is not in its package")

    def say_more_data(self, package: str | None, data: tuple[str, ...]) -> None:
        """Report files of the package that only MANIFEST.in may have added to the wheel."""
        root = self.place.root
        if package is None or not source_facts.is_file(root, "MANIFEST.in"):
            return
        known = {path.relative_to(root).as_posix() for pattern in data for path in root.glob(pattern)}
        found = [path for path in source_facts.data_of(root, package) if path not in known]
        if found:
            more = f" and {len(found) - 1} more" if found[1:] else ""
            text = f"MANIFEST.in is not read: unless wheel.data has them, files are left out: {found[0]}{more}"
            self.place.todo.add(text)


def _is_readable(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return False
    return True


def _names_files(root: Path, path: str) -> bool:
    try:
        return (
            source_facts.is_path(path)
            and ".." not in path.split("/")
            and any(each.is_file() for each in root.glob(path))
        )
    except (OSError, ValueError):
        return False
