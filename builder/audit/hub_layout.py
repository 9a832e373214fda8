"""A folder in hub layout: which variants it has, whether they are of one kernel, and whether of the one at hand."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from builder import json_text, matrix
from builder.audit import hub_variant
from builder.audit.report import AuditReport, Finding
from builder.config import Config
from builder.errors import Severity
from builder.kernel import Kernel
from builder.matrix.variant import Variant
from builder.metadata import ID, ID_KEY, METADATA_FILE, KernelMetadata
from builder.untrusted import UntrustedError

RULE = "hub-layout"
_CARD = "CARD.md"
_LARGEST = 16 << 20
_SHOWN = 120


def variants(root: Path) -> tuple[Path, ...]:
    """Return the folders of the variants in a layout, by name."""
    return tuple(path for path in sorted(root.iterdir()) if path.is_dir() and hub_variant.named(path.name) is not None)


def check(root: Path, *, kernel: Kernel | None = None, complete: bool = False) -> AuditReport:
    """Judge a layout as a whole; what is in a variant is judged like a wheel.

    Args:
        root: The folder that has the variants.
        kernel: What they must be of.
        complete: Whether a variant that is missing is an error, and not a warning.
    """
    found = {path.name: path for path in variants(root)}
    tables = {name: _table(folder) for name, folder in found.items()}
    findings = [*_strangers(root, found), *_one_kernel(tables.values())]
    if kernel is not None:
        findings += _cells(kernel.config, found, complete=complete)
        findings += (finding for name, table in tables.items() for finding in _of_config(kernel.config, name, table))
    return AuditReport(wheel=str(root), rules=(RULE,), findings=tuple(sorted(findings)))


def _finding(file: str, symbol: str, why: str, remedy: str, severity: Severity = "error") -> Finding:
    return Finding(file=file, rule=RULE, symbol=symbol, why=why, remedy=remedy, severity=severity)


def _strangers(root: Path, found: Mapping[str, Path]) -> Iterator[Finding]:
    if not found:
        yield _finding(str(root), "variants", "it has no variant", "lay wheels out: builder bundle WHEEL...")
    for path in sorted(root.iterdir()):
        if path.name in found or (path.name == _CARD and path.is_file()):
            continue
        what = "no variant that a client looks for" if path.is_dir() else "no folder of a variant"
        yield _finding(path.name, path.name, f"it is {what}", "leave it out, or name it like a variant")


def _table(folder: Path) -> KernelMetadata:
    """Return a metadata.json; nothing of one that cannot be read, which the audit of the variant says."""
    path = folder / METADATA_FILE
    try:
        with path.open("rb") as file:
            return KernelMetadata.read(file.read(_LARGEST))
    except (OSError, UntrustedError):
        return KernelMetadata()


def _one_kernel(tables: Iterable[KernelMetadata]) -> Iterator[Finding]:
    """Judge that all are of one version of one kernel: a repository has one, and a branch has one version."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        for key, value in table.identity.items():
            found.setdefault(key, {})[_spelled(value)] = None
    for key, kinds in found.items():
        if len(kinds) > 1:
            yield _finding(
                METADATA_FILE, key, f"the variants have {', '.join(kinds)}", "publish each kernel and version by itself"
            )


def _cells(config: Config, found: Iterable[str], *, complete: bool) -> Iterator[Finding]:
    """Compare the variants with the cells that are released."""
    there = set(found)
    wanted = [cell.variant for cell in matrix.select(config, _rows("release"))]
    known = {cell.variant for cell in matrix.select(config, matrix.rows(), unbundled=True)}
    for name in wanted:
        if name not in there:
            yield _finding(
                name, name, "this variant is missing", f"build it: builder build --variant {name}",
                "error" if complete else "warning",
            )  # fmt: skip
    for name in sorted(there - known):
        yield _finding(name, name, "build.toml has no such variant", "remove it, or correct build.toml", "warning")


def _rows(set_: str) -> tuple[matrix.Row, ...]:
    return tuple(row for row in matrix.rows() if row.set == set_)


def _of_config(config: Config, name: str, table: KernelMetadata) -> Iterator[Finding]:
    """Compare a metadata.json with what the config would make it."""
    variant = Variant.parse(name)
    file = f"{name}/{METADATA_FILE}"
    if not table.table:
        return
    expected = KernelMetadata.of(config, variant.backend, ops="", extensions={})
    for key, said, meant in table.unlike(expected):
        why = f"it says {_spelled(said)}, build.toml {_spelled(meant)}"
        yield _finding(file, key, why, "build the variant again")
    # The ops are of this kernel and this backend.
    begin = f"_{config.general.name.module}_{variant.backend}_"
    ops = table.ops
    if ops is None or ID.fullmatch(ops) is None or not ops.startswith(begin):
        yield _finding(file, ID_KEY, f"it says {_spelled(ops)}, not '{begin}…'", "build the variant again")


def _spelled(value: object) -> str:
    return "nothing" if value is None else json_text.line(value, escaped=False)[:_SHOWN]
