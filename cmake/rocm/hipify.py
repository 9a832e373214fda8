"""Translate CUDA sources with the hipify of a PyTorch, without importing it; print where each translation is."""  # noqa: INP001  CMake runs it as a script

import argparse
import contextlib
import importlib
import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADERS = {".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp"}


def main() -> None:
    """Copy sources and headers to the output folder and translate them there."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--torch", "--source", "--output", "--build"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--keep", action="store_true", help="what is in the output folder is of another component")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()

    if not arguments.keep:
        shutil.rmtree(arguments.output, ignore_errors=True)
    files = {*arguments.files, *headers(arguments.source, arguments.build)}
    copies = [arguments.output / file for file in sorted(files)]
    for copy in copies:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(arguments.source / copy.relative_to(arguments.output), copy)

    results = translate(arguments.torch, arguments.output, copies)
    for file in arguments.files:
        result = results[str(arguments.output / file)]
        translation = Path(result.hipified_path or arguments.output / file).relative_to(arguments.output)
        sys.stdout.write(f"{translation.as_posix()}\n")


def headers(source: Path, build: Path) -> Iterator[str]:
    """Yield the headers of the project, relative to it; what is being built is no part of it."""
    for path in source.rglob("*"):
        if path.suffix in HEADERS and build not in path.parents:
            yield str(path.relative_to(source))


def translate(torch: Path, output: Path, copies: list[Path]) -> dict[str, Any]:
    """Return what hipify says of each file."""
    sys.path.insert(0, str(torch / "utils"))
    hipify = importlib.import_module("hipify.hipify_python")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results: dict[str, Any] = hipify.hipify(
            project_directory=str(output),
            output_directory=str(output),
            header_include_dirs=["."],
            includes=[f"{output}/*"],
            extra_files=[str(copy) for copy in copies],
            is_pytorch_extension=True,
            hipify_extra_files_only=True,
            show_progress=False,
        )
    return results


if __name__ == "__main__":
    main()
