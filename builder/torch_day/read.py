"""Read a release of torch from the indexes: its files, and the facts in the wheels."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from packaging.version import Version

from builder.config import Backend
from builder.environment import resolve
from builder.environment.resolve import IndexFile, NoReleaseError, released
from builder.errors import BuilderError, NothingToDoError, ToolError
from builder.matrix.variant import backend_of, built_systems, compute_name, dotted
from builder.pins import PinnedPart, PinnedWheel, Pins, pin_file
from builder.torch_day.torch_release import Release, TorchBuild, cuda_parts, torch_parts, triton_part
from builder.torch_day.wheel import WheelFacts, everything, open_wheel, versions

FIRST_SYSTEM = "x86_64-linux"
"""The system whose wheel is read completely."""
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_NAME = re.compile(r"torch-[^-]+-(?:(?P<build>\d+)-)?(?P<python>cp3\d+)-(?P<abi>\w+)-[\w.]+\.whl")
"""The name of a wheel for CPython."""
_LOCAL = re.compile(r"(?P<device>cpu|cu|rocm|xpu)(?P<toolkit>[0-9.]*)")
_SYCL = re.compile(r"intel-sycl-rt==([0-9.]+)")


class NoTorchError(BuilderError):
    """No such torch is published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """The indexes of torch, and the listener to progress."""

    pins: Pins
    env: Mapping[str, str]
    libraries: tuple[str, ...]
    """The libraries whose C functions are read."""
    progress: Callable[[str], None]

    @property
    def pythons(self) -> tuple[str, ...]:
        """The Pythons to look for, the oldest first."""
        return tuple(sorted(self.pins.pythons, key=_number))

    def files(self, requirement: str, *, index: str | None = None) -> tuple[IndexFile, ...]:
        """Return the files of the newest release that meets a requirement."""
        return released(requirement, pythons=self.pythons, index=index, env=self.env)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAnswer:
    """The answer of an index that is not the default one."""

    index: str
    files: tuple[IndexFile, ...] = ()
    error: str | None = None


def newer(source: Indexes, known: Iterable[str]) -> tuple[str, ...]:
    """Return the published versions newer than all of `known`, the oldest first, or else a new patch of the newest.

    Raises:
        NothingToDoError: there is none.
        ToolError: the index did not answer.
    """
    newest = max((tuple(map(int, version.split("."))) for version in known), default=(0, 0))
    shown = ".".join(map(str, newest))
    found: list[str] = []
    bound = ""
    source.progress(f"asking the default index for a torch that is newer than {shown}")
    while True:
        try:
            version = _version(_asked(source, f"torch{bound}"))
        except NoTorchError:
            break
        major, minor = map(int, version.split(".")[:2])
        if (major, minor) <= newest:
            found += [version] if not found and _is_patch(version, source.pins) else []
            break
        found.append(version)
        bound = f"<{major}.{minor}"
    if not found:
        raise NothingToDoError(
            f"no torch is newer than {shown}, which the matrix has", help="name a version to read it"
        )
    return tuple(reversed(found))


def _is_patch(version: str, pins: Pins) -> bool:
    """Whether a version is later than all pinned ones of its minor version."""
    published = Version(version)
    torch = (Version(wheel.version.partition("+")[0]) for wheel in pins.wheels.values() if wheel.name == "torch")
    same = [each for each in torch if each.release[:2] == published.release[:2]]
    return bool(same) and max(same) < published


def read(wanted: str, source: Indexes) -> Release:
    """Read a release: `2.15` means its newest patch, `2.15.0` exactly that one.

    Raises:
        NoTorchError: no such version is published.
        ToolError: the default index did not answer, or a wheel cannot be read.
    """
    if _VERSION.fullmatch(wanted) is None:
        raise NoTorchError(f"'{wanted}' is not a version of torch, such as '2.15' or '2.15.0'", help="name one")
    source.progress(f"asking the default index for torch {wanted}")
    files = _asked(source, f"torch=={wanted}" if wanted.count(".") > 1 else f"torch=={wanted}.*")
    version = _version(files)
    source.progress(f"reading torch {version}")
    tables = {system: _best(files, system, source.pythons) for system in built_systems()}
    if not tables[FIRST_SYSTEM]:
        raise ToolError(
            f"torch {version} has no wheel for {FIRST_SYSTEM}, from which its facts are read",
            help="wait until it is published",
        )
    whole = _facts(source, _newest(tables[FIRST_SYSTEM], source.pythons), whole=True)
    default = tuple(_default_builds(source, tables, whole))
    answers = _other_indexes(source, version)
    others = tuple(_other_builds(source, answers, have={(build.system, build.compute) for build, _ in default}))
    found = (*default, *others)
    builds = sorted((build for build, _ in found), key=lambda build: build.place_in_file)
    parts, wheels, notes = _pinned(source, version, found)
    return Release(
        version=version,
        pythons=tuple(sorted(tables[FIRST_SYSTEM], key=_number)),
        builds=tuple(builds),
        parts=parts,
        wheels=wheels,
        file=whole.file,
        standard=whole.standard,
        python_headers=whole.python_headers,
        shim=whole.shim,
        notes=(
            *(f"the default index has no wheel for {system}" for system, table in tables.items() if not table),
            *(f"{each.index} does not have this version" for each in answers if not each.files and each.error is None),
            *notes,
        ),
        away=tuple(f"{answer.index}: {answer.error}" for answer in answers if answer.error),
    )


