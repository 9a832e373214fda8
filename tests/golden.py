"""Expected output, kept as files under tests/golden and rewritten by `--update-golden`."""

import difflib
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Golden:
    """Compares a tree with the one on disk, or puts it there."""

    update: bool

    def __call__(self, name, files):
        """Compare `files`, path -> text, with the tree `name`."""
        folder = ROOT / name
        if self.update:
            shutil.rmtree(folder, ignore_errors=True)
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, encoding="utf-8", newline="\n")
            return
        expected = {
            path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        difference = "".join(
            line
            for path in sorted({*expected, *files})
            for line in difflib.unified_diff(
                expected.get(path, "").splitlines(keepends=True),
                files.get(path, "").splitlines(keepends=True),
                f"golden/{name}/{path}",
                path,
            )
        )
        if difference or expected.keys() != files.keys():
            pytest.fail(f"not what tests/golden has (rewrite it with --update-golden):\n{difference}", pytrace=False)
