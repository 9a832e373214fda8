"""Fetch kernels from the hub with its library, or from a folder laid out like its cache."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from builder.config.v5 import KernelDependency
from builder.errors import NotHereError, ToolError
from builder.make.kernel_lock import named
from builder.wording import quoted

FOLDER = "BUILDER_KERNELS"
"""Variable with a folder of kernels, to use in place of the hub."""
_TYPE = "kernel"
_AGAIN = "fetch the kernel again"
_PURPOSE = "fetching kernels from the hub"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_REVISION = re.compile(r"[\w+-][\w.+-]*(?:/[\w+-][\w.+-]*)*", re.ASCII)


def branch(wanted: KernelDependency) -> str:
    """Return the branch, tag or commit that a dependency names."""
    return f"v{wanted.version}" if wanted.revision is None else wanted.revision


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder laid out like the cache of the hub's client: `kernels--OWNER--NAME/{refs,snapshots}`."""

    root: Path

    def commit(self, wanted: KernelDependency) -> str:
        """Return the commit that a reference of the folder names.

        Raises:
            NotHereError: the folder has no such kernel or reference.
        """
        name = branch(wanted)
        if _REVISION.fullmatch(name) is None:
            raise NotHereError(f"{quoted(name)} is not a branch, tag or commit", help="correct it in build.toml")
        repository = self._repository(wanted.repo_id)
        if _COMMIT.fullmatch(name) and (repository / "snapshots" / name).is_dir():
            return name
        try:
            said = (repository / "refs" / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            raise self._absent(wanted.repo_id, name, what=named(wanted)) from None
        if _COMMIT.fullmatch(said) is None:
            raise NotHereError(f"'{repository / 'refs' / name}' does not name a commit", help=_AGAIN)
        return said

    def fetch(self, repo_id: str, commit: str, target: Path) -> None:
        """Copy the files of a commit, which are links to blobs in the cache.

        Raises:
            NotHereError: the folder lacks this commit.
            ToolError: the files cannot be copied, or contain a link that leads out of the repository.
        """
        repository = self._repository(repo_id)
        snapshot = repository / "snapshots" / commit
        if not snapshot.is_dir():
            raise self._absent(repo_id, commit, what=f"commit {commit} of {quoted(repo_id)}")
        within = repository.resolve()
        try:
            for path in sorted(snapshot.rglob("*")):
                if not path.resolve().is_relative_to(within):
                    raise ToolError(f"'{path}' is a link that leads out of '{within}'", help=_AGAIN)
                if path.is_symlink() and path.is_dir():
                    raise ToolError(f"'{path}' is a link to a folder", help=_AGAIN)
                if not path.is_dir():
                    place = target / path.relative_to(snapshot)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, place)
        except OSError as error:
            raise ToolError(f"cannot copy '{snapshot}': {error.strerror}", help="is the copy of it whole?") from error

    def _repository(self, repo_id: str) -> Path:
        return self.root / f"{_TYPE}s--{repo_id.replace('/', '--')}"

    def _absent(self, repo_id: str, revision: str, *, what: str) -> NotHereError:
        return NotHereError(
            f"{what} is not in '{self.root}'",
            help="fetch it where the hub can be reached, and bring the folder: "
            f"hf download {repo_id} --repo-type {_TYPE} --revision {revision} --cache-dir FOLDER",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelHub:
    """The hub, accessed with its own library, which finds the user's token."""

    endpoint: str | None = None

    def commit(self, wanted: KernelDependency) -> str:
        """Return the commit of a branch, tag or commit.

        Raises:
            NotHereError: the hub does not answer, or has no such commit.
        """
        library = load_library(_PURPOSE)
        try:
            info = library.HfApi(endpoint=self.endpoint).repo_info(
                wanted.repo_id, revision=branch(wanted), repo_type=_TYPE
            )
        except library.errors.RepositoryNotFoundError as error:
            raise NotHereError(
                f"the hub has no kernel {quoted(wanted.repo_id)}, or you may not read it",
                help="correct its name in build.toml, or log in: hf auth login",
            ) from error
        except library.errors.RevisionNotFoundError as error:
            raise NotHereError(
                f"the hub has no {named(wanted)}: it has no branch or tag {quoted(branch(wanted))}",
                help="name another version or revision in build.toml",
            ) from error
        except refusals(library) as error:
            raise _unreachable(named(wanted), error) from error
        if not isinstance(info.sha, str) or _COMMIT.fullmatch(info.sha) is None:
            raise NotHereError(f"the hub names no commit of {named(wanted)}", help="try again later")
        return info.sha

    def fetch(self, repo_id: str, commit: str, target: Path) -> None:
        """Download the files of a commit.

        Raises:
            NotHereError: the hub does not answer, or lacks this commit.
        """
        library = load_library(_PURPOSE)
        try:
            library.utils.disable_progress_bars()
            library.HfApi(endpoint=self.endpoint).snapshot_download(
                repo_id, revision=commit, repo_type=_TYPE, local_dir=target
            )
        except refusals(library) as error:
            raise _unreachable(f"commit {commit} of {quoted(repo_id)}", error) from error
        shutil.rmtree(target / ".cache", ignore_errors=True)  # added by the library


def _unreachable(what: str, error: Exception) -> NotHereError:
    return NotHereError(
        f"{what} cannot be fetched from the hub: {first_line(error)}",
        help=f"is there a network? {FOLDER} names a folder that has it",
    )


KernelSource = CacheFolder | KernelHub


def named_by(environ: Mapping[str, str], *, folder: Path | None = None) -> KernelSource:
    """Return the source of kernels: a folder if one is named, or else the hub."""
    place = folder or (Path(environ[FOLDER]) if environ.get(FOLDER) else None)
    return KernelHub(endpoint=environ.get("HF_ENDPOINT") or None) if place is None else CacheFolder(place)


def load_library(purpose: str) -> ModuleType:
    """Import huggingface_hub.

    Raises:
        ToolError: it is not installed; the message has the `purpose`.
    """
    try:
        import huggingface_hub.errors  # noqa: PLC0415  an optional dependency
        import huggingface_hub.hf_api  # noqa: PLC0415
    except ImportError as error:
        raise ToolError(f"{purpose} needs huggingface_hub", help="pip install 'kernel-wheel-builder[hub]'") from error
    return huggingface_hub


def refusals(library: ModuleType) -> tuple[type[Exception], ...]:
    """Return the exceptions of the library; its HTTP client, which has changed before, has a base of its own."""
    bases = library.errors.HfHubHTTPError.__mro__
    # ValueError: a card that the hub rejects, or an invalid name.
    return (OSError, ValueError, *(base for base in bases if issubclass(base, Exception) and base is not Exception))


def first_line(error: Exception) -> str:
    """Return the line of a library error that tells a person the reason."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
