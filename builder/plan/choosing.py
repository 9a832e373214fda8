"""Choose the builds: for each requested kernel its cells, GPUs and compilers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from builder import render, toolchain
from builder.config import Backend, ToolchainChoice
from builder.errors import BuilderError, ConfigError, NothingToDoError
from builder.kernel import Kernel
from builder.matrix import SETS, Cell, architectures, coverage, is_noarch, require_backends
from builder.matrix.architectures import TargetGpus
from builder.matrix.selection import Scope, require_cells
from builder.matrix.selection import ask as ask_matrix
from builder.plan.ask import Ask, KernelBuild
from builder.plan.kernels import Chosen, Refusal, in_scope, joined, of_each
from builder.wording import listed, nearest, quoted

_MOST_SHOWN = 12
"""The most cells that are listed if a name is unknown."""


class NoPartError(BuilderError):
    """A requested selection excludes a kernel; the message says why."""


def choose(ask: Ask) -> Chosen[KernelBuild]:
    """Choose the cells of each requested kernel, and the GPUs of a quick build.

    If several kernels are requested, a problem of one becomes a refusal, and the others can be built.

    Raises:
        BuilderError: the request cannot be built, or it is for one kernel and names several.
        NothingToDoError: there is no cell; the message has the reasons.
    """
    if ask.kernels.several and ask.options.unique_id is not None:
        raise BuilderError("--unique-id names the ops of one kernel", help="build that kernel by itself")
    scoped = in_scope(ask.kernels, ask.scope)
    named = _variants([kernel for kernel, _ in scoped.found], ask) if scoped.several and ask.variants else None

    def build(kernel: Kernel, scope: Scope) -> KernelBuild:
        own = ask.variants if named is None else named[kernel.config.general.name]
        if named is not None and not own:
            raise NoPartError("no cell that is named")
        return build_of(kernel, replace(ask, scope=scope, variants=own))

    def why_left_out(_: Kernel, error: BuilderError) -> str | None:
        if isinstance(error, NothingToDoError):
            return "no cell is selected"
        return error.message if isinstance(error, NoPartError) else None

    nothing = "no cell of any kernel is selected: there is nothing to build"
    chosen = of_each(scoped, build, why_left_out=why_left_out, nothing=nothing)
    if not chosen.several:
        return chosen
    wrong = {refusal.folder: refusal for refusal in _unrenderable(chosen.found)}
    builds = tuple(each for each in chosen.found if each.kernel.root not in wrong)
    return replace(chosen, found=builds, refusals=(*chosen.refusals, *wrong.values()))


def build_of(kernel: Kernel, ask: Ask) -> KernelBuild:
    """Return the requested cells of a kernel, and the GPUs of a quick build.

    Raises:
        BuilderError: a cell has no code for these GPUs.
        NotHereError: this machine's GPUs were requested, but it has none.
        NothingToDoError: there is no cell; the message has the reasons.
    """
    archs, scope = ask.archs, ask.scope
    if archs is None or archs == architectures.ALL:
        return KernelBuild(kernel=kernel, cells=cells(kernel, scope, variants=ask.variants), ask=ask)
    if ask.variants:
        found = cells(kernel, scope, variants=ask.variants)
        target = _target(kernel, archs, [cell.backend for cell in found], ask.environ)
        for cell in found:
            architectures.require(target.archs, cell.backend, noarch=cell.noarch)
    else:
        require_backends(kernel.config, scope.backends)
        target = _target(kernel, archs, scope.backends or kernel.config.general.backends, ask.environ)
        found = cells(kernel, replace(scope, backends=(target.backend,)))
    return KernelBuild(kernel=kernel, cells=found, ask=ask.for_gpus(target.archs))


def cells(kernel: Kernel, scope: Scope, *, variants: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Return the cells in scope, or the named ones; for a noarch wheel, only this machine's cell.

    Raises:
        BuilderError: the scope names a backend that the kernel does not have.
        NothingToDoError: there is no cell; the message has the reasons.
    """
    variants = [variant.removeprefix(f"{kernel.config.general.name}:") for variant in variants]
    if variants:
        known = _by_variant(kernel, scope)
        if not known:
            require_cells(ask_matrix(kernel, replace(scope, sets=SETS, unbundled=True)))
        unknown = [variant for variant in variants if variant not in known]
        if unknown:
            raise NothingToDoError(f"{listed(unknown)}: no such cell of this kernel", help=_meant(unknown, known))
        return tuple(known[variant] for variant in dict.fromkeys(variants))
    selection = ask_matrix(kernel, scope)
    require_cells(selection)
    # One noarch wheel serves every system, so it is built once.
    by_name = _by_name(selection.cells)
    return tuple(cell for cell in selection.cells if not cell.noarch or by_name[cell.variant] == cell)


def _by_variant(kernel: Kernel, scope: Scope) -> Mapping[str, Cell]:
    """Return every cell of a kernel by variant; if a name occurs twice, the cell of a set in scope wins."""
    # Each set separately: a stable ABI's cell is built with the newest torch of its own set.
    others = ((name,) for name in SETS if name not in scope.sets)
    found = [ask_matrix(kernel, replace(scope, sets=sets, unbundled=True)).cells for sets in (*others, scope.sets)]
    by_name = _by_name([cell for cells in found for cell in cells])
    own = {cell.variant for cell in found[-1]}
    return dict(sorted(by_name.items(), key=lambda each: each[0] not in own))


