"""Stand-ins for torch and setuptools: they describe the pretended machine, and note the extensions."""

import fnmatch
import functools
import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from .notes import Anything, Notes, anything

_KINDS = ("CppExtension", "CUDAExtension", "SyclExtension")


class TorchVersion(str):
    """A version that is a text, but compares by number."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: object) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: object) -> bool:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: object) -> bool:
        return _numbers(self) >= _numbers(other)


def _numbers(value: object) -> tuple[int, ...]:
    parts = value if isinstance(value, tuple | list) else str(value).partition("+")[0].split(".")
    return tuple(int(part) if str(part).isdigit() else 0 for part in parts)


_PARALLEL = "ATen/Parallel:\n\tat::get_num_threads() : 1\nOpenMP 201511\nATen parallel backend: OpenMP\n"


def torch_modules(facts: Mapping[str, Any], notes: Notes) -> dict[str, Mapping[str, Any]]:
    """Return the content of each stand-in module of torch; `facts` describe the pretended machine."""
    no, none = (lambda: False), (lambda: None)
    absent = SimpleNamespace(is_available=no, is_built=no, device_count=lambda: 0, version=none)
    has_cuda, on_gpu = facts["cuda"] is not None, bool(facts["gpus"])
    cuda = SimpleNamespace(is_built=lambda: has_cuda, is_available=lambda: has_cuda and on_gpu)
    cudnn = SimpleNamespace(is_available=lambda: has_cuda, version=lambda: facts["cudnn"] if has_cuda else None)
    torch = {
        "__path__": [facts["torch_folder"]],
        "__file__": os.path.join(facts["torch_folder"], "__init__.py"),
        "__version__": TorchVersion(facts["torch"]),
        "compiled_with_cxx11_abi": lambda: True,
        "has_cuda": has_cuda,
        "xpu": absent,
        "mps": absent,
        "get_num_threads": lambda: 1,
    }
    version = {"__version__": torch["__version__"], "cuda": facts["cuda"], "hip": facts["hip"], "xpu": None}
    hipify = {"__version__": "1.0.0", "hipify_python": anything("torch.utils.hipify.hipify_python")}
    return {
        "torch": torch,
        "torch._C": {"_GLIBCXX_USE_CXX11_ABI": True, "_has_cuda": has_cuda, "_parallel_info": lambda: _PARALLEL},
        "torch.__config__": {"parallel_info": lambda: _PARALLEL, "show": lambda: _PARALLEL},
        "torch.backends": {"mps": absent, "cuda": cuda, "cudnn": cudnn},
        "torch.version": {**version, "debug": False, "git_version": "0" * 40},
        "torch.cuda": _cuda([tuple(each) for each in facts["gpus"]], facts["arch_list"]),
        "torch.torch_version": {"TorchVersion": TorchVersion},
        "torch.utils": {},
        "torch.utils.hipify": hipify,
        "torch.utils.hipify.hipify_python": {"hipify": anything("hipify")},
        "torch.utils.cpp_extension": _cpp_extension(facts, notes),
    }


def _cuda(gpus: Sequence[tuple[int, ...]], architectures: Sequence[str]) -> Mapping[str, Any]:
    def capability(device: object = None) -> tuple[int, ...]:
        if not gpus:
            raise RuntimeError("no GPU is here: setup.py asks for the capability of one")
        return gpus[device if isinstance(device, int) and 0 <= device < len(gpus) else 0]

    def properties(device: object = None) -> SimpleNamespace:
        found = SimpleNamespace(name="recorded", gcnArchName="gfx942", multi_processor_count=132)
        found.major, found.minor = capability(device)
        return found

    return {
        "is_available": lambda: bool(gpus),
        "device_count": lambda: len(gpus),
        "current_device": lambda: 0,
        "get_device_capability": capability,
        "get_device_properties": properties,
        "get_device_name": lambda _device=None: "recorded",
        "get_arch_list": lambda: list(architectures) if gpus else [],
        "get_gencode_flags": str,
        "init": lambda: None,
    }


def _cpp_extension(facts: Mapping[str, Any], notes: Notes) -> Mapping[str, Any]:
    cuda_home, rocm_home, folder = facts["cuda_home"], facts["rocm_home"], facts["torch_folder"]

    def include_paths(*_: object, **__: object) -> list[str]:
        own = [f"{folder}/include", f"{folder}/include/torch/csrc/api/include"]
        return own + [f"{home}/include" for home in (cuda_home, rocm_home) if home]

    def load(name: str, sources: Any, *_: object, **options: Any) -> Any:
        flags = {"cxx": options.get("extra_cflags"), "nvcc": options.get("extra_cuda_cflags")}
        kind = "CUDAExtension" if cuda_home else "CppExtension"
        folders = options.get("extra_include_paths")
        extension_class(kind, notes)(name, sources, extra_compile_args=flags, include_dirs=folders)
        return anything(name)

    return {
        **{kind: extension_class(kind, notes) for kind in _KINDS},
        "BuildExtension": _BuildExtension,
        "CUDA_HOME": cuda_home,
        "CUDNN_HOME": None,
        "ROCM_HOME": rocm_home,
        "HIP_HOME": rocm_home,
        "SYCL_HOME": None,
        "ROCM_VERSION": (7, 2) if rocm_home else None,
        "IS_HIP_EXTENSION": rocm_home is not None,
        "IS_WINDOWS": False,
        "IS_MACOS": False,
        "IS_LINUX": True,
        "COMMON_NVCC_FLAGS": list(facts["nvcc_flags"]),
        "COMMON_HIP_FLAGS": list(facts["hip_flags"]),
        "COMMON_HIPCC_FLAGS": list(facts["hip_flags"]),
        "SUBPROCESS_DECODE_ARGS": (),
        "LIB_EXT": ".so",
        "EXEC_EXT": "",
        "TORCH_LIB_PATH": f"{folder}/lib",
        "_TORCH_PATH": folder,
        "include_paths": include_paths,
        "library_paths": lambda *_, **__: [f"{folder}/lib"],
        "load": load,
        "is_ninja_available": lambda: True,
        "verify_ninja_availability": lambda: None,
        "check_compiler_abi_compatibility": lambda *_: True,
        "get_cxx_compiler": lambda: "c++",
        "get_default_build_root": lambda: "/tmp",  # noqa: S108
        "_get_build_directory": lambda name, *_, **__: f"/tmp/{name}",  # noqa: S108
        "_get_cuda_arch_flags": lambda *_: [],
        "_find_cuda_home": lambda: cuda_home,
        "_find_rocm_home": lambda: rocm_home,
        "_is_cuda_file": lambda path: str(path).endswith((".cu", ".cuh")),
        "os": os,
    }


class _BuildExtension:
    """The command that would compile; it is never run."""

    def __init__(self, *_args: object, **_options: object) -> None:
        pass

    @classmethod
    def with_options(cls, **_options: object) -> type:
        return cls


_BY_POSITION = ("include_dirs", "define_macros", "undef_macros", "library_dirs", "libraries")
"""Options that setuptools also accepts by position."""
_LISTS_OF_EXTENSION = (*_BY_POSITION, "runtime_library_dirs", "extra_objects", "extra_link_args", "depends")


class Noted:
    """A noted extension; later changes to it count."""

    define_macros: Any
    extra_link_args: Any

    def __init__(self, notes: Notes, name: str, sources: Any, given: Mapping[str, Any]) -> None:
        self.name, self.kind, self.place = name, type(self).__name__, notes.place()
        self.sources = sources if isinstance(sources, str) else list(sources or ())
        for option in _LISTS_OF_EXTENSION:
            setattr(self, option, given.get(option) or [])
        self.extra_compile_args = given.get("extra_compile_args") or {}
        self.py_limited_api = bool(given.get("py_limited_api"))
        self.language, self.optional = given.get("language"), given.get("optional")
        notes.extensions.append(self)


def extension_class(kind: str, notes: Notes) -> type:
    """Return a class with this name that notes its instances; projects subclass setuptools' `Extension`."""

    class Extension(Noted):
        def __init__(self, name: str, sources: Any = (), *args: object, **options: Any) -> None:
            super().__init__(notes, name, sources, {**dict(zip(_BY_POSITION, args, strict=False)), **options})

    Extension.__name__ = Extension.__qualname__ = kind
    return Extension


