"""The files and variables of a machine that is not there: stand-ins for nvcc and hipcc, empty folders of toolkits."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from builder import json_text
from builder.port.settings import Setting, facts, torch_version

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


def make(
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
        text(scratch / "cuda/include/cuda.h", f"#define CUDA_VERSION {number}0\n")
        text(scratch / "cuda/version.json", json_text.line({"cuda": {"version": f"{setting.cuda}.0"}}))
    if setting.hip is not None:
        _program(scratch / "rocm/bin/hipcc", _HIPCC.format(version=setting.hip))
        (scratch / "rocm/include").mkdir(exist_ok=True)
    home = None if toolkit is None else str(inside / toolkit)
    spec = {
        "tree": str(inside / "tree"),
        "result": str(inside / RESULT),
        "pretended": list(pretended),
        "believed": list(believed),
        "facts": _facts(setting, inside, home),
    }
    text(scratch / SPEC, json_text.line(spec))
    return _variables(setting, inside, home)


def _facts(setting: Setting, inside: Path, home: str | None) -> dict[str, object]:
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
    text(path, content)
    path.chmod(0o755)


def text(path: Path, content: str) -> None:
    """Write a file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


def state(tree: Path) -> dict[str, tuple[int, int]]:
    """Return the size and time of every file of a tree."""
    found = {}
    for path in tree.rglob("*"):
        if not path.is_dir() or path.is_symlink():
            entry = path.lstat()
            found[path.relative_to(tree).as_posix()] = (entry.st_size, entry.st_mtime_ns)
    return found
