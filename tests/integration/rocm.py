"""A ROCm and a ROCm torch for tests, made of what a plain machine has: Debian's hipcc, and the CPU build of torch."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests import needs

LIBRARIES = (
    *("rocrand", "hiprand", "rocblas", "hipblas", "miopen", "hipfft", "hipsparse", "rocprim", "hipcub", "rocthrust"),
    *("hipsolver", "rocsolver", "hiprtc", "hipblaslt", "rocm_smi", "rccl", "rocm-core", "composable_kernel"),
)
"""What torch's LoadHIP.cmake asks for and a kernel does not need."""

_SAYS = "exec /usr/bin/hipcc --version | sed 's/^HIP version: [0-9]*.[0-9]*/HIP version: 7.1/'"
_DEBIAN = Path("/usr/lib/x86_64-linux-gnu")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_TARGETS = """
foreach(name IN ITEMS c10_hip torch_hip)
  if(NOT TARGET ${name})
    add_library(${name} INTERFACE IMPORTED)
  endif()
endforeach()
"""


def why_not():
    """Say why this machine has no HIP compiler that can be used here; empty when it has."""
    if shutil.which("hipcc") is None:
        return needs.why_not("hipcc")
    if llvm() is None or not (_DEBIAN / "cmake/hip").is_dir():
        return (
            "made for the HIP of Debian: apt-get install hipcc libamdhip64-dev, and the rocm-device-libs of its clang"
        )
    return ""


def llvm():
    """Return the LLVM that has the device libraries of ROCm beside it; None without one.

    They are in a folder of their own with HIP 5.2 (Debian 12), and in that of clang with HIP 6.4 (Debian sid).
    """
    found = [path for path in Path("/usr/lib").glob("llvm-*") if (path / "bin/clang").exists()]
    return next((path for path in sorted(found, reverse=True) if bitcode(path) is not None), None)


def bitcode(clang):
    """Return the folder with the device libraries of an LLVM; None without one."""
    places = [*clang.glob("lib/clang/*/amdgcn/bitcode")]
    if clang.name == "llvm-15":
        places.append(_DEBIAN / "amdgcn/bitcode")
    return next((path for path in places if path.is_dir()), None)


def hip_release():
    """Return the release of HIP, such as (6, 4)."""
    said = subprocess.run(("hipconfig", "--version"), stdout=subprocess.PIPE, text=True, check=True).stdout
    return tuple(map(int, said.split(".")[:2]))


def known():
    """Return the architectures that this HIP's clang compiles for, and that it has device libraries for."""
    command = (llvm() / "bin/clang", "--target=amdgcn-amd-amdhsa", "-nogpulib", "--print-supported-cpus")
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    libraries = bitcode(llvm()).glob("oclc_isa_version_*.bc")
    numbers = {path.stem.removeprefix("oclc_isa_version_") for path in libraries}
    return {name for name in re.findall(r"gfx[0-9a-f]+", said.stdout + said.stderr) if name[3:] in numbers}


def thrust(folder):
    """Return the folder with rocThrust's headers, which torch's headers include for HIP; None where none can be had.

    Debian 12 has none: those of Debian 13, the same for every architecture, are fetched from the mirror that this
    machine's apt is configured for, and unpacked aside.
    """
    named = (Path(os.environ.get("BUILDER_TEST_ROCTHRUST", "/nowhere")), Path("/usr/include"))
    found = next((path for path in named if (path / "rocprim").is_dir()), None)
    if found is None and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        found = _fetched(folder)
    return found


def _fetched(folder):
    """Fetch and unpack with an apt that has its own lists and needs no root."""
    targets = _output("apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)").splitlines()
    site = next((line.split()[1] for line in targets if line.startswith("bookworm ")), None)
    if site is None:
        return None
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {site} trixie main\n")
    paths = {"Etc::SourceList": folder / "sources.list", "State::Lists": folder / "lists", "Cache": folder / "cache"}
    options = [f"-oDir::{name}={path}" for name, path in {**paths, "Etc::SourceParts": "/dev/null"}.items()]
    options.append("-oAPT::Sandbox::User=")
    _output("apt-get", "-qq", *options, "update", cwd=folder)
    _output("apt-get", "-qq", *options, "download", "librocthrust-dev", "librocprim-dev", cwd=folder)
    packages = sorted(folder.glob("*.deb"))
    for package in packages:
        _output("dpkg-deb", "-x", package, folder / "root")
    return folder / "root/usr/include" if packages else None


def _output(*command, cwd=None):
    """Return what a tool prints; nothing when it fails: then there are no packages."""
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=False).stdout


