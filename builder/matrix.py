"""The build matrix: which cells a config gets, and why."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from builder import _toml, resources
from builder.config import Backend, Config, Framework, Version
from builder.variant import Variant, noarch_name

SETS = ("release", "preview")
NOARCH_ONLY = (Backend.CANN, Backend.NEURON, Backend.TPU)

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of `data/matrix.toml`."""

    torch: Version
    backend: Backend
    toolkit: str | None
    compute: str
    system: str
    variant: str | None
    tvm_ffi: Version | None
    tvm_ffi_variant: str | None
    bundle: bool
    noarch: bool
    set: str

    def __str__(self) -> str:
        toolkit = "" if self.toolkit is None else f" {self.toolkit}"
        return f"torch {self.torch}, {self.backend}{toolkit}, {self.system}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One wheel to build, named by its variant."""

    variant: str
    framework: Framework
    backend: Backend
    system: str
    torch: Version
    """The torch to build against, or for noarch to test with."""
    toolkit: str | None
    compute: str
    stable_abi: Version | None = None
    tvm_ffi: Version | None = None
    bundle: bool = True
    set: str = "release"

    @property
    def noarch(self) -> bool:
        """Whether the wheel has Python files alone."""
        return self.framework is Framework.TORCH_NOARCH

    @property
    def name(self) -> Variant:
        """The variant name, taken apart."""
        return Variant.parse(self.variant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of one row: a cell, or the rule that left it out."""

    row: Row
    cell: Cell | None
    rule: str
    """`built`, `merged` or what left the row out: `backend`, `toolkit`, `torch`, `stable-abi`, …"""
    message: str
    key: KeyPath = ()
    """The key of `build.toml` that decided."""


@cache
def rows() -> tuple[Row, ...]:
    """Return every row of the matrix, in the file's order."""
    table = _toml.loads((resources.DATA / "matrix.toml").read_text(encoding="utf-8"))
    return tuple(_row(row, name) for name in SETS for row in table[name]["cell"])


def _row(row: dict[str, Any], name: str) -> Row:
    tvm_ffi = row.get("tvm-ffi")
    return Row(
        torch=Version(row["torch"]),
        backend=Backend(row["backend"]),
        toolkit=row.get("toolkit"),
        compute=row["compute"],
        system=row["system"],
        variant=row.get("variant"),
        tvm_ffi=None if tvm_ffi is None else Version(tvm_ffi),
        tvm_ffi_variant=row.get("tvm-ffi-variant"),
        bundle=row.get("bundle", True),
        noarch=row.get("noarch", False),
        set=name,
    )


def select(config: Config, among: Iterable[Row], *, unbundled: bool = False) -> tuple[Cell, ...]:
    """Return the cells of `config`, in matrix order; `unbundled` adds those that are not released."""
    decisions = decide(config, among, unbundled=unbundled)
    return tuple(decision.cell for decision in decisions if decision.cell is not None)


def decide(config: Config, among: Iterable[Row], *, unbundled: bool = False) -> tuple[Decision, ...]:
    """Return what became of every row, in matrix order."""
    candidates = tuple(among)
    left_out = {row: why for row in candidates if (why := _left_out(config, row, unbundled=unbundled)) is not None}
    kept = [row for row in candidates if row not in left_out]
    newest = _newest(config, kept)
    taken: dict[str, Row] = {}
    decisions = []
    for row in candidates:
        if row in left_out:
            decisions.append(left_out[row])
            continue
        decisions.append(_decide(config, row, newest=newest[_group(config, row)], taken=taken))
    return tuple(decisions)


def _decide(config: Config, row: Row, *, newest: Row, taken: dict[str, Row]) -> Decision:
    cell = _cell(config, row)
    if newest is not row:
        kind = "noarch" if cell.noarch else "stable ABI"
        key = ("general", "backends") if cell.noarch else ("torch", "stable-abi")
        message = f"one {kind} wheel serves every torch: built with torch {newest.torch} as {cell.variant}"
        return Decision(row=row, cell=None, rule="merged", message=message, key=key)
    # The system is part of every name but those of noarch cells, of which each system has one.
    identity = f"{cell.variant} {cell.system}"
    if identity in taken:
        message = f"an earlier row ({taken[identity]}) already gives {cell.variant}"
        return Decision(row=row, cell=None, rule="merged", message=message)
    taken[identity] = row
    return Decision(row=row, cell=cell, rule="built", message=f"built as {cell.variant}")


def is_noarch(config: Config, backend: Backend) -> bool:
    """Whether `backend` gets a wheel of Python files alone: it has no component."""
    return config.framework is Framework.TORCH_NOARCH or not config.components(backend)


def _group(config: Config, row: Row) -> tuple[object, ...]:
    """Return what rows share that give one cell together."""
    if is_noarch(config, row.backend):
        return ("noarch", row.backend, row.system)
    if config.stable_abi(row.backend) is not None:
        return ("stable", row.backend, row.system, row.toolkit)
    return ("row", row)


def _newest(config: Config, kept: Iterable[Row]) -> dict[tuple[object, ...], Row]:
    newest: dict[tuple[object, ...], Row] = {}
    for row in kept:
        group = _group(config, row)
        if group not in newest or newest[group].torch < row.torch:
            newest[group] = row
    return newest


def _cell(config: Config, row: Row) -> Cell:
    stable = config.stable_abi(row.backend)
    tvm_ffi: Version | None = None
    framework = config.framework
    if is_noarch(config, row.backend):
        framework, stable, variant = Framework.TORCH_NOARCH, None, noarch_name(row.backend)
    elif framework is Framework.TVM_FFI:
        tvm_ffi, variant = row.tvm_ffi, str(row.tvm_ffi_variant)
    elif stable is not None:
        variant = f"torch-stable-abi{stable.major}{stable.minor}-{row.compute}-{row.system}"
    else:
        variant = str(row.variant)
    return Cell(
        variant=variant,
        framework=framework,
        backend=row.backend,
        system=row.system,
        torch=row.torch,
        toolkit=row.toolkit,
        compute=row.compute,
        stable_abi=stable,
        tvm_ffi=tvm_ffi,
        bundle=row.bundle,
        set=row.set,
    )


_Rule = Callable[[Config, Row], tuple[str, KeyPath] | None]


def _left_out(config: Config, row: Row, *, unbundled: bool) -> Decision | None:
    for name, rule in _RULES:
        found = rule(config, row)
        if found is not None:
            message, key = found
            return Decision(row=row, cell=None, rule=name, message=message, key=key)
    if not row.bundle and not unbundled:
        message = "not part of a release: pass --all to build it"
        return Decision(row=row, cell=None, rule="bundle", message=message)
    return None


def _rule_backend(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    if row.backend in config.general.backends:
        return None
    names = ", ".join(backend.value for backend in config.general.backends)
    return f"{row.backend} is not among the backends ({names})", ("general", "backends")


def _rule_noarch_row(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    if not row.noarch or is_noarch(config, row.backend):
        return None
    return f"{row.backend} builds kernels of Python alone", ("general", "backends")


def _rule_tvm_ffi(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    if config.framework is not Framework.TVM_FFI or row.tvm_ffi is not None:
        return None
    return "the row has no tvm-ffi cell", ("tvm-ffi",)


def _rule_toolkit(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    cuda = config.general.cuda
    if row.backend is not Backend.CUDA or cuda is None or row.toolkit is None:
        return None
    return _outside("CUDA", _minor(row.toolkit), (cuda.minver, cuda.maxver), ("general", "cuda"))


def _rule_torch(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    if config.torch is None:
        return None
    return _outside("torch", row.torch, (config.torch.minver, config.torch.maxver), ("torch",))


def _rule_stable_abi(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    stable = config.stable_abi(row.backend)
    if stable is None or is_noarch(config, row.backend) or not row.torch < stable:
        return None
    return f"torch {row.torch} is older than the stable ABI {stable}", ("torch", "stable-abi")


def _rule_systems(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    if config.matrix is None:
        return None
    own = config.matrix.backend.get(row.backend)
    places = (
        (config.matrix.systems, ("matrix",)),
        (None if own is None else own.systems, ("matrix", row.backend.value)),
    )
    for systems, table in places:
        if systems is not None and row.system not in systems:
            return f"{row.system} is not among the systems ({', '.join(systems)})", (*table, "systems")
    return None


def _rule_toolkits(config: Config, row: Row) -> tuple[str, KeyPath] | None:
    own = None if config.matrix is None else config.matrix.backend.get(row.backend)
    if own is None or own.toolkits is None or row.toolkit is None:
        return None
    if any(str(_minor(toolkit)) == str(_minor(row.toolkit)) for toolkit in own.toolkits):
        return None
    return (
        f"{row.backend} {row.toolkit} is not among the toolkits ({', '.join(own.toolkits)})",
        ("matrix", row.backend.value, "toolkits"),
    )


_RULES: tuple[tuple[str, _Rule], ...] = (
    ("backend", _rule_backend),
    ("noarch", _rule_noarch_row),
    ("tvm-ffi", _rule_tvm_ffi),
    ("toolkit", _rule_toolkit),
    ("torch", _rule_torch),
    ("stable-abi", _rule_stable_abi),
    ("systems", _rule_systems),
    ("toolkits", _rule_toolkits),
)


def _minor(version: str) -> Version:
    return Version(".".join(version.split(".")[:2]))


def _outside(
    what: str, found: Version, bounds: tuple[Version | None, Version | None], table: KeyPath
) -> tuple[str, KeyPath] | None:
    low, high = bounds
    if low is not None and found < low:
        return f"{what} {found} is below minver {low}", (*table, "minver")
    if high is not None and high < found:
        return f"{what} {found} is above maxver {high}", (*table, "maxver")
    return None
