"""Quote a value so that a language reads it as this value, and never as syntax."""

import re
from functools import cache

from builder import json_text

KEYWORDS = re.compile(
    "AMONG|API|ARCHITECTURES|ARGS|BACKEND|CAPABILITIES|COMMIT|COMPILED|COMPILER|CONTAINS|CUDA_FLAGS|CUDA_IS|"
    "CXX_FLAGS|CXX_STANDARD|C_FLAGS|DEVICE|DEVICES|DIR|EVERYWHERE|EXPORTS|EXTENSION|EXTENSIONS|FILE_FLAGS|"
    "FIND_PACKAGES|FROM|GENERATED_INPUTS|GIT|HEADERS|HELP|HIP_FLAGS|INCLUDE|INCLUDE_DIRS|INPUTS|LIBRARY|"
    "LINK_EXCEPT_MACOS|LINK_NAMES|LOST|MACHINE_CODE|METADATA|METAL_FLAGS|MINVER|MODULE|NAME|NAMES|"
    "NAME_EVERYWHERE|NAME_IN|OBJCXX_FLAGS|OBJC_FLAGS|OBJECTS_OF|OPS|OUTPUTS|PACKAGE|REV|SCRIPT|SHA256|SHIMS|"
    "SOURCE|SOURCES|STABLE|STABLE_ABI|SUBMODULES|SYCL_FLAGS|SYSTEM_IS|TABLE|TARGETS|TOOLKIT|TORCH_IS|URL|USES|"
    "VARIABLE|VERSION|WHEEL|WHEEL_ROOT|WITHOUT|WITHOUT_ALL"
)
"""Keywords of a rendered project's functions; an argument must not equal one."""

_PATH = re.compile(r"[A-Za-z0-9_./+-]+", re.ASCII)
_BARE = re.compile(r"[A-Za-z0-9_./+:=>,-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class UnrepresentableError(ValueError):
    """A text that a CMake list cannot contain."""


@cache
def cmake(text: str) -> str:
    """Return `text` as one argument of a CMake command.

    Raises:
        UnrepresentableError: CMake cannot represent the text.
    """
    reason = why_not_cmake(text)
    if reason is not None:
        raise UnrepresentableError(reason)
    if _BARE.fullmatch(text):
        return text
    return f'"{escaped(text)}"'


def escaped(text: str) -> str:
    """Escape `text` for use between the quotes of an argument."""
    return re.sub(r'([\\"$])', r"\\\1", text)


@cache
def why_not_cmake(text: str) -> str | None:
    """Return why a CMake list cannot hold `text` unchanged; None if it can."""
    if _PATH.fullmatch(text) and not KEYWORDS.fullmatch(text):
        return None  # nearly all texts pass: a kernel can have thousands of sources
    reasons = {
        "it is empty": not text,
        "it has a control character": _CONTROL.search(text),
        "it is not Unicode text": _SURROGATE.search(text),
        "';' separates the elements of a list": ";" in text,
        "'$<' begins a generator expression": "$<" in text,
        "'[' and ']' in it do not match, and CMake does not split a list inside them": text.count("[")
        != text.count("]"),
        "'SHELL:' makes several flags of one": text.startswith(("SHELL:", "LINKER:")),
        "it ends in a backslash, which takes the next element in": text.endswith("\\"),
        "it is a word of the project's own functions": KEYWORDS.fullmatch(text),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def python(text: str) -> str:
    """Return `text` as a Python literal, in double quotes and ASCII."""
    return json_text.line(text) if text.isascii() and "\x7f" not in text else ascii(text)
