"""Jobs of the kernel `tiny` on CUDA, whose tools are only named."""

from pathlib import Path

from builder import kernel
from builder.config import Backend, Framework, Version
from builder.make.framework import FrameworkIdentity
from builder.make.job import InstalledPackages, Job, Spec
from builder.matrix import Cell
from builder.render.project import Project
from builder.toolchain import Tool, Toolchain
from tests.given.kernels import TINY

CELL = Cell(
    variant="torch-stable-abi210-cu130-x86_64-linux",
    framework=Framework.TORCH,
    backend=Backend.CUDA,
    system="x86_64-linux",
    torch=Version("2.13"),
    toolkit="13.0",
    compute="cu130",
    stable_abi=Version("2.10"),
    tvm_ffi=None,
    bundle=True,
    set="release",
)


def tool(version="12", digest="0"):
    return Tool(path=Path("/usr/bin/true"), version=version, digest=digest)


def job(files=("a.cpp",), *, sources=None, nvcc=None, **values):
    """Return a job with files, which may be named alone, and with the trees of foreign `sources`."""
    texts = files if isinstance(files, dict) else dict.fromkeys(files, "")
    cuda = None if nvcc is None else tool(nvcc)
    installed = InstalledPackages(python=Path("/python"), site_packages=Path("/site-packages"))
    given = {
        "spec": Spec(kernel=TINY, cell=CELL, environment=installed, sources=sources or {}),
        "kernel": kernel.load(TINY),
        "project": Project({path: text.encode() for path, text in texts.items()}),
        "framework": FrameworkIdentity(name="torch", version="2.13.0"),
        "toolchain": Toolchain(cxx=tool(), cc=tool(), cuda=cuda),
    }
    return Job(**given | values)
