"""Check a folder in hub layout: all its variants together, and each variant like the wheel it was made from."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import parse_wheel_filename

from builder import json_text, matrix, untrusted
from builder.audit.report import AuditReport, Finding
from builder.audit.subject import read_metadata
from builder.config import Config, Framework, KernelName, libraries
from builder.errors import Severity
from builder.hashes import digest, record_hash
from builder.kernel import Kernel
from builder.matrix.variant import Variant
from builder.metadata import ID, ID_KEY, METADATA_FILE, KernelMetadata
from builder.wheel.archive import MAX_MEMBERS, Bytes, Member, Wheel, WheelError, check_name
from builder.wheel.options import MANYLINUX

RULE = "hub-layout"
_CARD = "CARD.md"
_SHOWN = 120
_PIECE = 1 << 20
_MACHINES = {"x86_64": "x86_64", "aarch64": "arm64"}
_LARGEST_VERSION = 1 << 31
_ABI3 = ".abi3.so"


def variants(root: Path) -> tuple[Path, ...]:
    """Return the folders of the variants in a layout, sorted by name."""
    return tuple(path for path in sorted(root.iterdir()) if path.is_dir() and named(path.name) is not None)


def check(root: Path, *, kernel: Kernel | None = None, complete: bool = False) -> AuditReport:
    """Judge a layout as a whole; the content of a variant is judged like a wheel.

    Args:
        root: The folder with the variants.
        kernel: The kernel that the variants must belong to.
        complete: Whether a missing variant is an error and not a warning.
    """
    found = {path.name: path for path in variants(root)}
    tables = {name: _table(folder) for name, folder in found.items()}
    findings = [*_strangers(root, found), *_one_kernel(tables.values())]
    if kernel is not None:
        findings += _cells(kernel.config, found, complete=complete)
        findings += (finding for name, table in tables.items() for finding in _of_config(kernel.config, name, table))
    return AuditReport(wheel=str(root), rules=(RULE,), findings=tuple(sorted(findings)))


def _strangers(root: Path, found: Mapping[str, Path]) -> Iterator[Finding]:
    if not found:
        yield Finding(str(root), RULE, "variants", "it has no variant", "lay wheels out: builder bundle WHEEL...")
    for path in sorted(root.iterdir()):
        if path.name in found or (path.name == _CARD and path.is_file()):
            continue
        what = "no variant that a client looks for" if path.is_dir() else "no folder of a variant"
        yield Finding(path.name, RULE, path.name, f"it is {what}", "leave it out, or name it like a variant")


def _table(folder: Path) -> KernelMetadata:
    """Read a metadata.json; empty if it cannot be read, which the audit of the variant reports."""
    try:
        with (folder / METADATA_FILE).open("rb") as file:
            return read_metadata(file.read(untrusted.LARGEST_TEXT + 1))
    except OSError:
        return KernelMetadata()


def _one_kernel(tables: Iterable[KernelMetadata]) -> Iterator[Finding]:
    """Check that all variants are of one version of one kernel: a repository has one kernel, a branch one version."""
    found: dict[str, dict[str, None]] = {}
    for table in tables:
        for key, value in table.identity.items():
            found.setdefault(key, {})[_spelled(value)] = None
    for key, kinds in found.items():
        if len(kinds) > 1:
            why = f"the variants have {', '.join(kinds)}"
            yield Finding(METADATA_FILE, RULE, key, why, "publish each kernel and version by itself")


def _cells(config: Config, found: Iterable[str], *, complete: bool) -> Iterator[Finding]:
    """Compare the variants with the cells that are released."""
    there, rows = set(found), matrix.rows()
    known = {cell.variant for cell in matrix.select(config, rows, unbundled=True)}
    severity: Severity = "error" if complete else "warning"
    for cell in matrix.select(config, tuple(row for row in rows if row.set == "release")):
        if cell.variant not in there:
            remedy = f"build it: builder build --variant {cell.variant}"
            yield Finding(cell.variant, RULE, cell.variant, "this variant is missing", remedy, severity)
    for name in sorted(there - known):
        why = "build.toml has no such variant"
        yield Finding(name, RULE, name, why, "remove it, or correct build.toml", severity="warning")


def _of_config(config: Config, name: str, table: KernelMetadata) -> Iterator[Finding]:
    """Compare a metadata.json with the one that the config gives."""
    variant = Variant.parse(name)
    file = f"{name}/{METADATA_FILE}"
    if not table.table:
        return
    expected = KernelMetadata.of(config, variant.backend, ops="", extensions={})
    for key, said, meant in table.unlike(expected):
        why = f"it says {_spelled(said)}, build.toml {_spelled(meant)}"
        yield Finding(file, RULE, key, why, "build the variant again")
    # The ops belong to this kernel and backend.
    begin = f"_{config.general.name.module}_{variant.backend}_"
    ops = table.ops
    if ops is None or ID.fullmatch(ops) is None or not ops.startswith(begin):
        why = f"it says {_spelled(ops)}, not '{begin}…'"
        yield Finding(file, RULE, ID_KEY, why, "build the variant again")


def _spelled(value: object) -> str:
    return "nothing" if value is None else json_text.line(value, escaped=False)[:_SHOWN]


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """A file of a variant, as a member of a wheel."""

    path: Path
    size: int
    mode: int

    def read(self) -> bytes:
        """Return the content."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces.

        Raises:
            WheelError: it cannot be read, or changed meanwhile.
        """
        left = self.size
        try:
            with self.path.open("rb") as file:
                while left and (piece := file.read(min(_PIECE, left))):
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise WheelError(f"cannot read '{self.path}': {error.strerror}") from error
        if left:
            raise WheelError(f"'{self.path}' became shorter while it was read")


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False for a path that the system does not allow."""
    try:
        return path.is_dir()
    except OSError:
        return False


