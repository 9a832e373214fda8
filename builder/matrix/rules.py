"""The rows and the cells of the build matrix, and the rules that leave out a row, a component or an extension."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from builder import codec, resources, toml
from builder.config import Backend, Config, Framework, Version
from builder.config.conditions import When
from builder.config.source_tables import Component, ExtensionName, Torch
from builder.config.v5 import CudaGeneral
from builder.matrix import architectures
from builder.matrix.variant import Variant, dotted

SETS = ("release", "preview", "legacy")
"""The sets of rows; only named sets are used."""

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFacts:
    """The facts about a row or a cell that conditions test."""

    torch: Version
    """The torch to build against, or for noarch to test with; a plain library ignores it."""
    toolkit: str | None
    system: str

    @property
    def release(self) -> Version | None:
        """The `MAJOR.MINOR` of the toolkit."""
        return None if self.toolkit is None else minor(self.toolkit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(CellFacts):
    """A row of `data/matrix.toml`."""

    backend: Backend
    compute: str
    variant: str | None
    tvm_ffi: Version | None
    tvm_ffi_variant: str | None
    bundle: bool
    noarch: bool
    set: str
    tested: bool = True
    """Whether anybody has fetched the wheels of its torch."""
    pythons: tuple[str, ...] = ()
    """Tags of the Pythons that this torch supports."""
    python: str | None = None
    """The one Python of the row, if a kernel has a cell for each."""

    def __str__(self) -> str:
        toolkit = "" if self.toolkit is None else f" {self.toolkit}"
        python = "" if self.python is None else f", Python {dotted(self.python)}"
        return f"torch {self.torch}, {self.backend.value}{toolkit}, {self.system}{python}"

    @property
    def rank(self) -> tuple[bool, Version]:
        """The order in which rows build or test a wheel that serves several torches; the last one does."""
        return self.tested, self.torch

    def of_each_python(self) -> tuple["Row", ...]:
        """Return a row for each Python of its torch."""
        return tuple(replace(self, python=python) for python in self.pythons)


@cache
def rows() -> tuple[Row, ...]:
    """Return every row of the matrix, in the file's order."""
    return read((resources.DATA / "matrix.toml").read_text(encoding="utf-8"))


