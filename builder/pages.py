"""HTML pages made of templates; every value is escaped."""

from functools import lru_cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from builder import resources


def render(template: str, **values: object) -> bytes:
    """Return the page that a template of `templates/site` makes of `values`."""
    return _environment().get_template(template).render(values).encode()


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(resources.TEMPLATES / "site"),
        undefined=StrictUndefined,
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
