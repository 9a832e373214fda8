"""The machines that a setup.py is shown, one after the other, with the files and variables of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from builder import json_text, toml
from builder.config.values import Backend, Version
from builder.lint import cxx_standard
from builder.matrix import architectures, rows
from builder.resources import DATA

_GPU = (9, 0)
_OTHER_GPU = (8, 0)
_ARCH_LIST = "8.0;9.0a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A pretended machine: its toolkit, its GPU and its variables."""

    name: str
    cuda: str | None = None
    """Version of the CUDA toolkit."""
    hip: str | None = None
    gpu: tuple[int, int] | None = None
    """Capability of the GPU."""
    arch_list: str | None = None
    """`TORCH_CUDA_ARCH_LIST`."""
    has_every_gpu: bool = False
    """Whether it has a GPU of each capability that the toolkit compiles for, and names them all in that variable."""

    @property
    def torch(self) -> str:
        """The version of the newest torch built for the toolkit."""
        local = "cpu"
        if self.cuda is not None:
            local = f"cu{self.cuda.replace('.', '')}"
        elif self.hip is not None:
            local = f"rocm{'.'.join(self.hip.split('.')[:2])}"
        return f"{torch_version()}+{local}"

    @property
    def is_main(self) -> bool:
        """Whether it differs from the others by its toolkit alone."""
        return self.cuda is not None and self.gpu == _GPU and (self.arch_list is None or self.has_every_gpu)

    @property
    def with_every_gpu(self) -> "Setting":
        """The same machine with a GPU of each kind."""
        names = [name.removesuffix("+PTX") for name in _compiled(self.cuda)]
        return replace(self, arch_list=";".join(names), has_every_gpu=True)


@lru_cache
def facts() -> dict[str, Any]:
    """Return the tables of `cpp-extension.toml`."""
    return toml.loads((DATA / "cpp-extension.toml").read_text(encoding="utf-8"))


def toolkits() -> tuple[str, ...]:
    """Return the CUDA toolkits of the build matrix, and others that projects ask about, oldest first."""
    found = {Version(row.toolkit) for row in rows() if row.backend is Backend.CUDA and row.toolkit is not None}
    found |= set(map(Version, facts()["toolkits"]))
    return tuple(map(str, sorted(found)))


def torch_version() -> str:
    """Return the newest torch of the build matrix."""
    return f"{max(row.torch for row in rows())}.0"


def settings() -> tuple[Setting, ...]:
    """Return every machine, those with a CUDA toolkit and a GPU first."""
    versions = toolkits()
    newest = versions[-1]
    rocm = max(Version(row.toolkit) for row in rows() if row.backend is Backend.ROCM and row.toolkit is not None)
    return (
        *(Setting(name=f"CUDA {version}", cuda=version, gpu=_GPU) for version in versions),
        Setting(name=f"CUDA {newest}, another GPU", cuda=newest, gpu=_OTHER_GPU),
        Setting(name=f"CUDA {newest}, no GPU", cuda=newest),
        Setting(name=f"CUDA {newest}, TORCH_CUDA_ARCH_LIST={_ARCH_LIST}", cuda=newest, gpu=_GPU, arch_list=_ARCH_LIST),
        Setting(name=f"ROCm {rocm}", hip=f"{rocm}.0", gpu=_GPU),
        Setting(name="no GPU and no toolkit"),
    )


def standard() -> int:
    """Return the C++ standard of the newest torch's headers, which a rendered project compiles with."""
    newest = Version(torch_version().rpartition(".")[0])
    return cxx_standard.standard(newest)


SPEC, RESULT = "spec.json", "out/result.json"
_PROGRAM = """#!/bin/sh
for word in "$@"; do
  case $word in
    {answer}
  esac
done
echo 'nothing is compiled while setup.py is recorded' >&2
exit 1
"""
_NVCC = """-V | --version)
      echo 'nvcc: NVIDIA (R) Cuda compiler driver'
      echo 'Copyright (c) 2005-2026 NVIDIA Corporation'
      echo 'Cuda compilation tools, release {version}, V{version}.0'
      exit 0 ;;"""