def read(text: str) -> tuple[Row, ...]:
    """Return the rows of a matrix file."""
    table = toml.loads(text)
    pythons = table.get("pythons", {})
    return tuple(
        Row(
            torch=Version(row["torch"]),
            backend=Backend(row["backend"]),
            toolkit=row.get("toolkit"),
            compute=row["compute"],
            system=row["system"],
            variant=row.get("variant"),
            tvm_ffi=Version(row["tvm-ffi"]) if "tvm-ffi" in row else None,
            tvm_ffi_variant=row.get("tvm-ffi-variant"),
            bundle=row.get("bundle", True),
            noarch=row.get("noarch", False),
            set=name,
            tested=row.get("tested", True),
            pythons=tuple(pythons.get(row["torch"], ())),
        )
        for name in SETS
        for row in table.get(name, {}).get("cell", ())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(CellFacts):
    """One wheel to build, named by its variant."""

    variant: str
    framework: Framework
    backend: Backend
    compute: str
    stable_abi: Version | None = None
    tvm_ffi: Version | None = None
    python: str | None = field(default=None, metadata=codec.spelled(sparse=True))
    """The one Python that the library is for, such as `cp312`; None where one library serves them all."""
    bundle: bool = True
    set: str = "release"

    @property
    def noarch(self) -> bool:
        """Whether the wheel has only Python files."""
        return self.framework is Framework.TORCH_NOARCH

    @property
    def name(self) -> Variant:
        """The variant name, taken apart."""
        return Variant.parse(self.variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of one row: a cell, or the rule that left it out."""

    row: Row
    cell: Cell | None = None
    rule: str
    """`built`, `merged` or what left the row out: `backend`, `toolkit`, `torch`, `stable-abi`, …"""
    message: str
    key: KeyPath = ()
    """The key of `build.toml` that decided."""
    remedy: str = ""
    """The change that would give a cell; empty for a row that is built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """An entry of a `when` that does not hold."""

    key: str
    message: str


def unmet(part: Component, place: CellFacts, only: tuple[str, ...] = ()) -> Unmet | None:
    """Return the first unmet entry of the component's `when`; `only` are the GPUs of a quick build."""
    return None if part.when is None else next(_unmet(part.when, (part,), place, only), None)


def may_hold(when: When | None, place: CellFacts) -> bool:
    """Whether a condition holds for some choice of GPUs."""
    return when is None or next(_unmet(replace(when, arch=None), (), place, ()), None) is None


def unmet_of_extension(
    config: Config, name: ExtensionName, backend: Backend, place: CellFacts, only: tuple[str, ...] = ()
) -> Unmet | None:
    """Return the first unmet entry of the extension's `when`; an entry about GPUs is tested for all its components."""
    when = config.extension[name].when
    parts = (part for part in config.components(backend).values() if part.extension == name)
    return None if when is None else next(_unmet(when, parts, place, only), None)


def _unmet(when: When, parts: Iterable[Component], place: CellFacts, only: tuple[str, ...]) -> Iterator[Unmet]:
    toolkit = place.release
    if when.cuda is not None and (toolkit is None or toolkit not in when.cuda):
        yield Unmet(key="cuda", message=f"CUDA {toolkit} is not {when.cuda}")
    if when.torch is not None and place.torch not in when.torch:
        yield Unmet(key="torch", message=f"torch {place.torch} is not {when.torch}")
    if when.systems and place.system not in when.systems:
        yield Unmet(key="system", message=f"{place.system} is not {' or '.join(when.systems)}")
    if when.archs and not any(set(when.archs) & architectures.compiled(part, toolkit, only) for part in parts):
        yield Unmet(key="arch", message=f"it is not compiled for {' or '.join(when.archs)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRequest:
    """The settings of a config for the rows of one backend, looked up once for all rows."""

    config: Config
    backend: Backend
    noarch: bool
    stable: Version | None
    toolkits: frozenset[Version] | None
    merges: bool
    """Whether several rows share a cell."""
    each_python: bool
    """Whether a row has a cell for each Python of its torch."""

    @classmethod
    def of(cls, config: Config, backend: Backend) -> "BackendRequest":
        """Read the settings of `config` for `backend`."""
        noarch = is_noarch(config, backend)
        own = config.matrix.backend.get(backend)
        named = None if own is None else own.toolkits
        stable = None if noarch else config.stable_abi(backend)
        return cls(
            config=config,
            backend=backend,
            noarch=noarch,
            stable=stable,
            toolkits=None if named is None else frozenset(map(minor, named)),
            merges=noarch or stable is not None,
            each_python=config.of_each_python(backend),
        )


def is_noarch(config: Config, backend: Backend) -> bool:
    """Whether `backend` gets a pure-Python wheel, because it has no component."""
    return config.framework is Framework.TORCH_NOARCH or not config.components(backend)


@cache
def minor(version: str) -> Version:
    """Return the `MAJOR.MINOR` of a toolkit's version."""
    return Version(".".join(version.split(".")[:2]))


def left_out(request: BackendRequest, row: Row, *, unbundled: bool) -> Decision | None:
    """Return the first rule that leaves `row` out."""
    for rule in (_of_framework, _of_versions, _of_matrix_table, _of_conditions):
        why = next(rule(request, row), None)
        if why is not None:
            return why
    if row.bundle or unbundled:
        return None
    return Decision(row=row, rule="bundle", message="not part of a release", remedy="pass --all to build it, too")


def _of_framework(request: BackendRequest, row: Row) -> Iterator[Decision]:
    """Yield why the row is for none of the kernel's backends, or not for its framework."""
    backends = request.config.general.backends
    if row.backend not in backends:
        yield Decision(
            row=row,
            rule="backend",
            message=f"{row.backend} is not among the backends ({', '.join(backend.value for backend in backends)})",
            key=("general", "backends"),
            remedy=f"add \"{row.backend}\" to 'general.backends'",
        )
    if row.noarch and not request.noarch:
        yield Decision(
            row=row,
            rule="noarch",
            message=f"{row.backend} builds only pure-Python kernels",
            key=("general", "backends"),
            remedy=f"remove the components of {row.backend}",
        )
    if request.config.framework is Framework.TVM_FFI and row.tvm_ffi is None:
        yield Decision(
            row=row,
            rule="tvm-ffi",
            message="the row has no tvm-ffi cell",
            key=("tvm-ffi",),
            remedy="nothing in this file: only other rows of the matrix have tvm-ffi cells",
        )


def _of_versions(request: BackendRequest, row: Row) -> Iterator[Decision]:
    """Yield which bound of the kernel the row's toolkit or torch is beyond."""
    cuda, torch = request.config.general.cuda, request.config.torch
    bounded: list[tuple[str, str, Version, CudaGeneral | Torch, KeyPath]] = []
    if row.backend is Backend.CUDA and cuda is not None and row.release is not None:
        bounded.append(("toolkit", "CUDA", row.release, cuda, ("general", "cuda")))
    if torch is not None:
        bounded.append(("torch", "torch", row.torch, torch, ("torch",)))
    for rule, what, found, bounds, table in bounded:
        if bounds.minver is not None and found < bounds.minver:
            side, beyond, verb = "minver", f"below minver {bounds.minver}", "lower"
        elif bounds.maxver is not None and bounds.maxver < found:
            side, beyond, verb = "maxver", f"above maxver {bounds.maxver}", "raise"
        else:
            continue
        remedy = f"{verb} '{'.'.join(table)}.{side}' to {found}"
        yield Decision(row=row, rule=rule, message=f"{what} {found} is {beyond}", key=(*table, side), remedy=remedy)
    if request.stable is not None and row.torch < request.stable:
        yield Decision(
            row=row,
            rule="stable-abi",
            message=f"torch {row.torch} is older than the stable ABI {request.stable}",
            key=("torch", "stable-abi"),
            remedy=f"target a stable ABI of at most {row.torch}",
        )


def _of_matrix_table(request: BackendRequest, row: Row) -> Iterator[Decision]:
    """Yield which list in `[matrix]` lacks the system or the toolkit of the row."""
    matrix = request.config.matrix
    own = matrix.backend.get(row.backend)
    places: tuple[tuple[tuple[str, ...] | None, KeyPath], ...] = (
        (matrix.systems, ("matrix", "systems")),
        (None if own is None else own.systems, ("matrix", row.backend.value, "systems")),
    )
    for systems, key in places:
        if systems is not None and row.system not in systems:
            message = f"{row.system} is not among the systems ({', '.join(systems)})"
            yield Decision(
                row=row, rule="systems", message=message, key=key, remedy=f"add \"{row.system}\" to '{'.'.join(key)}'"
            )
    if request.toolkits is not None and row.toolkit is not None and row.release not in request.toolkits:
        named = ", ".join(map(str, sorted(request.toolkits)))
        yield Decision(
            row=row,
            rule="toolkits",
            message=f"{row.backend} {row.toolkit} is not among the toolkits ({named})",
            key=("matrix", row.backend.value, "toolkits"),
            remedy=f"add \"{row.toolkit}\" to 'matrix.{row.backend}.toolkits'",
        )


def _of_conditions(request: BackendRequest, row: Row) -> Iterator[Decision]:
    """Yield each library of which the row would have no component; `cuda-minver` alone never leaves a row out."""
    if request.noarch:
        return
    config, toolkit = request.config, row.release
    extensions = config.extensions(row.backend)
    present = (name for name in extensions if unmet_of_extension(config, name, row.backend, row) is None)
    for extension in (None, *present):
        reasons = {}
        compiled = False
        for name, part in config.of_library(extension).components(row.backend).items():
            minver: Version | None = getattr(part, "cuda_minver", None)
            why = unmet(part, row)
            if why is not None:
                reasons[name] = why
            elif minver is None or toolkit is None or minver <= toolkit:
                compiled = True
        if reasons and not compiled:
            first, why = next(iter(reasons.items()))
            of = "" if extension is None else f" of the extension '{extension}'"
            said = "; ".join(f"{name}: {each.message}" for name, each in reasons.items())
            yield Decision(
                row=row,
                rule="when",
                message=f"every component{of} is left out: {said}",
                key=("kernel", first, "when", why.key),
                remedy="widen the 'when' of a component",
            )
