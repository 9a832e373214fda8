"""Lay wheels out for the hub: `<variant>/…`, each directory complete or absent."""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.config import Framework
from builder.errors import BuilderError, NothingToDoError
from builder.files import flush_names, lock
from builder.kernel.git import Checkout
from builder.make import wheel_record as record
from builder.matrix.variant import Variant
from builder.metadata import METADATA_FILE, SIGNATURE_FILE
from builder.publish.card import NAME as CARD
from builder.wheel.archive import Bytes, Member
from builder.wheel.kernel_wheel import KernelWheel, one_kernel

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The commit from which a kernel was built."""

    id: str
    dirty: bool = False
    """Whether tracked files differed from the commit."""

    def __post_init__(self) -> None:
        if _COMMIT.fullmatch(self.id) is None:
            raise BuilderError(
                f"'{self.id}' is not a commit: write all 40 or 64 hexadecimal digits",
                help="`git rev-parse HEAD` prints them",
            )


def commit_of(directory: Path) -> Commit | None:
    """Return the commit of the checkout around `directory`; None outside a checkout.

    Raises:
        ToolError: git cannot be started.
    """
    checkout = Checkout.around(directory)
    head = None if checkout is None else checkout.commit("HEAD")
    return None if checkout is None or head is None else Commit(id=head, dirty=checkout.changed())


def origin(*, kernel: Path | None, commit: str | None) -> Commit | None:
    """Return the given commit, or else that of the kernel's checkout."""
    if commit is not None:
        return Commit(id=commit)
    return None if kernel is None else commit_of(kernel)


def lay_out(wheels: Sequence[KernelWheel], *, commit: Commit | None = None) -> dict[str, dict[str, Member]]:
    """Return the files of each variant directory; `metadata.json` gets the commit, and is not in their digest.

    Raises:
        BuilderError: the wheels belong to several kernels, two have the same variant, or one is a plain library.
    """
    one_kernel(wheels)
    plain = next((each for each in wheels if each.variant.framework is Framework.CTYPES), None)
    if plain is not None:
        raise BuilderError(
            f"'{plain.wheel.path.name}' is a plain library, but the client of the hub loads only kernels of torch",
            help="publish it in a package index: builder index",
        )
    found = {}
    for each in wheels:
        metadata = each.metadata
        if commit is not None:
            metadata = metadata.from_commit(commit.id, dirty=commit.dirty)
        if record.sandboxed(each.wheel.path, sha256=each.sha256) is False:
            metadata = metadata.without_sandbox()
        completed = {} if metadata is each.metadata else {METADATA_FILE: Bytes(metadata.text.encode())}
        found[str(each.variant)] = {**each.package, **completed}
    return found


def variants_in(output: Path) -> tuple[str, ...]:
    """Return the sorted names of the variants in a directory."""
    return tuple(path.name for path in sorted(output.glob("t*")) if path.is_dir() and is_variant(path.name))


def is_variant(name: str) -> bool:
    """Whether a folder has the name of a variant."""
    try:
        Variant.parse(name)
    except ValueError:
        return False
    return True


def write(
    tree: Mapping[str, Mapping[str, Member]], output: Path, *, card: str | None = None, overwrite: bool = False
) -> tuple[str, ...]:
    """Write variant directories under `output`, and return the new ones; an equal existing one stays.

    Raises:
        NothingToDoError: a variant exists with other content, and `overwrite` is not set.
        BuilderError: `output` cannot be written.
    """
    output = Path(os.path.abspath(output))  # noqa: PTH100  resolve() would follow a link that is to be replaced
    try:
        output.mkdir(parents=True, exist_ok=True)
        with _staging(output) as aside:
            there = {variant for variant in tree if os.path.lexists(output / variant)}
            equal = {variant for variant in there if _equal(output / variant, tree[variant])}
            if there - equal and not overwrite:
                raise NothingToDoError(
                    f"'{output}' already has other files for {', '.join(sorted(there - equal))}",
                    help="pass --force to replace them, or name another place with --output",
                )
            new = sorted(tree.keys() - equal)
            for variant in new:
                _write_files(tree[variant], aside / variant)
            for variant in new:
                if variant in there:
                    (output / variant).rename(aside / f".old-{variant}")
                (aside / variant).rename(output / variant)
            if card is not None:
                _write_file(aside / CARD, (card.encode(),), executable=False)
                (aside / CARD).replace(output / CARD)
            flush_names(output)
    except OSError as error:
        raise BuilderError(
            f"cannot write '{output}': {error.strerror}", help="free the disk, or name another place with --output"
        ) from error
    return tuple(new)


@contextlib.contextmanager
def _staging(output: Path) -> Iterator[Path]:
    """Yield a directory on the same disk; its lock tells whether an existing one belongs to a living process."""
    aside = output / ".part"
    held = os.open(output, os.O_RDONLY)
    try:
        lock(held)
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(OSError):
            output.rmdir()  # created for nothing
        os.close(held)


def _write_files(files: Mapping[str, Member], root: Path) -> None:
    for name, member in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_file(target, member.chunks(), executable=bool(member.mode & stat.S_IXUSR))
    for folder, _folders, _names in os.walk(root):
        Path(folder).chmod(0o755)
        flush_names(Path(folder))


def _write_file(target: Path, pieces: Iterable[bytes], *, executable: bool) -> None:
    with target.open("wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    target.chmod(0o755 if executable else 0o644)


def _equal(folder: Path, files: Mapping[str, Member]) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    found.pop(SIGNATURE_FILE, None)  # it stays with the file that it signs
    return found.keys() == files.keys() and all(_has(path, files[name]) for name, path in found.items())


def _has(path: Path, member: Member) -> bool:
    """Whether a plain file has the content of a member."""
    if path.is_symlink() or path.stat().st_size != member.size:
        return False
    with path.open("rb") as file:
        return all(file.read(len(piece)) == piece for piece in member.chunks())