def rocm_root(folder, thrust=None):
    """Return a folder shaped like /opt/rocm, made of links to Debian's packages."""
    root = folder / "rocm"
    clang = llvm()
    (root / "lib/cmake").mkdir(parents=True)
    (root / "amdgcn").mkdir()
    (root / "bin").mkdir()
    (root / "lib/llvm").symlink_to(clang)
    (root / "llvm").symlink_to(clang)
    (root / "amdgcn/bitcode").symlink_to(bitcode(clang))
    (root / "include").mkdir()
    if Path("/usr/share/hip/version").exists():  # clang takes an older HIP for granted where it finds none
        (root / "share/hip").mkdir(parents=True)
        (root / "share/hip/version").symlink_to("/usr/share/hip/version")
    for name in ("hip", "hsa"):
        (root / "include" / name).symlink_to(f"/usr/include/{name}")
    for name in ("thrust", "rocprim") if thrust is not None else ():
        (root / "include" / name).symlink_to(thrust / name)
    for name in ("hip", "hip-lang", "amd_comgr", "hsa-runtime64"):
        _cmake_package(root / "lib/cmake" / name)
    device = next(path for path in (clang / "lib/cmake", Path("/usr/lib/cmake")) if (path / "AMDDeviceLibs").is_dir())
    (root / "lib/cmake/AMDDeviceLibs").symlink_to(device / "AMDDeviceLibs")
    for name in LIBRARIES:
        config = root / "lib/cmake" / name
        config.mkdir()
        (config / f"{name}-config.cmake").write_text(f"set({name}_FOUND TRUE)\n")
    scripts = {name: f'#!/bin/sh\nexec /usr/bin/{name} "$@"\n' for name in ("hipcc", "hipconfig")}
    # It says that it is a release which the matrix has: a cell is built by the ROCm of its name alone.
    scripts["hipcc"] = scripts["hipcc"].replace("exec", f'[ "$*" = --version ] && {_SAYS}\nexec')
    # Debian's looks for clang++-15, which is not in the folder of LLVM: FindHIP.cmake takes what it says for an error.
    scripts["hipconfig"] = scripts["hipconfig"].replace("exec", "HIP_CLANG_PATH=/usr/bin exec")
    for name, text in scripts.items():
        script = root / "bin" / name
        script.write_text(text)
        script.chmod(0o755)
    return root


def _cmake_package(folder):
    """Make a CMake package that is Debian's: some ask for CMake 3.3, which CMake 4 refuses unless it is told, and some
    look for files by their own place.
    """
    folder.mkdir()
    own, config = _DEBIAN / "cmake" / folder.name, f"{folder.name}-config.cmake"
    for path in sorted(own.iterdir()):
        if path.name != config:
            (folder / path.name).symlink_to(path)
    lines = ("set(CMAKE_POLICY_VERSION_MINIMUM 3.5)", f'include("{own}/{config}")')
    (folder / config).write_text("".join(f"{line}\n" for line in lines))


def environment(folder, torch, thrust):
    """Return the Python of an environment with a ROCm torch, and the ROCm of it: `builder build --no-isolation`."""
    root = rocm_root(folder, thrust)
    target = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", target], check=True)
    (packages,) = target.glob("lib/python3.*/site-packages")
    rocm_torch(packages.parent, torch)
    # What torch imports is where the CPU torch is; that torch itself comes after this one.
    (packages / "imports.pth").write_text(f"{torch.parent}\n")
    return target / "bin/python", root


def rocm_torch(folder, torch, *, load_hip=None):
    """Return a hard-linked copy of a CPU torch that looks for ROCm as its ROCm builds do.

    Args:
        folder: Where the copy goes.
        torch: The folder of the CPU torch.
        load_hip: Another LoadHIP.cmake to take the place of its own: that of another release, or a stand-in.
    """
    copy = folder / "site-packages" / "torch"
    shutil.copytree(
        torch, copy, copy_function=_link, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "test")
    )
    config = copy / "share/cmake/Caffe2/Caffe2Config.cmake"
    text = config.read_text()
    changed = re.sub(r"if ?\(OFF\)(\s+include\(\"\$\{CMAKE_CURRENT_LIST_DIR\}/public/LoadHIP)", r"if(ON)\1", text)
    assert changed != text
    config.unlink()  # a hard link: the original must stay what it is
    config.write_text(changed + _TARGETS)
    if load_hip is not None:
        target = copy / "share/cmake/Caffe2/public/LoadHIP.cmake"
        target.unlink()
        target.write_text(load_hip)
    return copy


def add_headers_of_hip(torch):
    """Make a torch say that it is for ROCm, and add `c10/hip`: its `c10/cuda`, translated by its own hipify."""
    version = torch / "version.py"
    text = version.read_text()
    changed = re.sub(r"(?m)^(hip\b.*) = None$", r"\1 = '7.1'", text)
    assert changed != text
    version.unlink()  # a hard link
    version.write_text(changed)
    include = torch / "include"
    script = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from hipify.hipify_python import hipify
include = sys.argv[2]
files = [str(path) for path in Path(include, "c10/cuda").rglob("*.h")]
hipify(include, include, includes=[include + "/*"], extra_files=files, hipify_extra_files_only=True)
"""
    subprocess.run((sys.executable, "-c", script, torch / "utils", include), check=True, stdout=subprocess.DEVNULL)
    # CMake writes it when torch is built.
    macros = "#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n"
    (include / "c10/hip/impl/hip_cmake_macros.h").write_text(macros)


def _link(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
