"""`builder build`: build the wheels of a kernel."""

import os
from dataclasses import replace
from pathlib import Path

import click

from builder import kernel as kernels
from builder import terminal
from builder.binary.manylinux import MANYLINUX
from builder.cli import building, several
from builder.cli.arguments import (
    Age,
    PartType,
    Size,
    archs_option,
    cache_options,
    load_test_option,
    python_option,
    store_option,
    toolchain_option,
)
from builder.cli.builds import CellRequest
from builder.cli.selecting import (
    backends_option,
    sets_option,
    systems_option,
    torches_option,
    unbundled_option,
    variants_option,
)
from builder.cli.several import NamedKernels, kernels_argument
from builder.compile_cache import CacheOptions
from builder.config import Backend, LoadTestRule, ToolchainChoice
from builder.config.values import Version
from builder.errors import BuilderError
from builder.make.part import Part
from builder.make.reproducible import Rules
from builder.matrix.quick import TargetGpus
from builder.matrix.selection import Scope
from builder.plan import limits
from builder.plan.options import NixOptions, Options
from builder.store import Store
from builder.wheel.options import WheelOptions


@click.command()
@kernels_argument
@variants_option("Cell to build")
@torches_option
@backends_option
@systems_option("Cells of this system, also of another than this machine's; may be repeated.")
@sets_option
@unbundled_option
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), default=Path("dist"), show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), help="Most compilers at once. Default: the cores there are.")
@click.option("--memory", type=Size(), help="Most memory for compilers. Default: what the machine and its cgroup have.")
@store_option
@click.option("--engine", type=click.Choice(["local", "nix"]), default="local", show_default=True, help="What builds.")
@click.option("--package-set", default="nixpkgs", show_default=True, help="With Nix: 'nixpkgs', 'host', or a folder.")
@click.option("--allow-unsandboxed", is_flag=True, help="With Nix: build even where its sandbox is off; not a release.")
@click.option("--per-file", is_flag=True, help="With Nix: compile each file in a derivation of its own.")
@click.option("--no-isolation", is_flag=True, help="Build against the torch of the current environment.")
@python_option("Python to build with; with --no-isolation, the one whose torch is used.")
@click.option("--wheel-version", metavar="X.Y.Z", help="Version of the wheel; the major must be general.version.")
@click.option("--label/--no-label", default=True, help="Name the cell in the version (+torch213.cxx11.cpu).")
@click.option("--manylinux", "policy", default=MANYLINUX, show_default=True, help="Newest manylinux policy to accept.")
@click.option("--unique-id", metavar="ID", help="Name the ops by this instead of their content.")
@click.option("--allow-unsafe-flags", is_flag=True, help="Accept flags that load code into the compiler.")
@archs_option("Quick build only for these GPUs, such as 9.0a,8.0 or gfx942; not a release.")
@load_test_option
@cache_options
@toolchain_option
@click.option(
    "--part",
    type=PartType(),
    metavar="K/N",
    help="Compile the K-th of N parts of the files into the cache, and make no wheel.",
)
@click.option("--rebuild", is_flag=True, help="Build again what the store has.")
@click.option("--time-limit", type=Age(), help="Stop cleanly before this, such as 5h30m; the next build goes on.")
@click.option("--keep-going", is_flag=True, help="Build other kernels where one is refused; it still fails.")
@click.option("--dry-run", is_flag=True, help="Show what would be built and why, and build nothing.")
@click.option("--json", "as_json", is_flag=True, help="Results as JSON on stdout.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page there, and a trace beside it: the first error, what ran when, what was slow.",
)
@click.option(
    "--experiment", hidden=True, default="{}", help="Rules to leave out and variables to add, as JSON: for repro."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    named: NamedKernels,
    variants: tuple[str, ...],
    backends: tuple[Backend, ...],
    systems: tuple[str, ...],
    torches: tuple[Version, ...],
    sets: tuple[str, ...],
    unbundled: bool,
    output: Path,
    jobs: int | None,
    memory: int | None,
    store: Path,
    engine: str,
    package_set: str,
    allow_unsandboxed: bool,
    per_file: bool,
    no_isolation: bool,
    python: Path | None,
    wheel_version: str | None,
    label: bool,
    policy: str,
    unique_id: str | None,
    allow_unsafe_flags: bool,
    archs: TargetGpus | str | None,
    load_test: LoadTestRule | None,
    cache: CacheOptions | None,
    toolchain: ToolchainChoice | None,
    part: Part | None,
    rebuild: bool,
    time_limit: float | None,
    keep_going: bool,
    dry_run: bool,
    as_json: bool,
    report: Path | None,
    experiment: str,
    quiet: bool,
) -> int:
    """Build the wheels of kernels.

    Without --variant: every cell that this machine can build, and the reason for each that it cannot.
    """
    machine = limits.of_machine()
    options = Options(
        store=Store(store),
        output=output,
        limits=replace(machine, cores=jobs or machine.cores, memory=memory or machine.memory),
        environ=dict(os.environ),
        isolation=not no_isolation,
        python=python,
        wheel=WheelOptions(version=wheel_version, label=label, policy=policy),
        unique_id=unique_id,
        allow_unsafe_flags=allow_unsafe_flags,
        load_test=load_test,
        only_possible=not variants,
        crosses=bool(systems or variants),
        again=rebuild,
        cache=cache,
        part=part,
        time_limit=time_limit,
        rules=Rules.from_json(experiment),
    )
    if part is not None:
        _check_for_part(engine, cache)
    asked = building.Asked(
        nix=NixOptions(package_set=package_set, allow_unsandboxed=allow_unsandboxed, per_file=per_file)
        if engine == "nix"
        else None,
        dry_run=dry_run,
        as_json=as_json,
        report=report,
        quiet=quiet,
        toolchain=toolchain,
    )
    if per_file and engine != "nix":
        raise BuilderError("--per-file is for derivations of Nix", help="pass --engine nix, or leave it out")
    if engine == "nix":
        _check_for_nix(no_isolation=no_isolation, dry_run=dry_run)
        if cache is not None and cache.url is not None:
            terminal.err("note: builds by Nix keep compiled files in Nix's store (--per-file): the cache is not used")
    scope = Scope(sets=sets, systems=systems, backends=backends, unbundled=unbundled, torches=torches)
    request = CellRequest(scope=scope, archs=archs, variants=variants, environ=os.environ)
    if named.several:
        return building.several(several.load(named), request, options, asked, keep_going=keep_going)
    return building.one(kernels.load(named.folders[0]), request, options, asked)


def _check_for_part(engine: str, cache: CacheOptions | None) -> None:
    """Refuse a part that nobody would get.

    Raises:
        BuilderError: what it compiles is not kept, or not where others find it.
    """
    if engine == "nix":
        raise BuilderError("builds by Nix have no parts", help="leave out --part, or --engine nix")
    if cache is None:
        raise BuilderError("--part compiles for others, and --no-cache keeps nothing", help="leave one of them out")
    if cache.url is not None and not cache.access.writes:
        raise BuilderError(
            f"--part compiles for others, and --cache-access {cache.access.value} gives them nothing",
            help="say --cache-access read-write",
        )


def _check_for_nix(*, no_isolation: bool, dry_run: bool) -> None:
    if no_isolation:
        raise BuilderError("Nix builds only against pinned wheels", help="leave out --no-isolation or --engine nix")
    if dry_run:
        remedy = "leave out --engine nix, or ask Nix: nix build --dry-run"
        raise BuilderError("--dry-run asks the store of the local engine", help=remedy)
