"""One cell inside Nix's sandbox: the spec that Nix wrote becomes a wheel and its record in `out`."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from builder import kernel, render, terminal, toolchain
from builder.binary.manylinux import MANYLINUX
from builder.build import own_code, reproducible, sandbox
from builder.build.cell import build
from builder.build.framework import torch_identity, tvm_ffi_identity
from builder.build.job import Beside, Job
from builder.build.loadtest.beside import found
from builder.build.record import BuildRecord, file_digests
from builder.config import Backend, Framework, LoadTestRule, Version
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.pins import PinSet, Wheel, dotted
from builder.toolchain import cuda_wheels
from builder.wheel.archive import EPOCH
from builder.wheel.options import WheelOptions

RECORD = "record.json"
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders that every build has on its PATH."""
_SANDBOX = Path("/build")
"""Where Nix's sandbox builds; without one it is somewhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What Nix decided, as `builder/nix/cells.nix` writes it."""

    kernel: Path
    environment: Path
    cell: Cell
    pins: PinSet
    wheel_version: str | None = None
    label: bool = True
    policy: str = MANYLINUX
    unique_id: str | None = None
    allow_unsafe_flags: bool = False
    epoch: int = EPOCH
    load_test: LoadTestRule | None = None
    """None leaves it to build.toml."""
    beside: Path | None = None
    """The environment of the load test beside that of the build."""
    beside_wheels: tuple[Wheel, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    """Folders of headers that Nix fetched, by the CMake variable that names each."""

    @classmethod
    def read(cls, text: str) -> "Spec":
        """Read a spec.

        Raises:
            BuilderError: an option is not one that a build can have.
        """
        table = json.loads(text)
        pins = table["pins"]
        wheels = tuple(Wheel(**wheel) for wheel in pins["wheels"])
        options = {name.replace("-", "_"): value for name, value in table["options"].items()}
        rule, beside = options.pop("load_test", None), table.get("beside")
        if "epoch" in options:
            options["epoch"] = reproducible.checked_epoch(str(options["epoch"]), name="the option 'epoch'")
        return cls(
            kernel=Path(table["kernel"]),
            environment=Path(table["environment"]),
            cell=_cell(table["cell"]),
            pins=PinSet(pins["python"], pins["system"], wheels),
            headers=table["headers"],
            load_test=None if rule is None else LoadTestRule(rule),
            beside=None if beside is None else Path(beside["environment"]),
            beside_wheels=() if beside is None else tuple(Wheel(**wheel) for wheel in beside["wheels"]),
            **options,
        )

    @property
    def site_packages(self) -> Path:
        """Where the wheels of the environment are."""
        return self._packages(self.environment)

    def _packages(self, environment: Path) -> Path:
        return environment / "lib" / f"python{dotted(self.pins.python)}" / "site-packages"

    def beside_of(self, loaded: Kernel) -> Beside:
        """Return what the load test finds beside the framework; other kernels are not at hand in a sandbox."""
        return found(
            loaded,
            self.cell,
            wheels=(*self.pins.wheels, *self.beside_wheels),
            folders=() if self.beside is None else (self._packages(self.beside),),
            why=f"is not pinned for Python {dotted(self.pins.python)} on {self.cell.system}",
        )


def _cell(table: Mapping[str, Any]) -> Cell:
    stable, tvm_ffi = table["stable-abi"], table["tvm-ffi"]
    return Cell(
        variant=table["variant"],
        framework=Framework(table["framework"]),
        backend=Backend(table["backend"]),
        system=table["system"],
        torch=Version(table["torch"]),
        toolkit=table["toolkit"],
        compute=table["compute"],
        stable_abi=None if stable is None else Version(stable),
        tvm_ffi=None if tvm_ffi is None else Version(tvm_ffi),
        bundle=table["bundle"],
        set=table["set"],
    )


def main(environ: Mapping[str, str]) -> int:
    """Build the cell of the variable `spec`; return the exit code."""
    try:
        _build(Spec.read(environ["spec"]), environ)
    except BuilderError as error:
        terminal.err(f"error: {error}")
        return error.exit_code
    return 0


def _build(spec: Spec, environ: Mapping[str, str]) -> None:
    scratch = _scratch(spec)
    job, record = _job(spec, environ)
    job = replace(job, at_canonical_path=scratch == sandbox.CANONICAL)
    built = build(job, scratch=scratch, log=Path.cwd() / "log", listen=_say)
    sandboxed = Path.cwd().is_relative_to(_SANDBOX)
    out = Path(environ["out"])
    out.mkdir()
    (out / built.name).write_bytes(built.content)
    table = {"wheel": built.name, "record": asdict(record), "report": built.report.lasting(), "sandbox": sandboxed}
    (out / RECORD).write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _scratch(spec: Spec) -> Path:
    """Return the directory to build in: one that is mounted at the canonical path, or that path itself."""
    if sandbox.available():
        path = Path.cwd() / "scratch"
        path.mkdir()
        return path
    # No mounts in this sandbox, but the path is free in it: the build is put there as it stands.
    if sandbox.CANONICAL.exists() and any(sandbox.CANONICAL.iterdir()):
        raise BuilderError(
            f"'{sandbox.CANONICAL}' is not empty, and this build can mount nothing on it",
            help="build in Nix's sandbox (sandbox = true), or allow user namespaces",
        )
    sandbox.CANONICAL.mkdir(exist_ok=True)
    # A copy and no link: compilers that look where they really are must not see another path.
    shutil.copytree(spec.environment, sandbox.CANONICAL / "env", symlinks=True)
    return sandbox.CANONICAL


def _job(spec: Spec, environ: Mapping[str, str]) -> tuple[Job, BuildRecord]:
    loaded = kernel.load(spec.kernel)
    cell = spec.cell
    python = spec.environment / "bin/python"
    root = cuda_wheels.cuda_root(spec.site_packages) if cell.backend is Backend.CUDA else None
    variables = {"PATH": environ["PATH"], "CCACHE_DISABLE": "1"}
    variables |= {
        name: environ[name] for name in ("CC", "CXX", "CUDA_HOME", "ROCM_PATH", "ONEAPI_ROOT") if name in environ
    }
    tools = (
        None
        if cell.noarch
        else toolchain.find(cell.backend, environ=variables, toolkit=cell.toolkit, toolkit_root=root)
    )
    read = tvm_ffi_identity if cell.framework is Framework.TVM_FFI else torch_identity
    framework = read(spec.site_packages)
    project = render.render(loaded, cell.backend, unique_id=spec.unique_id, allow_unsafe_flags=spec.allow_unsafe_flags)
    job = Job(
        kernel=loaded,
        cell=cell,
        project=project,
        environment=spec.environment,
        site_packages=spec.site_packages,
        frontend=python,
        framework_version=framework.version,
        toolchain=tools,
        toolkit_root=root,
        headers={name: Path(folder) for name, folder in spec.headers.items()},
        test_python=python,
        load_test=spec.load_test or loaded.config.load_test,
        beside=spec.beside_of(loaded),
        wheel=WheelOptions(version=spec.wheel_version, label=spec.label, policy=spec.policy),
        epoch=spec.epoch,
        pins=spec.pins.digest,
        enclosed=True,
        cores=int(environ.get("NIX_BUILD_CORES", "0")) or None,
        environ=variables,
        path=tuple(Path(folder) for folder in environ["PATH"].split(os.pathsep) if folder not in _SYSTEM),
    )
    record = BuildRecord(
        builder=own_code.identity(),
        variant=cell.variant,
        wheel={"version": spec.wheel_version or "", "label": str(spec.label), "policy": spec.policy},
        project=file_digests(project.files),
        framework=asdict(framework),
        pins=spec.pins.digest,
        toolchain={} if tools is None else tools.identity,
        environment={"SOURCE_DATE_EPOCH": str(spec.epoch)},
    )
    return job, record


def _say(text: str) -> None:
    terminal.out(text)
