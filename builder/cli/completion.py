"""`builder completion`: print the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from builder import terminal
from builder.cli import COMPLETE
from builder.cli.group import cli

_SHELLS = tuple(shell for shell in ("bash", "zsh", "fish", "powershell") if get_completion_class(shell) is not None)
"""The shells that this version of click supports; PowerShell needs a newer one."""


_WHERE = """\b
bash  eval "$(builder completion bash)"     in ~/.bashrc
zsh   eval "$(builder completion zsh)"      in ~/.zshrc, behind: autoload -U compinit && compinit
fish  builder completion fish | source      in ~/.config/fish/config.fish
PowerShell  builder completion powershell | Out-String | Invoke-Expression     in $PROFILE; not tested

Elvish has no script."""


@click.command(epilog=_WHERE)
@click.argument("shell", metavar="{bash|zsh|fish|powershell}", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell, which the shell reads when it starts."""
    found = get_completion_class(shell)
    if found is None:  # pragma: no cover  click has these shells
        raise AssertionError(shell)
    # source() asks bash for its version, but the machine that prepares the script may not have bash.
    made = found(cli, {}, "builder", COMPLETE)
    terminal.document(made.source_template % made.source_vars(), end="\n")
