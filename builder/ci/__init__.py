"""What a kernel's repository needs to be built by a CI service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from builder import __version__, _toml, resources

Service = Literal["github", "gitlab"]
SERVICES: tuple[Service, ...] = ("github", "gitlab")

_TEMPLATES = Path(__file__).parent / "templates"
_PLACES: Mapping[Service, str] = {"github": ".github/workflows/kernel.yml", "gitlab": ".gitlab-ci.yml"}


def caller(service: Service, *, ref: str | None = None) -> Mapping[str, str]:
    """Return the files that `builder init --ci` adds to a kernel, by path; `ref` is this version's tag by default."""
    home = _toml.loads((resources.DATA / "runners.toml").read_text(encoding="utf-8"))["home"]
    values = {"@HOST@": home["host"], "@REPOSITORY@": home["repository"], "@VERSION@": __version__}
    values["@REF@"] = f"v{__version__}" if ref is None else ref
    text = template(f"{service}.yml")
    for name, value in values.items():
        text = text.replace(name, value)
    return {_PLACES[service]: text}


def template(name: str) -> str:
    """Return a template as it is in the package."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")
