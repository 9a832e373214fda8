"""`builder repro`: build again under other circumstances, and compare the bytes."""

import os
import shutil
import tempfile
from pathlib import Path

import click

from builder import codec, json_text, terminal
from builder import kernel as kernels
from builder.cli import completing
from builder.cli.arguments import kernel_argument, load_test_option, python_option, store_option
from builder.config import LoadTestRule
from builder.errors import BuilderError, DifferenceError
from builder.make import reproducible
from builder.matrix.selection import Scope
from builder.plan import choosing
from builder.repro import Result, difference, inputs, repeat
from builder.repro.setting import Builder, Circumstances, Workspace, link_environments, make_preload
from builder.repro.variations import NAMES, VARIATIONS, Variation
from builder.wheel import kernel_wheel
from builder.wording import nearest


@click.command()
@kernel_argument
@click.option(
    "--variant",
    metavar="V",
    shell_complete=completing.variants,
    help="Cell to build. With --against: that of the wheel.",
)
@click.option("--times", type=click.IntRange(min=2), default=2, show_default=True, help="Builds to compare.")
@click.option("--vary", metavar="NAME,…", help=f"What to vary, or 'nothing'. Default: all. [{', '.join(NAMES)}]")
@click.option("--against", type=click.Path(path_type=Path, dir_okay=False), help="Compare with this published wheel.")
@click.option("--no-isolation", is_flag=True, help="Build against the torch of the current environment.")
@python_option("Python whose torch --no-isolation uses.")
@click.option("--without", multiple=True, metavar="RULE", help="Build without this rule, to see what it prevents.")
@load_test_option
@store_option
@click.option("--json", "as_json", is_flag=True, help="Results as JSON on stdout.")
def command(
    kernel: Path,
    variant: str | None,
    times: int,
    vary: str | None,
    against: Path | None,
    no_isolation: bool,
    python: Path | None,
    without: tuple[str, ...],
    load_test: LoadTestRule | None,
    store: Path,
    as_json: bool,
) -> int:
    """Build a cell again under other circumstances, and tell why the bytes differ.

    The exit code is 1 if they differ. With --against, build once and compare with a published wheel.
    """
    difference.check_reader()
    without = reproducible.in_order(without)
    wanted = _variations(vary)
    published = None if against is None else inputs.Published.read(against)
    loaded = kernels.load(kernel)
    variant = variant or (None if published is None else published.variant)
    if variant is None:
        raise BuilderError("no cell is named", help="name one with --variant; builder matrix --format names lists them")
    (cell,) = choosing.cells(loaded, Scope(), variants=(variant,))
    # The packages of the build; it may run anywhere.
    options = [
        *(("--no-isolation",) if no_isolation else ()),
        *(() if python is None else ("--python", str(python.absolute()))),
        *(() if load_test is None else ("--load-test", str(load_test))),
        *(() if published is None else published.options),
    ]
    with tempfile.TemporaryDirectory(prefix="builder-repro-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # The first build has the user's own circumstances, and a store without wheels.
        own = folder / "store"
        own.mkdir()
        link_environments(own, store)
        setting = Circumstances(kernel=kernel.resolve(), store=own, cwd=Path.cwd())
        environ = {**os.environ, "CCACHE_DISABLE": "1"}
        builder = Builder(variant=cell.variant, folder=folder, environ=environ, without=without, options=tuple(options))
        if published is not None:
            return _compare(builder, setting, published, as_json=as_json)
        workspace = Workspace(folder=folder / "workspace", preload=make_preload(folder))
        try:
            result = repeat(builder, setting, workspace, wanted=wanted, times=times, say=terminal.err)
            return _show(result, as_json=as_json)
        finally:
            shutil.rmtree(workspace.elsewhere, ignore_errors=True)


def _variations(text: str | None) -> tuple[Variation, ...]:
    """Return the named variations, in the order in which they apply."""
    if text is None:
        return VARIATIONS
    named = [] if text == "nothing" else [name.strip() for name in text.split(",") if name.strip()]
    for name in named:
        if name not in NAMES:
            guess = nearest(name, NAMES)
            remedy = f"did you mean '{guess}'?" if guess else f"there are {', '.join(NAMES)}"
            raise BuilderError(f"nothing named '{name}' can be varied", help=remedy)
    return tuple(variation for variation in VARIATIONS if variation.name in named)


def _compare(builder: Builder, setting: Circumstances, published: inputs.Published, *, as_json: bool) -> int:
    built = builder.build(setting)
    here = inputs.inputs_of(kernel_wheel.read(built.wheel).metadata)
    differing = tuple(inputs.differences(published.inputs, here))
    found = difference.between(published.path, built.wheel)
    if as_json:
        table = {
            "variant": builder.variant,
            "same": not found,
            "sha256": built.sha256,
            "not-reproducible": published.not_reproducible,
            "inputs": codec.encode(differing),
            "differences": codec.encode(found),
        }
        terminal.document(json_text.document(table))
    else:
        for each in differing:
            terminal.out(f"input: {each}")
        for place in found:
            terminal.out(f"differs: {place}")
        if found:
            terminal.out(difference.diffoscope(published.path, built.wheel), end="")
        if published.not_reproducible is not None:
            terminal.out(f"note: the wheel says that it is not reproducible: {published.not_reproducible}")
        terminal.out(f"{'differs' if found else 'the same bytes'}: sha256 {built.sha256}")
    return DifferenceError.exit_code if found else 0


def _show(result: Result, *, as_json: bool) -> int:
    if as_json:
        terminal.document(json_text.document(result.to_json()))
        return 0 if result.same else DifferenceError.exit_code
    for name, why in result.skipped:
        terminal.out(f"not varied: {name}: {why}")
    for cause in result.causes:
        for place in cause.differences:
            terminal.out(f"{' with '.join(cause.variations)}: {place}")
    if result.other is not None:
        terminal.out(difference.diffoscope(result.wheel, result.other), end="")
    words = "the same bytes" if result.same else "the bytes differ"
    terminal.out(f"{words}: {result.builds} builds, varied: {', '.join(result.varied) or 'nothing'}")
    terminal.out(f"sha256 {result.sha256}  {result.wheel.name}")
    return 0 if result.same else DifferenceError.exit_code
