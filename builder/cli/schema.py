"""`builder schema`."""

import click


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
        from builder.reference import page  # noqa: PLC0415  each format imports its own

        click.echo(page(), nl=False)
        return
    import json  # noqa: PLC0415

    from builder.schema import json_schema  # noqa: PLC0415

    click.echo(json.dumps(json_schema(), indent=2))
