"""The parts of the pin file that a torch brings: its own wheels, triton, and the toolkit of a new CUDA."""

from collections.abc import Iterable, Iterator, Mapping

from builder.config import Backend
from builder.pins import Part, PinnedWheel, Pins
from builder.torch_day.release import Build

Files = Mapping[str, PinnedWheel]
"""The wheels of a build by Python."""
_FIRST_WITH_WHEELS = 13
"""The first CUDA whose wheels have a compiler."""


def torch_parts(version: str, builds: Iterable[tuple[Build, Files]]) -> Iterator[Part]:
    """Yield a part for each toolkit and index."""
    groups: dict[tuple[str | None, str, bool], list[tuple[Build, Files]]] = {}
    for build, files in sorted(builds, key=lambda pair: pair[0].place_in_file):
        index = next((each.index for each in files.values()), None)
        mac = build.system.endswith("-darwin")
        groups.setdefault((index, "" if mac else build.compute, mac), []).append((build, files))
    for (index, _, mac), members in groups.items():
        first = members[0][0]
        yield Part(
            name="torch",
            about=_about(first, index=index, mac=mac),
            version=_minor(version),
            compute=tuple(dict.fromkeys(build.compute for build, _ in members)),
            requires=(f"torch=={version}",),
            only=("torch",),
            index=index,
            wheels={build.system: {py: (each.file,) for py, each in files.items()} for build, files in members},
        )


def _about(build: Build, *, index: str | None, mac: bool) -> str:
    if mac:
        return "The build for macOS, for CPU and Metal"
    match build.backend:
        case Backend.CPU:
            return "The CPU build, where it has an index of its own" if index else "The CPU build, the default one"
        case Backend.XPU:
            return "The build for Intel GPUs"
        case _:
            default = "" if index else ", the default one"
            return f"The build for {build.backend.facts.title} {build.toolkit}{default}"


def triton_part(version: str, builds: Iterable[Build]) -> Iterator[Part]:
    """Yield the part of triton, which the torch of a GPU requires on Linux."""
    gpus = [build for build in builds if build.toolkit is not None]
    computes = tuple(dict.fromkeys(build.compute for build in sorted(gpus, key=lambda build: build.place_in_file)))
    if gpus:
        yield Part(
            name="triton",
            about="For load tests: what the torch of a GPU brings on Linux",
            version=_minor(version),
            compute=computes,
            requires=(f"torch=={version}",),
            only=("triton",),
            wheels={system: {} for system in sorted({build.system for build in gpus})},
        )


def cuda_parts(pins: Pins, builds: Iterable[tuple[Build, Files]]) -> Iterator[Part]:
    """Yield what is pinned of each CUDA toolkit that no part has yet."""
    have = {compute for part in pins.parts if part.name == "toolkit" for compute in part.compute}
    cuda = [build for build, _ in builds if build.backend is Backend.CUDA and build.compute not in have]
    for toolkit in dict.fromkeys(build.toolkit for build in cuda if build.toolkit is not None):
        where = sorted({build.system for build in cuda if build.toolkit == toolkit})
        yield from toolkit_parts(toolkit, tuple(where))


def toolkit_parts(toolkit: str, systems: tuple[str, ...]) -> Iterator[Part]:
    """Yield the compiler and the libraries of a CUDA toolkit."""
    compute = (f"cu{toolkit.replace('.', '')}",)
    if int(toolkit.split(".", maxsplit=1)[0]) < _FIRST_WITH_WHEELS:
        yield Part(
            name="toolkit",
            about=f"CUDA {toolkit}: its wheels have no compiler, CUDA_HOME has",
            compute=compute,
            requires=(),
            wheels={},
        )
        yield Part(
            name="libraries", about=f"CUDA {toolkit}: from CUDA_HOME too", compute=compute, requires=(), wheels={}
        )
        return
    yield Part(
        name="toolkit",
        about=f"CUDA {toolkit}: compiler, runtime and CCCL",
        compute=compute,
        requires=(f"cuda-toolkit[cccl,cudart,nvcc]=={toolkit}.*",),
        wheels={system: {} for system in systems},
    )
    yield Part(
        name="libraries",
        about=f"CUDA {toolkit}: the libraries whose headers ATen/cuda includes",
        compute=compute,
        requires=(f"cuda-toolkit[cublas,cusolver,cusparse]=={toolkit}.*",),
        only=("nvidia-cublas", "nvidia-cusolver", "nvidia-cusparse"),
        wheels={system: {} for system in systems},
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