def _asked(source: Indexes, requirement: str) -> tuple[IndexFile, ...]:
    try:
        files = source.files(requirement)
    except NoReleaseError as error:
        wanted = requirement.removeprefix("torch").removeprefix("==").removesuffix(".*")
        last = error.message.splitlines()[-1].strip() if error.message else ""
        raise NoTorchError(
            f"torch {wanted} is not published for any pinned Python\n  uv: {last}".rstrip(),
            help="look at the version; a torch for newer Pythons alone needs them in `pythons` of pins.toml first",
        ) from error
    except resolve.UnresolvedError as error:
        quoted = "".join(f"\n  uv: {line.strip()}" for line in error.message.splitlines())
        raise ToolError(
            f"the default index does not say what it has of torch{quoted}",
            help="it is slow or away: try again later, or name a mirror in PIP_INDEX_URL",
        ) from error
    if not files:
        raise NoTorchError(f"'{requirement}' has no wheels", help="look at the release on the index")
    return files


def _version(files: tuple[IndexFile, ...]) -> str:
    return files[0].file.split("-")[1].partition("+")[0]


def _best(files: Iterable[IndexFile], system: str, pythons: tuple[str, ...]) -> dict[str, IndexFile]:
    """Return by Python the file for a system: the newest of several builds, without free-threaded ones."""
    found: dict[str, IndexFile] = {}
    tagged = ((match, each) for each in files if (match := _NAME.fullmatch(each.file)) is not None)
    for match, each in sorted(tagged, key=lambda pair: int(pair[0]["build"] or 0)):
        python, abi = match["python"], match["abi"]
        usable = abi in (python, "none") and pin_file.serves(each.file, system=system, python=python)
        if usable and _number(python) >= _number(pythons[0]):
            found[python] = each
    return dict(sorted(found.items(), key=lambda item: _number(item[0])))


def _number(python: str) -> int:
    return int(python.removeprefix("cp"))


def _newest(table: Mapping[str, IndexFile], pythons: tuple[str, ...]) -> IndexFile:
    """Return the file for the newest pinned Python."""
    return next(table[python] for python in (*reversed(pythons), *table) if python in table)


def _default_builds(
    source: Indexes, tables: Mapping[str, Mapping[str, IndexFile]], whole: WheelFacts
) -> Iterator[tuple[TorchBuild, Mapping[str, PinnedWheel]]]:
    """Yield the builds on the default index, each with its files by Python."""
    for system, table in tables.items():
        if not table:
            continue
        wheels = {python: _pinned_wheel(file, None) for python, file in table.items()}
        if system.endswith("-darwin"):
            name = _newest(table, source.pythons).file
            for backend in (Backend.CPU, Backend.METAL):
                yield TorchBuild(system=system, backend=backend, toolkit=None, source=f"{name} is published"), wheels
            continue
        facts = whole if system == FIRST_SYSTEM else _facts(source, _newest(table, source.pythons))
        toolkit = facts.toolkits.get("cuda")
        said = f"torch/version.py of {facts.file}: cuda is {toolkit}"
        backend = Backend.CPU if toolkit is None else Backend.CUDA
        yield TorchBuild(system=system, backend=backend, toolkit=toolkit, source=said), wheels


def _facts(source: Indexes, file: IndexFile, *, whole: bool = False) -> WheelFacts:
    source.progress(f"reading {file.file}")
    with open_wheel(file.file, file.place, env=source.env) as archive:
        return everything(archive, file.file, source.libraries) if whole else versions(archive, file.file)


