"""`builder build`: build the wheels of a kernel."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from builder import json_text, terminal
from builder.cli import building, screen, view
from builder.cli.arguments import (
    AGE,
    FOLDER,
    SIZE,
    Converted,
    archs_option,
    load_test_option,
    python_option,
    store_option,
    toolchain_option,
    wheel_version_option,
)
from builder.cli.asking import ask_of, cache_options
from builder.cli.selecting import (
    backends_option,
    kernels_argument,
    sets_option,
    systems_option,
    torches_option,
    unbundled_option,
    variants_option,
)
from builder.make import reproducible
from builder.make.part import BuildPart
from builder.plan import choosing, dry_run, kernels, size_estimate
from builder.plan.ask import KernelBuild, own_cores, own_memory
from builder.plan.kernels import Chosen, NamedKernels
from builder.wheel.options import MANYLINUX


@click.command()
@kernels_argument
@variants_option("Cell to build")
@torches_option
@backends_option
@systems_option("Only cells of this system, which need not be this machine's; may be repeated.")
@sets_option
@unbundled_option
@click.option("--output", type=FOLDER, default=Path("dist"), show_default=True)
@click.option(
    "--jobs",
    "cores",
    type=click.IntRange(min=1),
    default=own_cores,
    help="Most compilers at once. Default: the cores there are.",
)
@click.option(
    "--memory",
    type=SIZE,
    default=own_memory,
    help="Most memory for compilers. Default: what the machine and its cgroup have.",
)
@store_option
@click.option("--engine", type=click.Choice(["local", "nix"]), default="local", show_default=True, help="What builds.")
@click.option("--package-set", default="nixpkgs", show_default=True, help="With Nix: 'nixpkgs', 'host', or a folder.")
@click.option("--allow-unsandboxed", is_flag=True, help="With Nix: build even where its sandbox is off; not a release.")
@click.option("--per-file", is_flag=True, help="With Nix: compile each file in a derivation of its own.")
@click.option("--no-isolation", is_flag=True, help="Build against the torch of the current environment.")
@python_option("Python to build with; with --no-isolation, the one whose torch is used.")
@wheel_version_option
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
    type=Converted("part", BuildPart.parse),
    metavar="K/N",
    help="Compile the K-th of N parts of the files into the cache, and make no wheel.",
)
@click.option("--rebuild", "again", is_flag=True, help="Build again what the store has.")
@click.option("--time-limit", type=AGE, help="Stop cleanly before this, such as 5h30m; the next build goes on.")
@click.option("--keep-going", is_flag=True, help="Build the other kernels if one is refused; the command still fails.")
@click.option("--dry-run", "previews", is_flag=True, help="Show what would be built and why, and build nothing.")
@click.option("--json", "as_json", is_flag=True, help="Results as JSON on stdout.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a report to FILE, and a trace next to it: the first error, and the time of each step.",
)
@click.option(
    "--experiment", hidden=True, default="{}", help="Rules to leave out and variables to add, as JSON: for repro."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    named: NamedKernels,
    *,
    experiment: str,
    keep_going: bool,
    previews: bool,
    as_json: bool,
    report: Path | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Build the wheels of kernels.

    Without --variant, build every cell that this machine can build, and give the reason for the others.
    """
    experiments = json.loads(experiment)
    ask = ask_of(
        kernels=named,
        only_possible=not given["variants"],
        crosses=bool(given["systems"] or given["variants"]),
        without=reproducible.in_order(experiments.get("without", ())),
        variables=experiments.get("variables", {}),
        **given,
    )
    ask.require_possible(dry_run=previews)
    if ask.engine == "nix" and ask.cache is not None:
        screen.err("note: builds by Nix keep compiled files in Nix's store (--per-file): the cache is not used")
    chosen = choosing.choose(ask)
    code = building.say_who_is_left_out(chosen)
    if code and not (keep_going and chosen.found):
        if as_json:
            _write_document([], chosen)
        screen.err("error: nothing was built" + ("; --keep-going builds the others" if chosen.found else ""))
        return code
    builds = building.ready(chosen.found, quiet=quiet)
    if previews:
        _preview(builds, chosen, as_json=as_json)
        return code
    for line in size_estimate.warnings(builds):
        screen.err(line)
    outcomes = building.run(builds, quiet=quiet, report=report)
    screen.err(view.summary(outcomes))
    if as_json:
        left = iter(outcomes)
        results = [(build, [next(left).to_json() for _ in build.cells]) for build in builds]
        _write_document(results, chosen)
    return max(code, building.end(outcomes, as_json=as_json))


def _preview(builds: Sequence[KernelBuild], chosen: Chosen[KernelBuild], *, as_json: bool) -> None:
    plans = [(build, dry_run.preview(build)) for build in builds]
    if as_json:
        results = [(build, [plan.to_json() for plan in them]) for build, them in plans]
        _write_document(results, chosen)
        return
    for build, them in plans:
        for plan in them:
            screen.out(f"{build.label(plan.cell)}: {plan.text}")


def _write_document(results: Sequence[tuple[KernelBuild, Sequence[object]]], chosen: Chosen[KernelBuild]) -> None:
    """Write the results of the cells as JSON: for one kernel a list, for several a list under each folder."""
    document: object = [result for _, found in results for result in found]
    if chosen.several:
        document = {
            "kernels": {build.kernel.root.as_posix(): found for build, found in results},
            "left-out": dict(chosen.left_out),
            "errors": kernels.texts(chosen.refusals),
        }
    terminal.document(json_text.document(document))
