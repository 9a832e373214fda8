"""Stand in for torch and setuptools: answer what a setup.py asks of the machine, and note the extensions it makes."""

import fnmatch
import os
import types
from collections.abc import Mapping, Sequence
from typing import Any

from .notes import Anything, Fill, Notes, anything

_KINDS = ("CppExtension", "CUDAExtension", "SyclExtension")


class TorchVersion(str):
    """A version that is a text, and compares as numbers do."""

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


def torch_modules(facts: Mapping[str, Any], notes: Notes) -> dict[str, Fill]:
    """Return a function that fills each module of the stand-in; `facts` are the facts of one setting."""

    def torch(module: types.ModuleType) -> None:
        module.__path__ = [facts["torch_folder"]]
        module.__file__ = os.path.join(facts["torch_folder"], "__init__.py")
        _set(module, __version__=TorchVersion(facts["torch"]), version=_version(facts), cuda=_cuda(facts))
        _set(module, _C=_namespace(_GLIBCXX_USE_CXX11_ABI=True, _has_cuda=facts["cuda"] is not None))
        _set(module, __config__=_namespace(parallel_info=lambda: _PARALLEL, show=lambda: _PARALLEL))
        _set(module, compiled_with_cxx11_abi=lambda: True, has_cuda=facts["cuda"] is not None)
        _set(module, xpu=_absent(), mps=_absent(), backends=_namespace(mps=_absent(), cuda=_absent(), cudnn=_absent()))
        _set(module, utils=__import__("torch.utils", fromlist=["utils"]), get_num_threads=lambda: 1)

    def utils(module: types.ModuleType) -> None:
        _set(module, cpp_extension=__import__("torch.utils.cpp_extension", fromlist=["cpp_extension"]))

    def version(module: types.ModuleType) -> None:
        _set(module, **vars(_version(facts)))

    def hipify(module: types.ModuleType) -> None:
        _set(module, __version__="1.0.0", hipify_python=anything("torch.utils.hipify.hipify_python"))

    return {
        "torch": torch,
        "torch.version": version,
        "torch.cuda": lambda module: _set(module, **vars(_cuda(facts))),
        "torch.torch_version": lambda module: _set(module, TorchVersion=TorchVersion),
        "torch.utils": utils,
        "torch.utils.hipify": hipify,
        "torch.utils.hipify.hipify_python": lambda module: _set(module, hipify=anything("hipify")),
        "torch.utils.cpp_extension": lambda module: _cpp_extension(module, facts, notes),
    }


_PARALLEL = "ATen/Parallel:\n\tat::get_num_threads() : 1\nOpenMP 201511\nATen parallel backend: OpenMP\n"


def _set(module: types.ModuleType, **values: object) -> None:
    for name, value in values.items():
        setattr(module, name, value)


def _namespace(**values: object) -> types.SimpleNamespace:
    return types.SimpleNamespace(**values)


def _absent() -> types.SimpleNamespace:
    return _namespace(is_available=lambda: False, is_built=lambda: False, device_count=lambda: 0, version=lambda: None)


def _version(facts: Mapping[str, Any]) -> types.SimpleNamespace:
    return _namespace(
        __version__=TorchVersion(facts["torch"]),
        cuda=facts["cuda"],
        hip=facts["hip"],
        xpu=None,
        debug=False,
        git_version="0" * 40,
    )


def _cuda(facts: Mapping[str, Any]) -> types.SimpleNamespace:
    gpu = tuple(facts["gpu"]) if facts["gpu"] else None

    def capability(_device: object = None) -> tuple[int, ...]:
        if gpu is None:
            raise RuntimeError("no GPU is here: setup.py asks for the capability of one")
        return gpu

    def properties(device: object = None) -> types.SimpleNamespace:
        major, minor = capability(device)
        return _namespace(major=major, minor=minor, name="recorded", gcnArchName="gfx942", multi_processor_count=132)

    return _namespace(
        is_available=lambda: gpu is not None,
        device_count=lambda: int(gpu is not None),
        current_device=lambda: 0,
        get_device_capability=capability,
        get_device_properties=properties,
        get_device_name=lambda _device=None: "recorded",
        get_arch_list=list,
        get_gencode_flags=str,
        init=lambda: None,
    )


