"""A release of torch: its published builds, the facts in its wheels, and the pins of its environments."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from builder import codec, json_text
from builder.config import Backend, Version
from builder.matrix.variant import compute_name
from builder.pins import PinnedPart, PinnedWheel, Pins

ORDER = (Backend.CPU, Backend.CUDA, Backend.ROCM, Backend.XPU, Backend.METAL)
"""The order of the rows of a torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    """A build of torch for one system."""

    system: str
    backend: Backend
    toolkit: str | None
    source: str
    """The file that states this."""

    @property
    def compute(self) -> str:
        """The toolkit as variant names spell it."""
        return compute_name(self.backend, self.toolkit)

    @property
    def place_in_file(self) -> tuple[int, tuple[int, ...], int]:
        """The position of its row among the rows of its torch."""
        systems = ("x86_64-linux", "aarch64-linux", "aarch64-darwin")
        toolkit = tuple(map(int, (self.toolkit or "0").split(".")))
        return ORDER.index(self.backend), toolkit, systems.index(self.system)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Everything that a proposal for a torch is made from."""

    version: str
    """The published version: `2.15.0`."""
    pythons: tuple[str, ...]
    """Tags of the Pythons with wheels on the default index."""
    builds: tuple[TorchBuild, ...]
    parts: tuple[PinnedPart, ...]
    """The pinned parts."""
    wheels: Mapping[str, PinnedWheel]
    file: str
    """The wheel with the remaining facts."""
    standard: int | None
    """The C++ standard of the headers."""
    python_headers: tuple[str, ...] = field(metadata=codec.spelled(key="python_headers"))
    shim: Mapping[str, tuple[str, ...]]
    """Library → C functions of the stable ABI."""
    notes: tuple[str, ...] = field(default=())
    """Things that a person has to look at."""
    away: tuple[str, ...] = field(default=())
    """Indexes that did not answer, with the reasons."""

    @property
    def minor(self) -> Version:
        """The version as in rows: `2.15`."""
        return Version(_minor(self.version))


def to_json(release: Release) -> str:
    """Return a release as JSON, without the addresses of files."""
    return json_text.document(codec.encode(release), indent=1, ordered=True)


def from_json(text: str) -> Release:
    """Read the output of `to_json`."""
    return codec.decode(Release, json.loads(text))


_MAC = "macOS"
_LIBRARIES = ("nvidia-cublas", "nvidia-cusolver", "nvidia-cusparse")
Files = Mapping[str, PinnedWheel]
"""The wheels of a build by Python."""
FIRST_WITH_WHEELS = 13
"""The first CUDA whose wheels contain a compiler."""


def torch_parts(version: str, builds: Iterable[tuple[TorchBuild, Files]]) -> Iterator[PinnedPart]:
    """Yield a part for each toolkit and index."""
    groups: dict[tuple[str | None, str], list[tuple[TorchBuild, Files]]] = {}
    for build, files in sorted(builds, key=lambda pair: pair[0].place_in_file):
        index = next((each.index for each in files.values()), None)
        kind = _MAC if build.system.endswith("-darwin") else build.compute
        groups.setdefault((index, kind), []).append((build, files))
    for (index, kind), members in groups.items():
        yield PinnedPart(
            name="torch",
            about="The build for macOS, for CPU and Metal" if kind == _MAC else _about(members[0][0], index),
            version=_minor(version),
            compute=tuple(dict.fromkeys(build.compute for build, _ in members)),
            requires=(f"torch=={version}",),
            only=("torch",),
            index=index,
            wheels={build.system: {py: (each.file,) for py, each in files.items()} for build, files in members},
        )


def _about(build: TorchBuild, index: str | None) -> str:
    match build.backend:
        case Backend.CPU:
            return "The CPU build, where it has an index of its own" if index else "The CPU build, the default one"
        case Backend.XPU:
            return "The build for Intel GPUs"
        case _:
            default = "" if index else ", the default one"
            return f"The build for {build.backend.facts.title} {build.toolkit}{default}"


def triton_part(version: str, builds: Iterable[TorchBuild]) -> Iterator[PinnedPart]:
    """Yield the part for triton, which torch for GPUs requires on Linux."""
    gpus = sorted((build for build in builds if build.toolkit is not None), key=lambda build: build.place_in_file)
    if gpus:
        yield PinnedPart(
            name="triton",
            about="For load tests: what the torch of a GPU brings on Linux",
            version=_minor(version),
            compute=tuple(dict.fromkeys(build.compute for build in gpus)),
            requires=(f"torch=={version}",),
            only=("triton",),
            wheels={system: {} for system in sorted({build.system for build in gpus})},
        )


def cuda_parts(pins: Pins, builds: Iterable[tuple[TorchBuild, Files]]) -> Iterator[PinnedPart]:
    """Yield the parts of each CUDA toolkit that has none yet."""
    have = {compute for part in pins.parts if part.name == "toolkit" for compute in part.compute}
    systems: dict[str, set[str]] = {}
    for build, _ in builds:
        if build.backend is Backend.CUDA and build.toolkit is not None and build.compute not in have:
            systems.setdefault(build.toolkit, set()).add(build.system)
    for toolkit, where in systems.items():
        yield from toolkit_parts(toolkit, tuple(sorted(where)))


def toolkit_parts(toolkit: str, systems: tuple[str, ...]) -> Iterator[PinnedPart]:
    """Yield the compiler and the libraries of a CUDA toolkit."""
    compute = (compute_name(Backend.CUDA, toolkit),)
    if int(toolkit.partition(".")[0]) < FIRST_WITH_WHEELS:
        compiler, libraries = "its wheels have no compiler, CUDA_HOME has", "from CUDA_HOME too"
        for name, about in (("toolkit", compiler), ("libraries", libraries)):
            yield PinnedPart(name=name, about=f"CUDA {toolkit}: {about}", compute=compute, requires=(), wheels={})
        return
    for name, about, extras, only in (
        ("toolkit", "compiler, runtime and CCCL", "cccl,cudart,nvcc", ()),
        ("libraries", "the libraries whose headers ATen/cuda includes", "cublas,cusolver,cusparse", _LIBRARIES),
    ):
        yield PinnedPart(
            name=name,
            about=f"CUDA {toolkit}: {about}",
            compute=compute,
            requires=(f"cuda-toolkit[{extras}]=={toolkit}.*",),
            only=only,
            wheels={system: {} for system in systems},
        )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