def named(name: str) -> Variant | None:
    """Parse the name of a variant's folder; None if the hub's client would not look for this name."""
    try:
        variant = Variant.parse(name)
    except ValueError:
        return None
    return None if variant.framework is Framework.CTYPES else variant


def read_variant(folder: Path) -> Wheel:
    """Return a variant as a wheel: its files, with the tags that its name promises.

    Raises:
        WheelError: its name is not that of a variant, or it contains something other than plain files with safe names.
    """
    variant = named(Path(os.path.abspath(folder)).name)  # noqa: PTH100  the name of a link is the variant's
    if variant is None:
        raise WheelError(f"'{folder}' is not named like a variant, such as 'torch-cuda'", help="name a folder of one")
    files = dict(_files_of(folder))
    said, described = KernelMetadata(), files.get(METADATA_FILE)
    if described is not None and described.size <= untrusted.LARGEST_TEXT:
        said = read_metadata(described.read())
    # A missing name or version is made up: the checks compare it with the files.
    try:
        name = str(KernelName(str(said.name)))
    except ValueError:
        name = "unnamed"
    major = said.version if said.version is not None and 0 <= said.version < _LARGEST_VERSION else 0
    module = name.replace("-", "_")
    path = Path(f"{module}-{major}.0.0+{variant.label}-{_tag(variant, files)}.whl")
    normalised, version, _build, tags = parse_wheel_filename(path.name)
    members: dict[str, Member] = {f"{module}/{each}": file for each, file in files.items()}
    wheel = Wheel(path=path, name=str(normalised), version=version, tags=tags, members=members)
    return replace(wheel, members={**members, **_dist_info(wheel, name, variant)})


def size_of(folder: Path) -> int:
    """Return the size of all files of a variant."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _files_of(folder: Path) -> Iterator[tuple[str, Member]]:
    for number, path in enumerate(sorted(folder.rglob("*"))):
        name = path.relative_to(folder).as_posix()
        check_name(name, archive=folder)
        if number >= MAX_MEMBERS:
            raise WheelError(f"'{folder}' has more than the {MAX_MEMBERS} files that are read")
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise WheelError(
                f"'{path}' is not a plain file",
                help="fetch the layout into a folder of its own: hf download --local-dir",
            )
        if path.is_file():
            status = path.stat()
            yield name, _OnDisk(path, status.st_size, status.st_mode & 0o777)


def _tag(variant: Variant, files: Iterable[str]) -> str:
    """Return the tag that the name of a variant promises."""
    interpreter = "cp39-abi3" if any(name.endswith(_ABI3) for name in files) else "py3-none"
    if variant.python is not None:
        interpreter = f"{variant.python}-{variant.python}"
    if variant.system is None:
        return f"{interpreter}-any"
    machine, system = variant.system.split("-")
    if system == "darwin":
        oldest = str(variant.backend.facts.macos).replace(".", "_")
        return f"{interpreter}-macosx_{oldest}_{_MACHINES[machine]}"
    if system == "windows":
        return f"{interpreter}-win_{'amd64' if machine == 'x86_64' else 'arm64'}"
    return f"{interpreter}-{MANYLINUX}_{machine}"


def _dist_info(wheel: Wheel, name: str, variant: Variant) -> dict[str, Member]:
    """Make the `.dist-info` files of a variant, which a hub layout does not have."""
    requires = [f"Requires-Dist: {each}" for each in _requires(variant)]
    tags = [f"Tag: {tag}" for tag in sorted(wheel.tags, key=str)]
    texts = {
        "METADATA": ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {wheel.version}", *requires],
        "WHEEL": ["Wheel-Version: 1.0", f"Root-Is-Purelib: {str(variant.noarch).lower()}", *tags],
    }
    made: dict[str, Member] = {
        f"{wheel.dist_info}/{file}": Bytes(("\n".join(lines) + "\n").encode()) for file, lines in texts.items()
    }
    rows = io.StringIO()
    for each, member in {**wheel.members, **made}.items():
        csv.writer(rows, lineterminator="\n").writerow((each, record_hash(digest(member.chunks())), member.size))
    record = f"{wheel.dist_info}/RECORD"
    return {**made, record: Bytes(f"{rows.getvalue()}{record},,\n".encode())}


def _requires(variant: Variant) -> tuple[str, ...]:
    """Return the requirements of a variant: its framework, and the packages with the toolkit's libraries."""
    brought = sorted({wheel for facts in libraries.table().values() for wheel in facts.wheels.values()})
    if variant.version is None:
        return ("torch", *brought)
    if variant.framework is Framework.TVM_FFI:
        return (f"apache-tvm-ffi=={variant.version}.*", *brought)
    return (f"torch>={variant.version}" if variant.stable else f"torch=={variant.version}.*", *brought)