def _other_indexes(source: Indexes, version: str) -> tuple[IndexAnswer, ...]:
    """Ask each torch index in the pin file, and the neighbouring indexes for its other toolkits."""

    def ask(index: str) -> IndexAnswer:
        source.progress(f"asking {index}")
        try:
            return IndexAnswer(index=index, files=source.files(f"torch=={version}", index=index))
        except NoReleaseError:
            return IndexAnswer(index=index)
        except resolve.UnresolvedError as error:
            return IndexAnswer(index=index, error=error.message.splitlines()[-1].strip().removeprefix("cause: "))

    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(ask, indexes_of(source.pins)))


def indexes_of(pins: Pins) -> tuple[str, ...]:
    """Return torch's indexes: the named ones, and for an index of one CUDA toolkit, those of the other toolkits.

    The default index has one toolkit of a torch, and these indexes have the others; the next torch may change the
    default.
    """
    parts = [part for part in pins.parts if part.name == "torch"]
    named = dict.fromkeys(part.index for part in parts if part.index is not None)
    computes = [compute for part in parts for compute in part.compute if backend_of(compute) is Backend.CUDA]
    bases = (index.rpartition("/") for index in named)
    beside = (f"{base}/{compute}" for base, _, last in bases if last in computes for compute in computes)
    return tuple(dict.fromkeys((*named, *beside)))


def _other_builds(
    source: Indexes, answers: tuple[IndexAnswer, ...], *, have: set[tuple[str, str]]
) -> Iterator[tuple[TorchBuild, Mapping[str, PinnedWheel]]]:
    """Yield the builds on other indexes that the default index lacks."""
    for answer in answers:
        for system in built_systems():
            table = _best((each for each in answer.files if "+" in each.file), system, source.pythons)
            if not table:
                continue
            file = _newest(table, source.pythons)
            backend, toolkit = _of_local(source, file)
            if (system, compute_name(backend, toolkit)) not in have:
                said = f"{file.file} is published on {answer.index}"
                wheels = {python: _pinned_wheel(each, answer.index) for python, each in table.items()}
                yield TorchBuild(system=system, backend=backend, toolkit=toolkit, source=said), wheels


def _of_local(source: Indexes, file: IndexFile) -> tuple[Backend, str | None]:
    """Return backend and toolkit by a wheel's local version; for XPU, its requirements tell the toolkit."""
    match = _LOCAL.fullmatch(file.file.split("-")[1].partition("+")[2])
    if match is None:
        raise ToolError(f"'{file.file}' is of no known backend", help="look at what this index publishes")
    toolkit = match["toolkit"]
    match match["device"]:
        case "cpu":
            return Backend.CPU, None
        case "cu":
            return Backend.CUDA, f"{toolkit[:-1]}.{toolkit[-1]}"
        case "rocm":
            return Backend.ROCM, toolkit
        case _:
            requires = " ".join(_facts(source, file).requires)
            sycl = _SYCL.search(requires)
            if sycl is None:
                raise ToolError(f"'{file.file}' does not say its oneAPI", help="look at what it requires")
            return Backend.XPU, sycl[1]


def _pinned_wheel(file: IndexFile, index: str | None) -> PinnedWheel:
    return PinnedWheel(file=file.file, name="torch", version=file.file.split("-")[1], sha256=file.sha256, index=index)


def _pinned(
    source: Indexes, version: str, found: Iterable[tuple[TorchBuild, Mapping[str, PinnedWheel]]]
) -> tuple[tuple[PinnedPart, ...], Mapping[str, PinnedWheel], tuple[str, ...]]:
    """Return the parts for a torch, their wheels, and the parts that could not be resolved."""
    builds = tuple((build, {py: each for py, each in table.items() if py in source.pythons}) for build, table in found)
    resolved = (*triton_part(version, (build for build, _ in builds)), *cuda_parts(source.pins, builds))
    mine = replace(source.pins, parts=resolved, wheels={})
    have = {python for _, table in builds for python in table}
    todo = tuple(each for each in resolve.targets(mine) if each.python in have)
    done = resolve.resolve_all(mine, todo, env=source.env)
    new = resolve.updated(mine, done)
    notes = tuple(
        f"{mine.parts[each.part].about}: no wheels for {each.system}, "
        f"Python {dotted(each.python)}: {each.error.splitlines()[-1].strip()}"
        for each in done
        if each.error is not None
    )
    wheels = {each.file: each for _, table in builds for each in table.values()}
    return (*torch_parts(version, builds), *new.parts), {**wheels, **new.wheels}, notes
