"""The grammar of variant names, and their systems."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from builder import toml
from builder.config.values import Backend, Framework, System, Version
from builder.resources import DATA

SYSTEMS = tuple(sorted(f"{cpu}-{os}" for cpu in System.cpus for os in System.oses))
"""The systems that a name can contain: more than cells are built for."""

_PREFIX = {backend: prefix for backend in Backend if (prefix := backend.facts.toolkit_prefix) is not None}
_COMPUTE = "|".join(
    f"{_PREFIX[backend]}[0-9]+" if backend in _PREFIX else backend.value
    for backend in Backend
    if backend.facts.components
)
_NAME = re.compile(
    r"(?:ctypes|(?P<framework>torch-stable-abi|torch|tvm-ffi)(?P<version>[0-9]{2,})(?P<cxx11>-cxx11)?)"
    rf"-(?P<compute>{_COMPUTE})-(?P<system>{System.pattern})(?:-(?P<python>cp[0-9]{{2,}}))?",
    re.ASCII,
)
_NAME_PREFIX = {"torch.stable": "torch-stable-abi", "tvmffi": "tvm-ffi"}
_LABEL_PREFIX = re.compile(r"^(?:torch\.stable(?=[0-9])|tvmffi(?=[0-9]))", re.ASCII)
_PLATFORM = re.compile(
    r"(?:(?P<linux>(?:many|musl)?linux)(?:[0-9]+|_[0-9]+_[0-9]+)?|(?P<darwin>macosx)_[0-9]+_[0-9]+|(?P<windows>win))"
    r"_(?P<cpu>x86_64|amd64|aarch64|arm64)",
    re.ASCII,
)
_CPU = {"amd64": "x86_64", "arm64": "aarch64"}


def compute_name(backend: Backend, toolkit: str | None) -> str:
    """Return the `<compute>` part: `cpu`, `metal`, `cu130`, `rocm72`, `xpu20253`.

    Raises:
        ValueError: the backend needs a toolkit.
    """
    if backend not in _PREFIX:
        return str(backend)
    if toolkit is None:
        raise ValueError(f"{backend} has toolkits; name one")
    major, minor = toolkit.split(".")[:2]
    return f"{_PREFIX[backend]}{major}{minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A parsed variant name; `str()` gives the name again."""

    framework: Framework
    version: Version | None = None
    """Version of torch, of the stable ABI or of tvm-ffi; None for noarch and for a plain library."""
    stable: bool = False
    backend: Backend
    compute: str
    system: str | None = None
    """`<cpu>-<os>`; None for noarch."""
    python: str | None = None
    """The only Python of the library, such as `cp312`; None if one library serves all."""

    @classmethod
    def parse(cls, name: str) -> "Variant":
        """Parse a variant name.

        Raises:
            ValueError: `name` is not a variant name.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            backend = next((each for each in Backend if name == each.facts.noarch_variant), None)
            if backend is None:
                examples = "'torch213-cxx11-cu130-x86_64-linux' or 'torch-cuda'"
                raise ValueError(f"{name!r} is not a variant name, such as {examples}")
            return cls(framework=Framework.TORCH_NOARCH, backend=backend, compute=backend.value)
        backend, compute, system = backend_of(match["compute"]), match["compute"], match["system"]
        if match["framework"] is None:
            if match["python"] or not backend.facts.ctypes:
                why = "a plain library serves every Python" if match["python"] else f"{backend} has no plain libraries"
                raise ValueError(f"{name!r}: {why}")
            return cls(framework=Framework.CTYPES, backend=backend, compute=compute, system=system)
        tvm_ffi = match["framework"] == "tvm-ffi"
        stable = match["framework"] == "torch-stable-abi"
        if bool(match["cxx11"]) != (not tvm_ffi and not stable and system.endswith("-linux")):
            raise ValueError(f"{name!r}: '-cxx11' belongs to the names of torch on linux, and only there")
        if match["python"] and (tvm_ffi or stable):
            raise ValueError(f"{name!r}: a Python belongs to the names of torch, and not to those of a stable ABI")
        digits = match["version"]
        return cls(
            framework=Framework.TVM_FFI if tvm_ffi else Framework.TORCH,
            version=Version(f"{digits[0]}.{digits[1:]}"),
            stable=stable,
            backend=backend,
            compute=compute,
            system=system,
            python=match["python"],
        )

    @classmethod
    def of_wheel(cls, label: str, platform: str, *, python: str | None = None) -> "Variant":
        """Return the variant of a wheel, from its version label and the platform and Python of a tag.

        Raises:
            ValueError: the label or the platform belongs to no variant.
        """
        name = _LABEL_PREFIX.sub(lambda found: _NAME_PREFIX[found[0]], label).replace(".", "-")
        suffix = "" if python is None else f"-{python}"
        variant = cls.parse(name if platform == "any" else f"{name}-{_system(platform)}{suffix}")
        if variant.label != label:
            raise ValueError(f"{label!r} is not the label of {variant}: that is {variant.label!r}")
        return variant

    @property
    def noarch(self) -> bool:
        """Whether the variant is pure Python."""
        return self.framework is Framework.TORCH_NOARCH

    @property
    def _words(self) -> tuple[str, ...]:
        """The words of its name before the system: `torch213`, `cxx11` and `cu130`."""
        if self.framework is Framework.CTYPES:
            return "ctypes", self.compute
        if self.version is None:
            return tuple(self.backend.facts.noarch_variant.split("-"))
        digits = f"{self.version.major}{self.version.minor}"
        if self.framework is Framework.TVM_FFI:
            return f"tvm-ffi{digits}", self.compute
        if self.stable:
            return f"torch-stable-abi{digits}", self.compute
        cxx11 = ("cxx11",) if self.system is not None and self.system.endswith("-linux") else ()
        return f"torch{digits}", *cxx11, self.compute

    @property
    def label(self) -> str:
        """The local version label of its wheels: `torch213.cxx11.cu130`, `torch.stable210.cu130`, `torch.cuda`."""
        label = ".".join(self._words)
        for prefix, name in _NAME_PREFIX.items():
            label = label.replace(name, prefix)
        return label

    def __str__(self) -> str:
        return "-".join((*self._words, *filter(None, (self.system, self.python))))


def fits(variant: Variant, *, torch: Version, compute: str) -> bool:
    """Whether a wheel of `variant` loads with `torch` built for `compute`; the system is ignored."""
    match variant.framework:
        case Framework.TORCH_NOARCH:
            return backend_of(compute) is variant.backend
        case Framework.TVM_FFI | Framework.CTYPES:
            return variant.compute == compute  # torch is not part of its ABI
        case Framework.TORCH:
            known = variant.version
            of_torch = known is None or (known <= torch if variant.stable else known == torch)
            return variant.compute == compute and of_torch


def python_of(interpreter: str, abi: str) -> str | None:
    """Return the only Python that a wheel's tags allow, such as `cp312` for `cp312-cp312`; None for several."""
    return interpreter if interpreter == abi and interpreter.startswith("cp") else None


