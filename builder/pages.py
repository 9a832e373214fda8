"""HTML pages made of templates; every value is escaped."""

from functools import lru_cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from builder import resources
from builder.hashes import base64_sha256


def render(template: str, **values: object) -> bytes:
    """Return the page that a template of `templates/site` makes of `values`."""
    return _environment().get_template(template).render(values).encode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(resources.TEMPLATES / "site"),
        undefined=StrictUndefined,
        autoescape=True,
        auto_reload=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["csp_digest"] = _csp_digest
    return environment


def _csp_digest(content: str) -> str:
    """Return what a content security policy names the content of an inline element by."""
    return f"sha256-{base64_sha256(content.encode())}"
