"""The card of a kernel on the hub: CARD.md, completed with facts from the wheels."""

import re
from collections.abc import Sequence
from pathlib import Path

from builder import json_text
from builder.config.text import leaves
from builder.errors import BuilderError
from builder.matrix.variant import Variant
from builder.wheel.kernel_wheel import KernelWheel

NAME = "CARD.md"
USAGE = "<!-- builder: usage -->"
VARIANTS = "<!-- builder: variants -->"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
"""`OWNER/NAME` of the hub."""
_FRONT = re.compile(r"\A---\n(?P<yaml>.*?)^---\n", re.DOTALL | re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9.-]*", re.ASCII)


def read(kernel: Path | None) -> str | None:
    """Return the CARD.md of a kernel's directory; None without one.

    Raises:
        BuilderError: it cannot be read.
    """
    if kernel is None:
        return None
    if not kernel.is_dir():
        raise BuilderError(f"'{kernel}' is not a directory", help="name the kernel's directory with --kernel")
    path = kernel / NAME
    if leaves(path):
        raise BuilderError(f"'{path}' is a symbolic link out of the kernel's directory", help="copy the file there")
    try:
        return path.read_text(encoding="utf-8") if path.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise BuilderError(f"cannot read '{path}': {error}", help="it must be a UTF-8 text") from error


def fill(text: str | None, kernel_wheel: KernelWheel, *, variants: Sequence[str], repo_id: str | None = None) -> str:
    """Complete the front matter of a card and replace its two marks; without `text`, return a default card.

    Raises:
        BuilderError: `repo_id` is not the name of a repository.
    """
    if repo_id is not None and REPOSITORY.fullmatch(repo_id) is None:
        raise BuilderError(f"'{repo_id}' is not a repository of the hub", help="write OWNER/NAME")
    if text is None:
        text = f"\n# {kernel_wheel.kernel}\n\n{USAGE}\n\n## Variants\n\n{VARIANTS}\n"
    text = text.replace("\r\n", "\n")
    front = _FRONT.match(text)
    body = text if front is None else text[front.end() :]
    usage = (
        "```python\n"
        "from kernels import get_kernel\n\n"
        f'{kernel_wheel.module} = get_kernel("{repo_id or f"<owner>/{kernel_wheel.kernel}"}", '
        f"version={kernel_wheel.metadata.version})\n"
        "```"
    )
    body = body.replace(USAGE, usage).replace(VARIANTS, _table(variants))
    return f"---\n{_front_matter('' if front is None else front['yaml'], kernel_wheel)}---\n{body}"


def _front_matter(yaml: str, kernel_wheel: KernelWheel) -> str:
    """Return the front matter with the keys that the hub needs; the author's own keys stay unchanged."""
    license_ = kernel_wheel.metadata.license or ""
    wanted = {"library_name": "kernels", "tags": "[kernel]"}
    if _PLAIN.fullmatch(license_):
        wanted["license"] = license_.lower()
    elif license_:
        wanted["license"] = "other"
        wanted["license_name"] = json_text.line(license_)  # a JSON string is a valid YAML string
    have = set(re.findall(r"^([A-Za-z_-]+):", yaml, re.MULTILINE))
    if "license" in have:
        wanted.pop("license_name", None)
    return yaml + "".join(f"{key}: {wanted[key]}\n" for key in sorted(wanted.keys() - have))


def _table(variants: Sequence[str]) -> str:
    lines = ["| variant | framework | compute | system |", "| --- | --- | --- | --- |"]
    for variant in map(Variant.parse, sorted(set(variants))):
        framework = "torch" if variant.stable or variant.version is None else f"{variant.framework}"
        version = "" if variant.version is None else f" {'≥ ' if variant.stable else ''}{variant.version}"
        lines.append(f"| `{variant}` | {framework}{version} | {variant.compute} | {variant.system or 'any'} |")
    return "\n".join(lines)