def extension_suffix(python: str, platform: str) -> str:
    """Return the file suffix of a module for one Python, on the system of a platform tag.

    Raises:
        ValueError: the platform belongs to no system.
    """
    cpu, _, os = _system(platform).partition("-")
    place = "darwin" if os == "darwin" else f"{cpu}-linux-{'musl' if 'musl' in platform else 'gnu'}"
    return f".cpython-{python.removeprefix('cp')}-{place}.so"


def dotted(python: str) -> str:
    """Spell a Python tag as a version: `cp311` is `3.11`."""
    return re.sub(r"^cp(\d)(\d+)$", r"\1.\2", python)


def _system(platform: str) -> str:
    found = _PLATFORM.fullmatch(platform)
    if found is None:
        raise ValueError(f"{platform!r} is not a platform tag of {', '.join(SYSTEMS)}")
    os = next(name for name in System.oses if found[name] is not None)
    return f"{_CPU.get(found['cpu'], found['cpu'])}-{os}"


def backend_of(compute: str) -> Backend:
    """Return the backend of a `<compute>` part, such as CUDA for `cu130`.

    Raises:
        ValueError: no backend has this part.
    """
    letters = compute.rstrip("0123456789")
    return next((backend for backend, prefix in _PREFIX.items() if prefix == letters), None) or Backend(compute)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSystem:
    """A system for which cells are built."""

    platforms: re.Pattern[str]
    """Matches the platform tags of wheels for this system."""
    uv: str
    """The name of the system in uv."""
    triple: str | None = None
    """The prefix of GNU compilers for it; None if other systems cannot compile for it."""

    def runs(self, file: str) -> bool:
        """Whether a wheel with this file name can be installed there."""
        tags = file.removesuffix(".whl").rpartition("-")[2].split(".")
        return any(self.platforms.fullmatch(tag) for tag in tags)


@cache
def built_systems() -> Mapping[str, BuiltSystem]:
    """Return every system for which cells are built, by name."""
    tables = toml.loads((DATA / "systems.toml").read_text(encoding="utf-8"))
    return {
        name: BuiltSystem(platforms=re.compile(f"any|{given['platforms']}"), uv=given["uv"], triple=given.get("triple"))
        for name, given in tables.items()
    }
