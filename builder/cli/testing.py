"""The options and the request of `builder test` and `builder watch`, and the arguments after `--`."""

from typing import Any

import click

from builder.author.test_build import TestRequest
from builder.cli.arguments import archs_option, load_test_option, python_option, store_option, together
from builder.cli.asking import ask_of, cache_options
from builder.cli.selecting import variants_option
from builder.matrix import SETS

_REST = "rest"


class PytestCommand(click.Command):
    """A command that passes the arguments after `--` to pytest."""

    rest = "[-- PYTEST_ARGUMENTS]"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the arguments after `--` aside."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_REST] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Mention these arguments in the usage."""
        return [*super().collect_usage_pieces(ctx), self.rest]


def rest(ctx: click.Context) -> tuple[str, ...]:
    """Return the arguments after `--`."""
    return tuple(ctx.meta[_REST])


options = together(
    variants_option("Cell to test"),
    python_option("Python whose torch and pytest are used."),
    archs_option("Build only for these GPUs. Default: those of this machine, where there are any."),
    load_test_option,
    cache_options,
    store_option,
)
"""The options that select what is tested."""


def request(ctx: click.Context, *, needs_tests: bool = True, **given: Any) -> TestRequest:
    """Return the request of a command line; the arguments after `--` are for pytest."""
    ask = ask_of(sets=SETS, unbundled=True, no_isolation=True, **given)
    return TestRequest(ask=ask, arguments=rest(ctx), needs_tests=needs_tests)
