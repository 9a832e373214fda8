"""`builder render`: show or write the CMake project of a kernel."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from builder import kernel as kernels
from builder import render as rendering
from builder import terminal
from builder.cli import completing
from builder.cli.arguments import ALL, BACKENDS, FOLDER, PATH, Name
from builder.config.values import Backend
from builder.errors import BuilderError, DifferenceError
from builder.kernel import Kernel
from builder.matrix import is_noarch
from builder.render.project import Project
from builder.wording import listed


@click.command()
@click.argument("directories", metavar="[DIR]...", nargs=-1, type=PATH, shell_complete=completing.kernels)
@click.option(
    "--backend",
    type=Name("backend", (*BACKENDS, ALL)),
    shell_complete=completing.backends,
    help="Backend of the project; may be left out when there is one.",
)
@click.option("--list", "listing", is_flag=True, help="List the backends, or with --backend the files of its project.")
@click.option("--output", type=FOLDER, help="Write the whole project there; with all backends, as KERNEL/BACKEND.")
@click.option("--check", type=FOLDER, help="Compare with the project there.")
@click.option("--force", is_flag=True, help="With --output: replace files that are in the way.")
@click.option("--unique-id", metavar="ID", help="Name the build by this instead of its content.")
@click.option("--allow-unsafe-flags", is_flag=True, help="Accept compiler flags that load code or read files.")
def command(
    directories: tuple[Path, ...],
    *,
    backend: str | None,
    listing: bool,
    output: Path | None,
    check: Path | None,
    force: bool,
    unique_id: str | None,
    allow_unsafe_flags: bool,
) -> None:
    """Show the CMake of a kernel, or write its whole project, without building it.

    Several kernels, and all backends of each, are written or compared by one command with --backend all.
    """
    if sum((listing, output is not None, check is not None)) > 1:
        raise click.UsageError("--list, --output and --check exclude each other")
    if force and output is None:
        raise click.UsageError("--force needs --output")
    if len(directories) > 1 and backend != ALL:
        raise click.UsageError(f"several kernels are rendered for all their backends: pass --backend {ALL}")
    if backend == ALL and output is None and check is None:
        raise click.UsageError(f"--backend {ALL} needs --output or --check")
    loaded = {directory: kernels.load(directory) for directory in directories or (Path(),)}
    if listing and backend is None:
        _list_backends(*loaded.values())
        return
    wanted = list(_wanted(loaded, backend))
    projects = {
        place: rendering.render(kernel, each, unique_id=unique_id, allow_unsafe_flags=allow_unsafe_flags)
        for place, kernel, each in wanted
    }
    if output is not None:
        _write(projects, output, force=force)
    elif check is not None:
        _compare(projects, check, how=f"{' '.join(map(str, loaded))} --backend {backend or wanted[0][2].value}")
    elif listing:
        for path in projects[Path()].files:
            terminal.out(str(path))
    else:
        project = projects[Path()]
        terminal.document(project["CMakeLists.txt" if "CMakeLists.txt" in project.files else "pyproject.toml"])


def _list_backends(kernel: Kernel) -> None:
    for backend in rendering.backends(kernel):
        kind = "noarch" if is_noarch(kernel.config, backend) else kernel.config.framework
        terminal.out(f"{backend}\t{kind}")


def _wanted(loaded: Mapping[Path, Kernel], backend: str | None) -> Iterator[tuple[Path, Kernel, Backend]]:
    """Yield the projects to render, with their places in the folder that is written or compared."""
    if backend != ALL:
        (kernel,) = loaded.values()
        names = rendering.backends(kernel)
        if backend is None and len(names) > 1:
            raise click.UsageError(f"the kernel has several backends: pass --backend {'|'.join(names)}")
        yield Path(), kernel, Backend(backend or names[0])
        return
    seen: dict[str, Path] = {}
    for directory, kernel in loaded.items():
        name = str(kernel.config.general.name)
        if name in seen:
            raise BuilderError(
                f"'{seen[name]}' and '{directory}' are both '{name}', and their projects would be in one folder",
                help="render each into a folder of its own, with a command of its own",
            )
        seen[name] = directory
        for each in rendering.backends(kernel):
            yield Path(name, each.value), kernel, each


def _write(projects: Mapping[Path, Project], output: Path, *, force: bool) -> None:
    for place, project in projects.items():
        folder = output / place
        # In such a folder, CMake writes install scripts that it cannot read.
        if "CMakeLists.txt" in project.files and '"' in str(folder.absolute()):
            raise BuilderError(
                f"CMake cannot build in '{folder}': the path has a double quote",
                help="name a folder without one; 'builder build' takes a kernel from any folder",
            )
    for place, project in projects.items():
        project.write(output / place, overwrite=force)


def _compare(projects: Mapping[Path, Project], root: Path, *, how: str) -> None:
    if not root.is_dir():
        raise BuilderError(
            f"'{root}' is not a folder: there is nothing to compare with",
            help=f"name the folder of an earlier render, or write it: builder render {how} --output {root}",
        )
    differences = {
        # For a missing folder, one line and not the whole project.
        folder: project.compare(folder) if folder.is_dir() else f"'{folder}' is not a folder\n"
        for folder, project in ((root / place, project) for place, project in projects.items())
    }
    terminal.document("".join(differences.values()))
    different = [str(path) for path, difference in differences.items() if difference]
    if different:
        are = "are not what the kernels render" if len(different) > 1 else "is not what the kernel renders"
        raise DifferenceError(f"{listed(different)} {are} to", help=f"run 'builder render {how} --output {root}'")
