"""The builds that a name stands for: a wheel, a folder of wheels, a package index, or a folder in hub layout."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from builder import untrusted
from builder.audit import hub_layout
from builder.environment.download import download
from builder.errors import BuilderError
from builder.hashes import sha256_of
from builder.metadata import METADATA_FILE
from builder.publish.index.contents import MANIFEST
from builder.run import Processes
from builder.untrusted import UntrustedError, why_not_a_name
from builder.wheel.kernel_wheel import variant_of

_SIMPLE = "files"
_HTTP = ("http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two builds."""

    name: str
    builds: Mapping[str, Path]
    """The wheels, or the folders of variants, by variant; by file name for a wheel of no variant."""


@contextmanager
def opened(names: tuple[str, str], *, environ: Mapping[str, str], processes: Processes) -> Iterator[tuple[Side, Side]]:
    """Yield the two builds; those of an index that is a URL are fetched, and removed at the end.

    An index that has several kernels has that of the other name.

    Raises:
        BuilderError: a name stands for nothing that can be compared.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="builder-diff-")))
        found: dict[str, Side] = {}
        # An index last: the other name says which kernel of it is meant.
        for name in sorted(names, key=lambda name: _index(name) is not None):
            others = {path.name.partition("-")[0] for side in found.values() for path in side.builds.values()}
            index = _index(name)
            if index is None:
                found[name] = _of_path(Path(name))
                continue
            place, version = index
            into = folder / str(len(found))
            into.mkdir()
            fetch = _Fetch(place=place, into=into, environ=environ, processes=processes)
            found[name] = Side(name=name, builds=fetch.builds(version, kernels=others))
        yield found[names[0]], found[names[1]]


def _index(name: str) -> tuple[str, Version | None] | None:
    """Split `INDEX==VERSION`; None for what is no index, such as a wheel."""
    place, _, version = name.partition("==")
    if not place.startswith(_HTTP) and not (Path(place) / MANIFEST).is_file():
        return None
    try:
        return place.rstrip("/"), Version(version) if version else None
    except InvalidVersion as error:
        raise BuilderError(f"'{version}' is not a version", help="write INDEX==1.2.0") from error


def _of_path(path: Path) -> Side:
    if path.suffix == ".whl" or not hub_layout.is_folder(path):
        return Side(name=str(path), builds=_by_variant([path]))
    if (path / METADATA_FILE).is_file() and hub_layout.named(path.resolve().name) is not None:
        return Side(name=str(path), builds={path.resolve().name: path})
    wheels = sorted(path.glob("*.whl"))
    layout = path / "build" if (path / "build").is_dir() and not hub_layout.variants(path) else path
    builds = _by_variant(wheels) if wheels else {each.name: each for each in hub_layout.variants(layout)}
    if not builds:
        raise BuilderError(
            f"'{path}' has no wheels and no variants", help="name a wheel, a folder of wheels, an index or a hub layout"
        )
    return Side(name=str(path), builds=builds)


def _by_variant(paths: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in paths:
        variant = variant_name(path)
        if variant in found:
            raise BuilderError(
                f"'{found[variant].name}' and '{path.name}' are of one variant",
                help="keep the wheels of one version in the folder, or name an index with a version",
            )
        found[variant] = path
    return found


def variant_name(path: Path) -> str:
    """Return the variant of a wheel by its file name; the file name of a wheel of no variant."""
    try:
        _, version, _, tags = parse_wheel_filename(path.name)
        return str(variant_of(version.local, tags))
    except (InvalidWheelFilename, BuilderError):
        return path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetch:
    """The wheels of an index, in a folder or at a URL."""

    place: str
    into: Path
    environ: Mapping[str, str]
    processes: Processes

    def builds(self, version: Version | None, *, kernels: set[str]) -> dict[str, Path]:
        """Return the wheels of a version, or of the newest one, of the only kernel or of that of the other name."""
        listed = self._listed()
        versions: dict[tuple[str, Version], list[str]] = {}
        for name in listed:
            try:
                distribution, found, _, _ = parse_wheel_filename(name)
            except InvalidWheelFilename:
                continue
            versions.setdefault((str(distribution).replace("-", "_"), Version(found.public)), []).append(name)
        names = {name for name, _ in versions}
        kernel = next(iter(names & kernels if len(names) > 1 else names), None)
        if kernel is None:
            raise BuilderError(
                f"'{self.place}' has {', '.join(sorted(names)) or 'no wheels'}",
                help="name wheels of one of its kernels",
            )
        there = sorted(each for name, each in versions if name == kernel)
        wanted = there[-1] if version is None else version
        if wanted not in there:
            raise BuilderError(f"'{self.place}' has no {kernel} {wanted}", help=f"it has {', '.join(map(str, there))}")
        return _by_variant(self._file(name, listed[name]) for name in sorted(versions[kernel, wanted]))

    def _listed(self) -> Mapping[str, str]:
        """Return the names of the wheels, with their digests."""
        path = self._got(MANIFEST, self.into / MANIFEST)
        try:
            files = untrusted.json_object(path.read_bytes()).get("files")
        except UntrustedError as error:
            raise BuilderError(f"'{self.place}' has a {MANIFEST} that cannot be read: {error}") from error
        table = files if isinstance(files, dict) else {}
        return {name: str(digest) for name, digest in table.items() if why_not_a_name(name) is None and "/" not in name}

    def _file(self, name: str, digest: str) -> Path:
        path = self._got(f"{_SIMPLE}/{quote(name)}", self.into / name)
        if sha256_of(path) != digest:
            raise BuilderError(f"'{self.place}': '{name}' is not the file that its {MANIFEST} names")
        return path

    def _got(self, name: str, target: Path) -> Path:
        if not self.place.startswith(_HTTP):
            return Path(self.place) / (f"{_SIMPLE}/{target.name}" if name.startswith(_SIMPLE) else name)
        remedy = "name the URL of an index that `builder index` made"
        download(f"{self.place}/{name}", target, environ=self.environ, processes=self.processes, remedy=remedy)
        return target
