"""The machines that a setup.py is made to see, one after the other, and the files and variables of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from builder import json_text, toml
from builder.config.values import Backend, Version
from builder.lint import cxx_standard
from builder.matrix import rows
from builder.resources import DATA

_GPU = (9, 0)
_OTHER_GPU = (8, 0)
_ARCH_LIST = "8.0;9.0a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A machine: its toolkit, its GPU and its variables."""

    name: str
    cuda: str | None = None
    """Version of the CUDA toolkit."""
    hip: str | None = None
    gpu: tuple[int, int] | None = None
    """Capability of the GPU."""
    arch_list: str | None = None
    """`TORCH_CUDA_ARCH_LIST`."""

    @property
    def is_main(self) -> bool:
        """Whether it differs from the others by its toolkit alone."""
        return self.cuda is not None and self.gpu == _GPU and self.arch_list is None


@lru_cache
def facts() -> dict[str, Any]:
    """Return the tables of `cpp-extension.toml`."""
    return toml.loads((DATA / "cpp-extension.toml").read_text(encoding="utf-8"))


def toolkits() -> tuple[str, ...]:
    """Return the CUDA toolkits of the build matrix and the ones that projects ask about, oldest first."""
    found = {Version(row.toolkit) for row in rows() if row.backend is Backend.CUDA and row.toolkit is not None}
    found |= set(map(Version, facts()["toolkits"]))
    return tuple(map(str, sorted(found)))


def torch_version() -> str:
    """Return the newest torch of the build matrix."""
    return f"{max(row.torch for row in rows())}.0"


def _newest(backend: Backend) -> str:
    found = (Version(row.toolkit) for row in rows() if row.backend is backend and row.toolkit is not None)
    return str(max(found))


def settings() -> tuple[Setting, ...]:
    """Return every machine, those with a CUDA toolkit and a GPU first."""
    versions = toolkits()
    newest = versions[-1]
    return (
        *(Setting(name=f"CUDA {version}", cuda=version, gpu=_GPU) for version in versions),
        Setting(name=f"CUDA {newest}, another GPU", cuda=newest, gpu=_OTHER_GPU),
        Setting(name=f"CUDA {newest}, no GPU", cuda=newest),
        Setting(name=f"CUDA {newest}, TORCH_CUDA_ARCH_LIST={_ARCH_LIST}", cuda=newest, gpu=_GPU, arch_list=_ARCH_LIST),
        Setting(name=f"ROCm {_newest(Backend.ROCM)}", hip=f"{_newest(Backend.ROCM)}.0", gpu=_GPU),
        Setting(name="no GPU and no toolkit"),
    )


def standard() -> int:
    """Return the C++ standard of the headers of the newest torch, which a rendered project compiles with."""
    newest = Version(torch_version().rpartition(".")[0])
    return cxx_standard.standard(newest)


SPEC, RESULT = "spec.json", "result.json"
_NVCC = """#!/bin/sh
for word in "$@"; do
  case $word in
    -V | --version)
      echo 'nvcc: NVIDIA (R) Cuda compiler driver'
      echo 'Copyright (c) 2005-2026 NVIDIA Corporation'
      echo 'Cuda compilation tools, release {version}, V{version}.0'
      exit 0 ;;
  esac
done
echo 'nothing is compiled while setup.py is recorded' >&2
exit 1
"""
_HIPCC = """#!/bin/sh
for word in "$@"; do
  case $word in
    --version) echo 'HIP version: {version}-0'; exit 0 ;;
  esac
done
echo 'nothing is compiled while setup.py is recorded' >&2
exit 1
"""
_TORCH_FOLDERS = ("include/torch/csrc/api/include", "include/ATen", "lib")


def make_machine(
    setting: Setting, scratch: Path, inside: Path, *, pretended: Sequence[str], believed: Sequence[str]
) -> Mapping[str, str]:
    """Write the files of a machine into `scratch`, which is seen at `inside`, and return its variables."""
    toolkit = "cuda" if setting.cuda is not None else "rocm" if setting.hip is not None else None
    for folder in _TORCH_FOLDERS:
        (scratch / "torch" / folder).mkdir(parents=True, exist_ok=True)
    (scratch / "home").mkdir(exist_ok=True)
    if setting.cuda is not None:
        number = "".join(f"{int(part):0{2 if index else 1}}" for index, part in enumerate(setting.cuda.split(".")))
        _program(scratch / "cuda/bin/nvcc", _NVCC.format(version=setting.cuda))
        write_text(scratch / "cuda/include/cuda.h", f"#define CUDA_VERSION {number}0\n")
        write_text(scratch / "cuda/version.json", json_text.line({"cuda": {"version": f"{setting.cuda}.0"}}))
    if setting.hip is not None:
        _program(scratch / "rocm/bin/hipcc", _HIPCC.format(version=setting.hip))
        (scratch / "rocm/include").mkdir(exist_ok=True)
    home = None if toolkit is None else str(inside / toolkit)
    spec = {
        "tree": str(inside / "tree"),
        "result": str(inside / RESULT),
        "pretended": list(pretended),
        "believed": list(believed),
        "facts": _facts_of_machine(setting, inside, home),
    }
    write_text(scratch / SPEC, json_text.line(spec))
    return _variables(setting, inside, home)


def _facts_of_machine(setting: Setting, inside: Path, home: str | None) -> dict[str, object]:
    local = "cpu"
    if setting.cuda is not None:
        local = "cu" + setting.cuda.replace(".", "")
    elif setting.hip is not None:
        local = "rocm" + ".".join(setting.hip.split(".")[:2])
    return {
        "torch": f"{torch_version()}+{local}",
        "torch_folder": str(inside / "torch"),
        "cuda": setting.cuda,
        "hip": setting.hip,
        "gpu": setting.gpu,
        "cuda_home": home if setting.cuda is not None else None,
        "rocm_home": home if setting.hip is not None else None,
        "nvcc_flags": facts()["nvcc"]["flags"],
        "hip_flags": facts()["hip"]["flags"],
    }


def _variables(setting: Setting, inside: Path, home: str | None) -> dict[str, str]:
    path = ["/usr/local/bin", "/usr/bin", "/bin"]
    found = {"HOME": str(inside / "home"), "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": "/tmp", "MAX_JOBS": "1"}  # noqa: S108
    if home is not None:
        path.insert(0, f"{home}/bin")
        names = ("CUDA_HOME", "CUDA_PATH") if setting.cuda is not None else ("ROCM_HOME", "ROCM_PATH", "HIP_PATH")
        found |= dict.fromkeys(names, home)
    if setting.arch_list is not None:
        found["TORCH_CUDA_ARCH_LIST"] = setting.arch_list
    return {**found, "PATH": ":".join(path)}


def _program(path: Path, content: str) -> None:
    write_text(path, content)
    path.chmod(0o755)


def write_text(path: Path, content: str) -> None:
    """Write a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def files_of(tree: Path) -> dict[str, tuple[int, int]]:
    """Return the size and time of every file of a tree."""
    found = {}
    for path in tree.rglob("*"):
        if not path.is_dir() or path.is_symlink():
            entry = path.lstat()
            found[path.relative_to(tree).as_posix()] = (entry.st_size, entry.st_mtime_ns)
    return found
