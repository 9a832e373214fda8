"""What a kernel with [ctypes] cannot have: whatever needs a framework."""

from collections.abc import Iterator

from builder.config.text import KeyPath
from builder.config.v5 import Config
from builder.config.values import Backend, InvalidValueError
from builder.wording import listed

_HUB = "load it by hand, or make a kernel with [torch]"


def check(config: Config) -> Iterator[InvalidValueError]:
    """Yield each backend, dependency and hub kernel that does not go with [ctypes]."""
    yield from _backends(config)
    for name, part in config.kernel.items():
        for index, dependency in enumerate(part.depends):
            if dependency == "torch":
                message = f"component '{name}' compiles against torch, and a kernel with [ctypes] is built without it"
                yield _problem(message, ("kernel", name, "depends", index), "remove it, or make a kernel with [torch]")
    if config.general.kernel_depends:
        message = "kernels of the hub are loaded with torch, and a kernel with [ctypes] is tested without it"
        yield _problem(message, ("general", "kernel-depends"), _HUB)
    for backend in Backend:
        if getattr(getattr(config.general, backend.value, None), "kernel_depends", ()):
            message = "kernels of the hub are loaded with torch, and a kernel with [ctypes] is tested without it"
            yield _problem(message, ("general", backend.value, "kernel-depends"), _HUB)


def _backends(config: Config) -> Iterator[InvalidValueError]:
    built = [backend.value for backend in Backend if backend.facts.ctypes]
    for index, backend in enumerate(config.general.backends):
        place = ("general", "backends", index)
        if not backend.facts.ctypes:
            message = f"'{backend}' has no plain libraries: a kernel with [ctypes] is built for {listed(built)}"
            yield _problem(message, place, "remove it, or make a kernel with [torch]")
        elif not config.components(backend):
            message = f"'{backend}' has no component, and a kernel with [ctypes] is compiled for each backend"
            yield _problem(message, place, f'add a [kernel.<name>] with backend = "{backend}", or remove the backend')


def _problem(message: str, path: KeyPath, remedy: str) -> InvalidValueError:
    return InvalidValueError(message, code="B046", path=path, help=remedy)