def _cpp_extension(module: types.ModuleType, facts: Mapping[str, Any], notes: Notes) -> None:
    cuda_home, rocm_home = facts["cuda_home"], facts["rocm_home"]
    folder = facts["torch_folder"]

    def include_paths(*_: object, **__: object) -> list[str]:
        own = [f"{folder}/include", f"{folder}/include/torch/csrc/api/include"]
        return own + [f"{home}/include" for home in (cuda_home, rocm_home) if home]

    def load(name: str, sources: Any, *_: object, **options: Any) -> Any:
        flags = {"cxx": options.get("extra_cflags"), "nvcc": options.get("extra_cuda_cflags")}
        kind = "CUDAExtension" if cuda_home else "CppExtension"
        folders = options.get("extra_include_paths")
        extension_class(kind, notes)(name, sources, extra_compile_args=flags, include_dirs=folders)
        return anything(name)

    _set(module, **{kind: extension_class(kind, notes) for kind in _KINDS})
    _set(module, BuildExtension=_BuildExtension, include_paths=include_paths, load=load)
    _set(module, CUDA_HOME=cuda_home, ROCM_HOME=rocm_home, HIP_HOME=rocm_home, CUDNN_HOME=None, SYCL_HOME=None)
    _set(module, IS_HIP_EXTENSION=rocm_home is not None, ROCM_VERSION=(7, 2) if rocm_home else None)
    _set(module, IS_WINDOWS=False, IS_MACOS=False, IS_LINUX=True, TORCH_LIB_PATH=f"{folder}/lib")
    _set(module, COMMON_NVCC_FLAGS=list(facts["nvcc_flags"]), COMMON_HIP_FLAGS=list(facts["hip_flags"]))
    _set(module, COMMON_HIPCC_FLAGS=list(facts["hip_flags"]), LIB_EXT=".so", EXEC_EXT="", SUBPROCESS_DECODE_ARGS=())
    _set(module, library_paths=lambda *_, **__: [f"{folder}/lib"], is_ninja_available=lambda: True)
    _set(module, verify_ninja_availability=lambda: None, _find_cuda_home=lambda: cuda_home)
    _set(module, _find_rocm_home=lambda: rocm_home, _get_build_directory=lambda name, *_, **__: f"/tmp/{name}")  # noqa: S108
    _set(module, _get_cuda_arch_flags=lambda *_: [], check_compiler_abi_compatibility=lambda *_: True)
    _set(module, get_default_build_root=lambda: "/tmp", _TORCH_PATH=folder, get_cxx_compiler=lambda: "c++")  # noqa: S108
    _set(module, _is_cuda_file=lambda path: str(path).endswith((".cu", ".cuh")), os=os)


class _BuildExtension:
    """The command that would compile; nothing runs it."""

    def __init__(self, *_args: object, **_options: object) -> None:
        pass

    @classmethod
    def with_options(cls, **_options: object) -> type:
        return cls


_BY_POSITION = ("include_dirs", "define_macros", "undef_macros", "library_dirs", "libraries")
"""Options that setuptools takes by position, too."""
_LISTS_OF_EXTENSION = (*_BY_POSITION, "runtime_library_dirs", "extra_objects", "extra_link_args", "depends")


class Noted:
    """An extension that was noted; what is changed in it later counts."""

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
    """Return a class of that name that notes its instances; projects derive theirs from setuptools' `Extension`."""

    class Extension(Noted):
        def __init__(self, name: str, sources: Any = (), *args: object, **options: Any) -> None:
            super().__init__(notes, name, sources, {**dict(zip(_BY_POSITION, args, strict=False)), **options})

    Extension.__name__ = Extension.__qualname__ = kind
    return Extension


PRETENDED = ("setuptools", "distutils", "wheel", "pkg_resources", "setuptools_scm", "versioneer")


def setuptools_modules(notes: Notes) -> dict[str, Fill]:
    """Return a function that fills each module of setuptools that has more to say than a pretended one."""

    def fill(module: types.ModuleType) -> None:
        module.__dict__.update(
            setup=lambda **options: _setup(notes, options),
            find_packages=find_packages,
            find_namespace_packages=lambda where=".", exclude=(), include=("*",): find_packages(
                where, exclude, include, namespaces=True
            ),
            Extension=extension_class("Extension", notes),
            __version__="80.0.0",
        )

    names = ("setuptools", "setuptools.extension", "distutils.core", "distutils.extension", "setuptools.discovery")
    return dict.fromkeys(names, fill)


_TEXTS = ("name", "version", "license", "url", "python_requires", "long_description", "license_expression")
_NO_KEY = ("data_files", "entry_points", "extras_require", "project_urls", "scripts")
_LISTS = ("packages", "install_requires", "classifiers", "py_modules", "setup_requires")


def _setup(notes: Notes, options: dict[str, Any]) -> None:
    if notes.setup is not None:
        return
    lists = {name: [str(each) for each in _listed(options.get(name))] for name in _LISTS}
    lists["no_key"] = [name for name in _NO_KEY if options.get(name)]
    lists["commands"] = sorted(str(name) for name in options.get("cmdclass") or {})
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
