"""Make texts and pages of Jinja's templates."""

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from builder import resources
from builder.hashes import base64_sha256


def environment(folder: Path, *, html: bool = False, marks: tuple[str, str, str, str] | None = None) -> Environment:
    """Return the environment of the templates in a folder; an undefined name is an error.

    Values are escaped where it is `html`; else the filters of a language quote them. `marks` begin and end values and
    comments, where Jinja's own mean something in that language.
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
    """Return the HTML page that a template of `templates/site` makes of `values`."""
    return _environment().get_template(template).render(values).encode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    site = environment(resources.TEMPLATES / "site", html=True)
    # The name of the content of an inline element in a content security policy.
    site.filters["csp_digest"] = lambda content: f"sha256-{base64_sha256(content.encode())}"
    return site
