"""The hub's own library, which is optional and slow to import, and what it raises."""

from types import ModuleType

from builder.errors import ToolError


def load(purpose: str) -> ModuleType:
    """Import huggingface_hub.

    Raises:
        ToolError: it is not installed; `purpose` says what needs it.
    """
    try:
        import huggingface_hub.errors  # noqa: PLC0415  an optional dependency
        import huggingface_hub.hf_api  # noqa: PLC0415
    except ImportError as error:
        raise ToolError(f"{purpose} needs huggingface_hub", help="pip install 'kernel-wheel-builder[hub]'") from error
    return huggingface_hub


def refusals(library: ModuleType) -> tuple[type[Exception], ...]:
    """Return what the library raises; its HTTP client, which has changed before, is a base of its own error."""
    bases = library.errors.HfHubHTTPError.__mro__
    # ValueError: a card that the hub finds wrong, or a name that it does not allow.
    return (OSError, ValueError, *(base for base in bases if issubclass(base, Exception) and base is not Exception))


def first_line(error: Exception) -> str:
    """Return the line of an error of the library that a person reads."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
