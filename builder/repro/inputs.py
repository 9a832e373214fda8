"""Compare the recorded inputs of a published wheel with those of this machine, before any bytes are compared."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.errors import BuilderError
from builder.metadata import KernelMetadata
from builder.wheel import kernel_wheel

_MEANING = {
    "builder": "version of builder",
    "project": "digest of the rendered project: sources, headers, CMake",
    "framework": "version of torch or tvm-ffi",
    "pins": "digest of the pinned wheels",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input that differs from the published wheel's."""

    name: str
    published: str
    here: str

    def __str__(self) -> str:
        meaning = _MEANING.get(self.name, "identity of a tool")
        return f"{self.name} ({meaning}): published with {self.published}, here {self.here}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A wheel that somebody else built."""

    path: Path
    variant: str
    inputs: Mapping[str, str]
    options: tuple[str, ...]
    """The options of `builder build` that give this file name."""
    not_reproducible: str | None = None

    @classmethod
    def read(cls, path: Path) -> "Published":
        """Read a wheel.

        Raises:
            BuilderError: it is not a wheel of `builder`, or its record is not complete.
        """
        found = kernel_wheel.read(path)
        inputs = inputs_of(found.metadata)
        missing = [name for name in _MEANING if name not in inputs]
        if missing:
            raise BuilderError(
                f"'{path.name}' does not say with which {', '.join(missing)} it was built",
                help="only a wheel whose metadata.json has the record of its inputs can be verified",
            )
        label = () if found.wheel.version.local else ("--no-label",)
        archs = found.metadata.quick_archs
        quick = ("--archs", ",".join(archs)) if archs else ()
        options = ("--wheel-version", found.wheel.version.public, *label, *quick)
        return cls(
            path=path,
            variant=str(found.variant),
            inputs=inputs,
            options=options,
            not_reproducible=found.metadata.inputs.not_reproducible,
        )


def inputs_of(metadata: KernelMetadata) -> dict[str, str]:
    """Return the recorded inputs in a metadata.json as a flat table."""
    inputs = metadata.inputs
    named = {
        "builder": metadata.builder,
        "project": inputs.project,
        "framework": inputs.framework,
        "pins": inputs.pins,
        **(inputs.toolchain or {}),
    }
    return {name: value for name, value in named.items() if value is not None}


def differences(published: Mapping[str, str], here: Mapping[str, str]) -> Iterator[Input]:
    """Yield the inputs that differ."""
    for name in (*_MEANING, *sorted({*published, *here} - set(_MEANING))):
        if published.get(name) != here.get(name):
            yield Input(name=name, published=published.get(name, "nothing"), here=here.get(name, "nothing"))
