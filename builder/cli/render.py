"""`builder render`."""

from pathlib import Path

import click

from builder import kernel as kernels
from builder import render as rendering
from builder.cli.arguments import BackendType, kernel_argument
from builder.config.values import Backend
from builder.errors import BuilderError, DifferenceError
from builder.kernel import Kernel
from builder.project import Project


@click.command()
@kernel_argument
@click.option("--backend", type=BackendType(), help="Backend of the project; may be left out when there is one.")
@click.option("--list", "listing", is_flag=True, help="List the backends, or with --backend the files of its project.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Write the whole project there.")
@click.option("--check", type=click.Path(path_type=Path, file_okay=False), help="Compare with the project there.")
@click.option("--force", is_flag=True, help="With --output: replace files that are in the way.")
@click.option("--unique-id", metavar="ID", help="What names the build instead of its content.")
@click.option("--allow-unsafe-flags", is_flag=True, help="Accept compiler flags that load code or read files.")
def command(
    kernel: Path,
    *,
    backend: Backend | None,
    listing: bool,
    output: Path | None,
    check: Path | None,
    force: bool,
    unique_id: str | None,
    allow_unsafe_flags: bool,
) -> None:
    """Show the CMake of a kernel, or write its whole project, without building it."""
    if sum((listing, output is not None, check is not None)) > 1:
        raise click.UsageError("--list, --output and --check exclude each other")
    if force and output is None:
        raise click.UsageError("--force needs --output")
    loaded = kernels.load(kernel)
    if listing and backend is None:
        click.echo(_backends(loaded), nl=False)
        return
    chosen = _only(loaded) if backend is None else backend
    project = rendering.render(loaded, chosen, unique_id=unique_id, allow_unsafe_flags=allow_unsafe_flags)
    if listing:
        click.echo("".join(f"{path}\n" for path in project.files), nl=False)
    elif output is not None:
        _refuse_quote(project, output)
        project.write(output, overwrite=force)
    elif check is not None:
        _compare(project, check, kernel, chosen)
    else:
        main = "CMakeLists.txt" if "CMakeLists.txt" in project.files else "pyproject.toml"
        click.echo(project[main], nl=False)


def _refuse_quote(project: Project, output: Path) -> None:
    """Refuse a folder in which CMake writes install scripts that it cannot read."""
    if "CMakeLists.txt" in project.files and '"' in str(output.absolute()):
        raise BuilderError(
            f"CMake cannot build in '{output}': the path has a double quote",
            help="name a folder without one; 'builder build' takes a kernel from any folder",
        )


def _backends(kernel: Kernel) -> str:
    return "".join(
        f"{backend}\t{'noarch' if rendering.is_noarch(kernel, backend) else kernel.config.framework}\n"
        for backend in rendering.backends(kernel)
    )


def _only(kernel: Kernel) -> Backend:
    names = rendering.backends(kernel)
    if len(names) > 1:
        raise click.UsageError(f"the kernel has several backends: pass --backend {'|'.join(names)}")
    return names[0]


def _compare(project: Project, root: Path, kernel: Path, backend: Backend) -> None:
    difference = project.compare(root)
    if difference:
        click.echo(difference, nl=False)
        remedy = f"run 'builder render {kernel} --backend {backend} --output {root}'"
        raise DifferenceError(f"'{root}' is not what the kernel renders to", help=remedy)
