"""`python -m builder.ci`: what a pipeline needs besides `builder` itself."""

import argparse
import sys
from pathlib import Path

from builder import terminal
from builder.ci.pipeline import template
from builder.ci.summary import markdown, read
from builder.errors import BuilderError


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m builder.ci", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="what builds did, as a Markdown table")
    summary.add_argument("reports", nargs="+", type=Path, metavar="REPORT", help="output of `builder build --json`")
    commands.add_parser("gitlab-jobs", help="the template that GitLab jobs extend")
    asked = parser.parse_args(argv)
    if asked.command == "gitlab-jobs":
        terminal.document(template("gitlab-jobs.yml"))
        return 0
    try:
        terminal.document(markdown(read(asked.reports)))
    except BuilderError as error:
        terminal.err(f"error: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
