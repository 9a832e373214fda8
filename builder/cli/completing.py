"""Complete words in a shell: variants, backends, kernels and codes; a broken kernel gives no completions."""

import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem, split_arg_string

from builder.errors import BuilderError
from builder.kernel import CONFIG, Kernel, load

_AT_MOST = 1000
"""The most entries of a folder that are examined, since a shell waits."""


def kernels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a kernel: folders with a build.toml, or else folders on the way to one."""
    typed = incomplete[: incomplete.rfind("/") + 1]
    try:
        # In the file system's order, since a shell sorts. Pathlib would raise if the home folder is unknown.
        folder = Path(os.path.expanduser(typed))  # noqa: PTH111
        folders = [path for path, _ in zip(folder.iterdir(), range(_AT_MOST), strict=False)]
        found = [f"{typed}{path.name}" for path in folders if (path / CONFIG).is_file()]
    except OSError:
        found = []
    fitting = sorted(name for name in found if name.startswith(incomplete))
    return [CompletionItem(name) for name in fitting] or [CompletionItem(incomplete, type="dir")]


def backends(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a backend: those of the kernel, or else all that the option accepts."""
    loaded = _kernel()
    if loaded is None:
        return param.type.shell_complete(ctx, param, incomplete)
    names = [backend.value for backend in loaded.config.general.backends]
    names += [name for name in getattr(param.type, "choices", ()) if name == "all"]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def variants(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a variant: the cells of the kernel that belong to this machine's system."""
    loaded = _kernel()
    if loaded is None:
        return []
    from builder import matrix, toolchain  # noqa: PLC0415  only a variant needs them

    cells = matrix.select(loaded.config, matrix.rows(), unbundled=True)
    here = [cell for cell in cells if cell.noarch or cell.system == toolchain.system()]
    given = [word for word in _words() if word != incomplete]
    names = dict.fromkeys(cell.variant for cell in here if cell.variant not in given)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a path."""
    return [CompletionItem(incomplete, type="file")]


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the code of a finding."""
    from builder.lint.findings import titles_of_codes  # noqa: PLC0415  only a code needs them

    return [
        CompletionItem(code, help=title)
        for code, title in titles_of_codes().items()
        if code.startswith(incomplete.upper())
    ]


def _kernel() -> Kernel | None:
    """Return the kernel that the line names, or else that of the current folder."""
    # Not from click's parameters: click stops parsing before the arguments if an option still lacks its value.
    named = next((word for word in _words() if (Path(word) / CONFIG).is_file()), ".")
    try:
        return load(Path(named))
    except BuilderError:
        return None


def _words() -> list[str]:
    """Return the words after the command, as the shell passed them."""
    return split_arg_string(os.environ.get("COMP_WORDS", ""))[2:]
