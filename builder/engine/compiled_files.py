"""Use the cache of compiled files in the local engine; no error of the cache fails a cell."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from builder.compile_cache.caches import Caches
from builder.compile_cache.session import Session, serve
from builder.compile_cache.shared import caches_of
from builder.engine.outcome import CellOutcome
from builder.errors import BuilderError
from builder.make.build_report import BuildReport
from builder.make.job import CompileError, Job
from builder.plan.ask import Ask
from builder.toolchain import this_machine
from builder.toolchain.tool import Search


class CachedObjectError(BuilderError):
    """Objects from the cache could not be linked: they are not what their keys promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledFiles:
    """The cache that all cells of a run share."""

    caches: Caches | None = None
    """None for a run without a cache."""
    program: Path | None = None
    """The ccache program that asks the cache."""

    @classmethod
    def of(cls, ask: Ask, *, writable: bool) -> "CompiledFiles":
        """Return the cache of a run; `writable` says whether the store can be written.

        Raises:
            BuilderError: the URL of the shared cache is not valid.
        """
        if ask.no_cache:
            return cls()
        caches = caches_of(
            ask.cache,
            ask.store,
            access=ask.cache_access,
            size=ask.cache_size,
            writable=writable,
            environ=ask.environ,
        )
        program = this_machine.find_ccache(Search(environ=ask.environ, digest=ask.store.digest))
        if program is None and ask.cache is not None:
            caches.warn("compiled files are not kept: no ccache that can be asked, or CCACHE_DISABLE is set")
        return cls(caches=caches, program=program)

    @contextlib.contextmanager
    def serve(self, job: Job, *, scratch: Path) -> Iterator["ServedJob"]:
        """Answer the compilers of a job in `scratch`, if it compiles anything."""
        if self.caches is None or self.program is None or job.toolchain is None:
            yield ServedJob(job=job)
            return
        with serve(self.caches, scratch=scratch) as session:
            yield ServedJob(job=job if session is None else replace(job, ccache=self.program), session=session)

    def noted(self, outcomes: Iterable[CellOutcome]) -> tuple[CellOutcome, ...]:
        """Return the outcomes; the last one also says why caches were not used."""
        found = tuple(outcomes)
        warnings = () if self.caches is None else self.caches.warnings()
        return (*found[:-1], replace(found[-1], notes=warnings)) if found and warnings else found

    def close(self) -> None:
        """Wait for writes to finish."""
        if self.caches is not None:
            self.caches.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedJob:
    """A job whose compilers may ask the cache."""

    job: Job
    session: Session | None = None

    def explained(self, report: BuildReport) -> BuildReport:
        """Add the origin of each object to a report."""
        if self.session is None or report.files is None:
            return report
        return replace(report, files=self.session.explain(report.files))

    def judged(self, error: BuilderError) -> BuilderError:
        """Add the origin of the objects to the error of a build.

        If objects could not be linked, those from the cache are removed from it first.
        """
        if self.session is None:
            return error
        if isinstance(error, CompileError):
            error.files = self.session.explain(error.files)
        linking = isinstance(error, CompileError) and error.linking
        if linking and self.session.forget():
            return CachedObjectError(error.message, help=error.help)
        strange = self.session.strangers()
        if strange and not isinstance(error, CompileError):
            hint = f"objects came from {strange}: build with --no-cache to see whether they are wrong"
            error.help = hint if error.help is None else f"{error.help}; {hint}"
        return error
