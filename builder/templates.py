"""Render Jinja's templates."""

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from builder import resources
from builder.hashes import base64_sha256


def environment(folder: Path, *, html: bool = False, marks: tuple[str, str, str, str] | None = None) -> Environment:
    """Return the environment of the templates in a folder; an undefined name is an error.

    With `html`, values are escaped; otherwise the filters of the language quote them. `marks` replace Jinja's
    delimiters of values and comments in languages where those have a meaning.
    """
    value, value_end, comment, comment_end = marks or ("{{", "}}", "{#", "#}")
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=html,  # noqa: S701  what is no HTML has the filters of its language
        auto_reload=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        variable_start_string=value,
        variable_end_string=value_end,
        comment_start_string=comment,
        comment_end_string=comment_end,
    )


def page(template: str, **values: object) -> bytes:
    """Return the HTML page that a template in `templates/site` makes from `values`."""
    return _environment().get_template(template).render(values).encode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    site = environment(resources.TEMPLATES / "site", html=True)
    # A content security policy names an inline element by its hash.
    site.filters["csp_digest"] = lambda content: f"sha256-{base64_sha256(content.encode())}"
    return site