_HIPCC = "--version) echo 'HIP version: {version}-0'; exit 0 ;;"
_PIP = "*) exit 0 ;;"
_TORCH_FOLDERS = ("include/torch/csrc/api/include", "include/ATen", "lib")


def make_machine(
    setting: Setting, scratch: Path, inside: Path, *, pretended: Sequence[str], believed: Sequence[str]
) -> Mapping[str, str]:
    """Write the files of a machine into `scratch`, which setup.py sees at `inside`, and return its variables."""
    for name in _TORCH_FOLDERS:
        (scratch / "torch" / name).mkdir(parents=True, exist_ok=True)
    variables = {"HOME": str(inside / "home"), "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": "/tmp", "MAX_JOBS": "1"}  # noqa: S108
    path = [str(inside / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]
    for name in ("pip", "pip3"):
        _program(scratch / "bin" / name, _PIP)
    cuda_home = rocm_home = None
    if setting.cuda is not None:
        cuda_home = str(inside / "cuda")
        major, minor = setting.cuda.split(".")
        _program(scratch / "cuda/bin/nvcc", _NVCC.format(version=setting.cuda))
        write_text(scratch / "cuda/include/cuda.h", f"#define CUDA_VERSION {major}{minor:0>2}0\n")
        write_text(scratch / "cuda/version.json", json_text.line({"cuda": {"version": f"{setting.cuda}.0"}}))
        variables |= {"CUDA_HOME": cuda_home, "CUDA_PATH": cuda_home}
    elif setting.hip is not None:
        rocm_home = str(inside / "rocm")
        _program(scratch / "rocm/bin/hipcc", _HIPCC.format(version=setting.hip))
        (scratch / "rocm/include").mkdir(exist_ok=True)
        variables |= dict.fromkeys(("ROCM_HOME", "ROCM_PATH", "HIP_PATH"), rocm_home)
    home = cuda_home or rocm_home
    if home is not None:
        path.insert(0, f"{home}/bin")
    if setting.arch_list is not None:
        variables["TORCH_CUDA_ARCH_LIST"] = setting.arch_list
    told = {
        "torch": setting.torch,
        "torch_folder": str(inside / "torch"),
        "cuda": setting.cuda,
        "hip": setting.hip,
        "gpus": _gpus(setting),
        "cuda_home": cuda_home,
        "rocm_home": rocm_home,
        "nvcc_flags": facts()["nvcc"]["flags"],
        "hip_flags": facts()["hip"]["flags"],
        "arch_list": _architectures(setting.cuda),
        "cudnn": facts()["torch"]["cudnn"],
        "torch_packages": facts()["torch"]["packages"],
        "torch_absent": facts()["torch"]["absent"],
    }
    spec = {"tree": str(inside / "tree"), "result": str(inside / RESULT), "facts": told}
    spec |= {"pretended": list(pretended), "believed": list(believed)}
    write_text(scratch / SPEC, json_text.line(spec))
    return {**variables, "PATH": ":".join(path)}


def _architectures(toolkit: str | None) -> list[str]:
    """Return what torch says that it is compiled for with a toolkit."""
    return [f"sm_{name.removesuffix('+PTX').replace('.', '')}" for name in _compiled(toolkit)]


def _compiled(toolkit: str | None) -> tuple[str, ...]:
    """Return the capabilities that a toolkit compiles for where nothing is asked for."""
    return () if toolkit is None else architectures.cuda(None, Version(toolkit)).compiled


def _gpus(setting: Setting) -> list[tuple[int, ...]]:
    """Return the capabilities of the GPUs of a machine, that of the first one first."""
    own = [] if setting.gpu is None else [setting.gpu]
    names = (setting.arch_list or "").split(";") if setting.has_every_gpu else []
    others = [(int(major), int(minor)) for major, _, minor in (name.partition(".") for name in names)]
    return list(dict.fromkeys((*own, *others)))


def _program(path: Path, answer: str) -> None:
    write_text(path, _PROGRAM.format(answer=answer))
    path.chmod(0o755)


def write_text(path: Path, content: str) -> None:
    """Write a file, and create its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
