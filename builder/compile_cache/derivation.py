"""Compile one file in a derivation of its own, or a cell of such files, to which ccache's entries are handed on.

A file's derivation has the content of that file and of the headers that it may include, and the names of other files.
What it makes is only believed where ccache finds the same command and the same headers again in the whole cell.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from builder import json_text, terminal
from builder.compile_cache.caches import Caches
from builder.compile_cache.folder import Folder
from builder.compile_cache.session import Session, serve
from builder.errors import BuilderError
from builder.make import derivation
from builder.make.cell import build, compile_part
from builder.make.derivation import Enclosed
from builder.make.job import Job, OutOfMemoryError
from builder.make.part import SourceFile
from builder.make.spec import Spec


def main(environ: Mapping[str, str]) -> int:
    """Compile the variable `source`, or build a cell from what was compiled; return the exit code."""
    return derivation.reported(lambda: _compile(environ) if "source" in environ else _link(environ))


def _compile(environ: Mapping[str, str]) -> None:
    """Compile one source; one that cannot be compiled by itself leaves nothing, and the cell says why.

    Raises:
        OutOfMemoryError: another machine may have more.
    """
    out = Path(environ["out"])
    out.mkdir()
    try:
        root = written(json_text.read(Path(environ["kernelPath"])))
        place = derivation.enclosed(replace(Spec.from_json(environ["spec"]), kernel=root), environ)
        with _served(place, Caches(local=Folder(root=out)), environ) as (job, _):
            wanted, log = SourceFile(source=environ["source"]), Path.cwd() / "log"
            compile_part(job, wanted, scratch=place.scratch, log=log, listen=terminal.out)
    except OutOfMemoryError:
        raise
    except BuilderError as error:
        terminal.err(f"{environ['source']} is left to the build of the cell: {error}")


def written(table: Mapping[str, Mapping[str, str]]) -> Path:
    """Write the kernel as far as one of its sources needs it."""
    root = Path.cwd() / "kernel"
    for path, text in table["texts"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for path, file in table["files"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, root / path)
    return root


def _link(environ: Mapping[str, str]) -> None:
    """Build a cell; what its files' derivations left is not compiled again."""
    place = derivation.enclosed(Spec.from_json(environ["spec"]), environ)
    folders = json_text.read(Path(environ["objectsPath"]))
    caches = Caches(local=Folder(root=joined(map(Path, folders))), writable=False)
    with _served(place, caches, environ) as (job, session):
        built = build(job, scratch=place.scratch, log=Path.cwd() / "log", listen=terminal.out)
    if session is not None and built.report.files is not None:
        report = replace(built.report, files=session.explain(built.report.files))
        terminal.out(f"{len(report.cached)} of {len(report.objects)} files were compiled before, by themselves")
    place.write(built, Path(environ["out"]))


def joined(folders: Iterator[Path]) -> Path:
    """Return one folder with the entries of several."""
    root = Path.cwd() / "compiled"
    for entry in (path for folder in folders for path in sorted(folder.glob("?/*"))):
        link = root / entry.parent.name / entry.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(entry)
    return root


@contextlib.contextmanager
def _served(place: Enclosed, caches: Caches, environ: Mapping[str, str]) -> Iterator[tuple[Job, Session | None]]:
    """Yield the job with ccache, where it can be answered."""
    with serve(caches, scratch=place.scratch) as session:
        yield place.job if session is None else replace(place.job, ccache=Path(environ["ccache"])), session
    caches.close()
    for warning in caches.warnings():
        terminal.out(warning)