PRETENDED = ("setuptools", "distutils", "wheel", "pkg_resources", "setuptools_scm", "versioneer")


def setuptools_modules(notes: Notes) -> dict[str, Mapping[str, Any]]:
    """Return the real content of setuptools' stand-in modules."""
    own = {
        "setup": lambda **options: _setup(notes, options),
        "find_packages": find_packages,
        "find_namespace_packages": functools.partial(find_packages, namespaces=True),
        "Extension": extension_class("Extension", notes),
        "__version__": "80.0.0",
    }
    names = ("setuptools", "setuptools.extension", "distutils.core", "distutils.extension", "setuptools.discovery")
    return dict.fromkeys(names, own)


_TEXTS = ("name", "version", "license", "url", "python_requires", "long_description", "license_expression")
_NO_KEY = ("data_files", "entry_points", "extras_require", "project_urls", "scripts")
_LISTS = ("packages", "install_requires")


def _setup(notes: Notes, options: dict[str, Any]) -> None:
    if notes.setup is not None:
        return
    lists = {name: [str(each) for each in _listed(options.get(name))] for name in _LISTS}
    lists["no_key"] = [name for name in _NO_KEY if options.get(name)]
    folders, data = options.get("package_dir") or {}, options.get("package_data") or {}
    notes.setup = {
        "at": notes.place(),
        "texts": {name: str(options[name]) for name in _TEXTS if options.get(name)},
        "lists": lists,
        "package-dir": {str(name): str(folder) for name, folder in folders.items()},
        "package-data": {str(name): [str(each) for each in _listed(globs)] for name, globs in data.items()},
        "passed": [id(each) for each in options.get("ext_modules") or () if isinstance(each, Noted)],
    }


def _listed(value: object) -> Sequence[object]:
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


def find_packages(
    where: str = ".",
    exclude: Sequence[str] = (),
    include: Sequence[str] = ("*",),
    *,
    namespaces: bool = False,
) -> list[str]:
    """Return the packages below a folder, sorted, as setuptools finds them."""
    found = []
    for folder, names, files in os.walk(where, followlinks=True):
        names[:] = sorted(name for name in names if name.isidentifier())
        relative = os.path.relpath(folder, where)
        if relative == ".":
            continue
        if "__init__.py" not in files and not namespaces:
            names[:] = []
            continue
        name = relative.replace(os.sep, ".")
        if _matches(name, include) and not _matches(name, exclude):
            found.append(name)
    return sorted(found)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not isinstance(patterns, Anything) and any(fnmatch.fnmatchcase(name, str(pattern)) for pattern in patterns)
