"""`builder schema`: print the JSON Schema of a build.toml."""

import click

from builder import json_text, terminal


@click.command()
@click.option(
    "--format",
    "format_",
    type=click.Choice(("json", "markdown")),
    default="json",
    help="The JSON Schema for editors, or the reference page for people.",
)
def command(*, format_: str) -> None:
    """Print the JSON Schema of a build.toml of edition 5."""
    if format_ == "markdown":
        from builder.config.reference import page  # noqa: PLC0415  each format imports its own

        terminal.document(page())
        return

    from builder.config.reference import json_schema  # noqa: PLC0415

    terminal.document(json_text.document(json_schema()))
