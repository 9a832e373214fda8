"""`builder completion`: print the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from builder import terminal
from builder.cli import COMPLETE
from builder.cli.group import cli

_SHELLS = tuple(shell for shell in ("bash", "zsh", "fish", "powershell") if get_completion_class(shell) is not None)
"""Those that this version of click has a script for; PowerShell is a newer one."""


_WHERE = """\b
bash  eval "$(builder completion bash)"     in ~/.bashrc
zsh   eval "$(builder completion zsh)"      in ~/.zshrc, behind: autoload -U compinit && compinit
fish  builder completion fish | source      in ~/.config/fish/config.fish
PowerShell  builder completion powershell | Out-String | Invoke-Expression     in $PROFILE; not tested

Elvish has no script."""


@click.command(epilog=_WHERE)
@click.argument("shell", metavar="{bash|zsh|fish|powershell}", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell, to be read when the shell starts."""
    found = get_completion_class(shell)
    if found is None:  # pragma: no cover  click has these shells
        raise AssertionError(shell)
    # bash is asked for its version by source(), which a machine that only prepares the script need not have.
    made = found(cli, {}, "builder", COMPLETE)
    terminal.document(made.source_template % made.source_vars(), end="\n")
