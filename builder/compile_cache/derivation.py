"""Compile one file in a separate Nix derivation, or build a cell from the ccache entries of such derivations.

A file's derivation has the content of that file and of the headers that it may include, and the names of all other
files. The cell uses its entry only if ccache finds the same command and the same headers there.
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
from builder.make.job import OutOfMemoryError, Spec
from builder.make.part import SourceFile
from builder.make.workplace import Workplace


def main(environ: Mapping[str, str]) -> int:
    """Compile the source in the variable `source`, or build a cell from compiled entries; return the exit code."""
    return derivation.main(environ, _compile if "source" in environ else _link)


def _compile(environ: Mapping[str, str]) -> None:
    """Compile one source; if that fails, leave no entry, since the cell will report why.

    Raises:
        OutOfMemoryError: another machine may have more memory.
    """
    out = Path(environ["out"])
    out.mkdir()
    try:
        root = written(json_text.read(Path(environ["kernelPath"])))
        place = derivation.enclosed(replace(Spec.from_json(environ["spec"]), kernel=root), environ)
        with _served(place, Caches(local=Folder(root=out)), environ) as (served, _):
            compile_part(served, SourceFile(source=environ["source"]))
    except OutOfMemoryError:
        raise
    except BuilderError as error:
        terminal.err(f"{environ['source']} is left to the build of the cell: {error}")


def written(table: Mapping[str, Mapping[str, str]]) -> Path:
    """Write the part of the kernel that one of its sources needs."""
    root = Path.cwd() / "kernel"
    for path in (*table["texts"], *table["files"]):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
    for path, text in table["texts"].items():
        (root / path).write_text(text, encoding="utf-8")
    for path, file in table["files"].items():
        shutil.copyfile(file, root / path)
    return root


def _link(environ: Mapping[str, str]) -> None:
    """Build a cell; objects from the files' derivations are not compiled again."""
    place = derivation.enclosed(Spec.from_json(environ["spec"]), environ)
    folders = json_text.read(Path(environ["objectsPath"]))
    caches = Caches(local=Folder(root=joined(map(Path, folders))), writable=False)
    with _served(place, caches, environ) as (served, session):
        built = build(served)
    if session is not None and built.report.files is not None:
        report = replace(built.report, files=session.explain(built.report.files))
        terminal.out(f"{len(report.cached)} of {len(report.objects)} files were compiled before, by themselves")
    derivation.write(place.job, built, Path(environ["out"]))


def joined(folders: Iterator[Path]) -> Path:
    """Merge the entries of several folders into one folder."""
    root = Path.cwd() / "compiled"
    for entry in (path for folder in folders for path in sorted(folder.glob("?/*"))):
        link = root / entry.parent.name / entry.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(entry)
    return root


@contextlib.contextmanager
def _served(place: Workplace, caches: Caches, environ: Mapping[str, str]) -> Iterator[tuple[Workplace, Session | None]]:
    """Yield the place of a build with ccache and its session, or without ccache where it cannot be answered."""
    with serve(caches, scratch=place.scratch) as session:
        ccache = None if session is None else Path(environ["ccache"])
        yield replace(place, job=replace(place.job, ccache=ccache)), session
    caches.close()
    for warning in caches.warnings():
        terminal.out(warning)