def _meant(unknown: Sequence[str], by_name: Mapping[str, Cell]) -> str:
    """Suggest names that continue the given one, as with a Python, or are spelled similarly."""
    near: dict[str, None] = {}
    for variant in unknown:
        longer = [name for name in by_name if name.startswith(f"{variant}-")]
        near |= dict.fromkeys(longer or filter(None, [nearest(variant, by_name)]))
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    names = list(by_name)
    more = f" and {len(names) - _MOST_SHOWN} more: `builder matrix --set all --all --format names` shows them"
    return f"there are: {', '.join(names[:_MOST_SHOWN])}{more if names[_MOST_SHOWN:] else ''}"


def _by_name(cells: Sequence[Cell]) -> Mapping[str, Cell]:
    """Return the cells by variant; later cells win, and for a noarch variant this machine's cell."""
    ordered = sorted(cells, key=lambda cell: cell.noarch and cell.system == toolchain.system())
    return {cell.variant: cell for cell in ordered}


def _target(
    kernel: Kernel, archs: TargetGpus | str, backends: Sequence[Backend], environ: Mapping[str, str]
) -> TargetGpus:
    named = (backend for backend in architectures.BACKENDS if backend in backends)
    able = [backend for backend in named if not is_noarch(kernel.config, backend)]
    titles = " and ".join(backend.facts.title for backend in able or dict.fromkeys(backends))
    if not able:
        raise NoPartError(
            f"nothing to build has code for GPUs whose architecture can be named: it is for {titles}",
            help="leave out --archs, which is for components of CUDA and ROCm",
        )
    if not isinstance(archs, TargetGpus):
        from builder.toolchain import this_machine  # noqa: PLC0415  few builds ask the machine

        return this_machine.native_gpus(able, environ)
    if archs.backend not in able:
        raise NoPartError(
            f"{archs} is of {archs.backend.facts.title}, and what is to be built has code for {titles}",
            help=f"name architectures of {titles}",
        )
    return archs


def _unrenderable(builds: Sequence[KernelBuild]) -> Iterator[Refusal]:
    """Yield each kernel that cannot be rendered, so that problems of files are found before any compiler runs."""
    for build in builds:
        ask, options = build.ask, build.ask.options
        here = (cell.backend for cell in build.cells if ask.crosses or not toolchain.crosses(cell))
        try:
            for backend in dict.fromkeys(here):
                render.render(build.kernel, backend, allow_unsafe_flags=options.allow_unsafe_flags, only=options.only)
        except ConfigError as error:
            yield Refusal(folder=build.kernel.root, error=error)


def _variants(kernels: Sequence[Kernel], ask: Ask) -> Mapping[str, tuple[str, ...]]:
    """Return the variants that `VARIANT` or `KERNEL:VARIANT` select, by kernel.

    Raises:
        NothingToDoError: with every unknown name.
    """
    every = replace(ask.scope, backends=())
    known = {str(kernel.config.general.name): _by_variant(kernel, every).keys() for kernel in kernels}
    found: dict[str, list[str]] = {name: [] for name in known}
    problems: list[BuilderError] = []
    for word in ask.variants:
        owner, _, variant = word.rpartition(":")
        if owner and owner not in known:
            why, guess = f"no kernel {quoted(owner)} is named", nearest(owner, tuple(known))
        else:
            whose = [name for name in ((owner,) if owner else known) if variant in known[name]]
            for name in whose:
                found[name].append(variant)
            if whose:
                continue
            names = dict.fromkeys(chain.from_iterable((known[owner],) if owner else known.values()))
            why = f"no such cell of '{owner}'" if owner else "no kernel has such a cell"
            guess = nearest(variant, tuple(names))
        remedy = "`builder matrix --format names` shows what there is" if guess is None else f"did you mean '{guess}'?"
        problems.append(NothingToDoError(f"{quoted(word)}: {why}", help=remedy))
    if problems:
        raise joined(problems)
    return {name: tuple(words) for name, words in found.items()}


def about_quick(build: KernelBuild) -> Iterator[str]:
    """Yield notes about a quick build: that it is one, and what its components lack; nothing for a full build."""
    only = build.ask.options.only
    if not only:
        return
    yield f"note: quick build only for {', '.join(only)}: its wheels are not for release"
    # A component with no architecture left is an error of its build.
    covered = (each for cell in build.cells for each in coverage.of(build.kernel.config, cell, only))
    for message in dict.fromkeys(each.message for each in covered if each.selection.compiled):
        if message is not None:
            yield f"warning: {message}"


def with_compilers(builds: Sequence[KernelBuild], progress: Callable[[str], None]) -> tuple[KernelBuild, ...]:
    """Add the pinned compilers to builds, if the user or the kernel's config requests them.

    They are fetched once, unless the store has them. XPU keeps oneAPI's compiler, which compiles for host and device at
    once; a noarch wheel needs none.

    Raises:
        NotHereError: none are pinned for a system, or no mirror is known.
        ToolError: they cannot be fetched, or do not have the pinned hash.
        StoreError: the store cannot be written.
    """
    pinned = [
        build
        for build in builds
        if (build.ask.toolchain or build.kernel.config.build.toolchain) is ToolchainChoice.PINNED
    ]
    systems = {
        cell.system
        for build in pinned
        for cell in build.cells
        if not cell.noarch
        and cell.backend is not Backend.XPU
        and (build.ask.crosses or not toolchain.crosses(cell))  # cells of other systems are skipped
    }
    if not systems:
        return tuple(builds)
    from builder.environment import compilers, download  # noqa: PLC0415  only those who ask for them need it

    ask = pinned[0].ask
    fetching = download.Fetching(store=ask.store, environ=ask.environ, progress=progress)
    folders = {target: compilers.folder(target, fetching) for target in sorted(systems)}
    environ, places = compilers.variables(folders, ask.environ), tuple(folders.values())
    return tuple(
        replace(build, ask=replace(build.ask, environ=environ, compilers=places)) if build in pinned else build
        for build in builds
    )
