"""The CI services, and the workflow files that a kernel's repository needs for each of them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from builder import __version__
from builder.ci.origin import DISTRIBUTION, TAG, BuilderAddress

Service = Literal["github", "gitlab"]
SERVICES: tuple[Service, ...] = ("github", "gitlab")

PLACEHOLDER = "OWNER/REPOSITORY"
"""Stands for the repository of this builder where that is not known."""
_UNKNOWN = f"""
# EDIT: put the repository of builder in place of {PLACEHOLDER}, or make this file by `builder init --builder-url`."""

_TEMPLATES = Path(__file__).parent / "templates"
_PLACES: Mapping[Service, str] = {"github": ".github/workflows/kernel.yml", "gitlab": ".gitlab-ci.yml"}


def caller(service: Service, *, home: BuilderAddress | None) -> Mapping[str, str]:
    """Return the files that make a kernel's repository build its kernel, by path.

    If `home` is None, a comment in them says what to fill in.
    """
    if home is not None:
        home = replace(home, ref=home.ref or TAG)
    values = {
        "@HOME@": _UNKNOWN if home is None else f" {home.page}",
        "@REPOSITORY@": PLACEHOLDER if home is None else home.repository,
        "@REF@": TAG if home is None else home.ref,
        "@BUILDER@": f"{DISTRIBUTION}=={__version__}" if home is None else home.requirement,
    }
    text = template(f"{service}.yml")
    for name, value in values.items():
        text = text.replace(name, str(value))
    return {_PLACES[service]: text}


def template(name: str) -> str:
    """Return a template as it is in the package."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")
