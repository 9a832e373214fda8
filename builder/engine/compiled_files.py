"""The cache of compiled files in the local engine; nothing about it can make a cell fail."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from builder.compile_cache.caches import Caches
from builder.compile_cache.session import Session, serve
from builder.compile_cache.shared import caches_of
from builder.engine.outcome import CellOutcome
from builder.errors import BuilderError
from builder.make.job import CompileError, Job
from builder.make.report import BuildReport
from builder.plan.ask import Ask
from builder.toolchain import this_machine
from builder.toolchain.tool import Search


class CachedObjectError(BuilderError):
    """Objects of the cache could not be linked: they are others than they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledFiles:
    """The cache that the cells of a run share."""

    caches: Caches | None = None
    """None where there is to be none."""
    program: Path | None = None
    """The ccache that asks it."""

    @classmethod
    def of(cls, ask: Ask, *, writable: bool) -> "CompiledFiles":
        """Return the cache of a run; `writable` is whether its store is.

        Raises:
            BuilderError: the URL of the shared cache is not one of a cache.
        """
        if ask.cache is None:
            return cls()
        caches = caches_of(ask.cache, ask.store, writable=writable, environ=ask.environ)
        program = this_machine.find_ccache(Search(environ=ask.environ, digest=ask.store.digest))
        if program is None and ask.cache.url is not None:
            caches.warn("compiled files are not kept: no ccache that can be asked, or CCACHE_DISABLE is set")
        return cls(caches=caches, program=program)

    @contextlib.contextmanager
    def serve(self, job: Job, *, scratch: Path) -> Iterator["ServedJob"]:
        """Answer the compilers of a job that is built in `scratch`, if there is something to compile."""
        if self.caches is None or self.program is None or job.toolchain is None:
            yield ServedJob(job=job)
            return
        with serve(self.caches, scratch=scratch) as session:
            yield ServedJob(job=job if session is None else replace(job, ccache=self.program), session=session)

    def noted(self, outcomes: Iterable[CellOutcome]) -> tuple[CellOutcome, ...]:
        """Return outcomes, the last one with why caches were not used."""
        found = tuple(outcomes)
        warnings = () if self.caches is None else self.caches.warnings()
        return (*found[:-1], replace(found[-1], notes=warnings)) if found and warnings else found

    def close(self) -> None:
        """Wait for what is being written."""
        if self.caches is not None:
            self.caches.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedJob:
    """A job whose compilers may ask the cache."""

    job: Job
    session: Session | None = None

    def explained(self, report: BuildReport) -> BuildReport:
        """Return a report that says of each object where it came from."""
        if self.session is None or report.files is None:
            return report
        return replace(report, files=self.session.explain(report.files))

    def judged(self, error: BuilderError) -> BuilderError:
        """Return the error of a build, with where its objects came from.

        Of objects that could not be linked, those of the cache are taken out first.
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
