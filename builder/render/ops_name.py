"""Which sources of a kernel are compiled with the name of its ops, so that every edit compiles them again."""

import re
from collections.abc import Iterable, Mapping

from builder.config import Framework
from builder.kernel.source_globs import HEADERS

_MACROS = {Framework.TORCH: b"TORCH_EXTENSION_NAME", Framework.TVM_FFI: b"TVM_FFI_EXTENSION_NAME"}
_LINKED = re.compile(
    rb"\b(?:(?:STABLE_)?TORCH_LIBRARY(?:_IMPL)?_EXPAND|REGISTER_EXTENSION)\s*\(\s*TORCH_EXTENSION_NAME\s*(?=[,)])"
)
"""Uses of the name for which `registration.h` has a macro that takes it from the linker."""
_OWN_MACROS = re.compile(rb"#\s*define\s+(?:STABLE_)?TORCH_LIBRARY(?:_IMPL)?_EXPAND\b")
_GENERATED = "torch-ext/registration.h"


def compiled_into(
    sources: Iterable[str], files: Mapping[str, bytes], *, framework: Framework
) -> tuple[str, ...] | None:
    """Return the sources that use the name themselves; None for all sources, because a header does."""
    if framework not in _MACROS:
        return ()
    macro = _MACROS[framework]
    if any(_uses(macro, text) for path, text in files.items() if path.endswith(HEADERS) and path != _GENERATED):
        return None
    return tuple(path for path in sources if not path.endswith(HEADERS) and _uses(macro, files.get(path, b"")))


def _uses(macro: bytes, text: bytes) -> bool:
    return macro in _LINKED.sub(b"", text) or _OWN_MACROS.search(text) is not None
