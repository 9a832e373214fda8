"""Rules between the tables of a config, which no single table can check."""

from collections.abc import Iterator

from builder.config import sources
from builder.config.conditions import When
from builder.config.gpus import code_of
from builder.config.source_tables import CudaComponent
from builder.config.sources import SourceName, foreign_path, require_path
from builder.config.text import KeyPath
from builder.config.v5 import Config, FunctionBudget, Require
from builder.config.values import Backend, CudaCapability, Framework, InvalidValueError, RocmArch
from builder.config.wheel_values import PackageRequirement, WheelVersion
from builder.wording import listed, nearest, quoted

_ALL = 100
"""Percent."""


def check(config: Config) -> Iterator[InvalidValueError]:
    """Yield the violations of rules, with their places."""
    if config.sources:
        yield from _foreign(config)
    if config.generate:
        yield from _generated(config)
    yield from _extensions(config)
    yield from _wheel(config)
    if config.ctypes is not None:
        yield from _plain_library(config)
    for name, part in config.kernel.items():
        if isinstance(part, CudaComponent) and part.cuda_capabilities is not None:
            yield from _code_of_one_gpu(("kernel", name, "cuda-capabilities"), part.cuda_capabilities)
        if part.when is not None:
            yield from _condition(config, ("kernel", name, "when"), (part.backend,), part.when)
    for key, extension in config.extension.items():
        backends = tuple(dict.fromkeys(part.backend for part in config.kernel.values() if part.extension == key))
        if extension.when is not None and backends:
            yield from _condition(config, ("extension", key, "when"), backends, extension.when)


def _code_of_one_gpu(path: KeyPath, names: tuple[str, ...]) -> Iterator[InvalidValueError]:
    """Refuse pairs if another entry makes code for the same GPU: no loader promises which code it takes."""
    first: dict[tuple[str, bool], str] = {}
    for number, name in enumerate(names):
        code = code_of(name)
        other = first.setdefault(code.place, name)
        if code.name != code_of(other).name and ":" in code.name + code_of(other).name:
            message = f"{quoted(name)} and {quoted(other)} are both code for {code.gpu}"
            yield InvalidValueError(message, code="B067", path=(*path, number), help="remove one of the two")


def _wheel(config: Config) -> Iterator[InvalidValueError]:
    """Refuse a version that is not of the kernel's API, and a second requirement of the framework."""
    version, major = config.wheel.version, config.general.version
    if version is not None and version.major != major:
        message = f"{quoted(version)} does not fit general.version = {major}"
        remedy = f"write a version that begins with {major}, or change general.version"
        yield InvalidValueError(message, code=WheelVersion.code, path=("wheel", "version"), help=remedy)
    yield from _require(config)
    framework = "apache-tvm-ffi" if config.framework is Framework.TVM_FFI else "torch"
    for number, requirement in enumerate(() if config.ctypes is not None else config.wheel.requires):
        if requirement.package == framework:
            message = f"{quoted(requirement)} is required anyway"
            remedy = f"leave it out: the wheel requires the '{framework}' that it was built with"
            path: KeyPath = ("wheel", "requires", number)
            yield InvalidValueError(message, code=PackageRequirement.code, path=path, help=remedy)


def _require(config: Config) -> Iterator[InvalidValueError]:
    """Refuse GPUs of no wheel, and more than all waves."""
    tables: list[tuple[KeyPath, Require | FunctionBudget]] = [(("require",), config.require)]
    tables += [(("require", "functions", number), each) for number, each in enumerate(config.require.functions)]
    for path, table in tables:
        for number, name in enumerate(table.gpus):
            backend = name.gpu.backend
            if not config.components(backend):
                message = f"{quoted(name)} is a GPU of {backend.facts.title}, for which the kernel has no component"
                remedy = f"remove it, or add a component of '{backend}'"
                yield InvalidValueError(message, code="B065", path=(*path, "gpus", number), help=remedy)
        if (table.min_occupancy or 0) > _ALL:
            message = f"'min-occupancy' must be an integer from 0 to {_ALL}, found {table.min_occupancy}"
            yield InvalidValueError(message, code="B012", path=(*path, "min-occupancy"), help="it is a percentage")


def _extensions(config: Config) -> Iterator[InvalidValueError]:
    """Refuse extensions that cannot have a library, and components of missing extensions."""
    named = {part.extension for part in config.kernel.values()}
    for name in config.extension:
        path: KeyPath = ("extension", name)
        if config.torch is None:
            message = "extensions bind to PyTorch, and this config has no [torch]"
            yield InvalidValueError(message, code="B044", path=path, help="make another kernel of it")
        elif name == config.general.name.module:
            message = f"'{name}' is the module of the kernel itself"
            yield InvalidValueError(message, code="B044", path=path, help="give the extension another name")
        elif name not in named:
            message = f"no component belongs to the extension '{name}'"
            remedy = f'write extension = "{name}" in a [kernel.<name>], or remove the table'
            yield InvalidValueError(message, code="B044", path=path, help=remedy)
    for key, part in config.kernel.items():
        path = ("kernel", key, "extension")
        if part.extension is None:
            continue
        if part.extension not in config.extension:
            guess = nearest(part.extension, config.extension)
            there = listed(sorted(config.extension))
            others = f"there are {there}" if there else f"write [extension.{part.extension}]"
            message = f"there is no [extension.{part.extension}]"
            remedy = f"did you mean '{guess}'?" if guess else others
            yield InvalidValueError(message, code="B044", path=path, help=remedy)
        elif all(each.extension is not None for each in config.components(part.backend).values()):
            message = f"every component of '{part.backend}' is of an extension, and the main library has none"
            remedy = "leave 'extension' out of one: the library of [torch] is built as well"
            yield InvalidValueError(message, code="B044", path=path, help=remedy)


def _condition(config: Config, path: KeyPath, backends: tuple[Backend, ...], when: When) -> Iterator[InvalidValueError]:
    """Refuse entries that can never hold for some of the backends."""
    other = next((backend for backend in backends if backend is not Backend.CUDA), None)
    if when.cuda is not None and other is not None:
        remedy = "remove it" if len(backends) == 1 else "remove it, or give the condition to components of CUDA"
        message = f"'cuda' never holds in a component of '{other}'"
        yield InvalidValueError(message, code="B042", path=(*path, "cuda"), help=remedy)
    if when.torch is not None and config.torch is None:
        message = "'torch' never holds in a kernel that is built without torch"
        yield InvalidValueError(message, code="B042", path=(*path, "torch"), help="remove it")
    kinds = {Backend.CUDA: CudaCapability, Backend.ROCM: RocmArch}
    named = "' or '".join(backends)
    for arch in when.archs:
        if not any(backend in kinds and kinds[backend].matches(arch) for backend in backends):
            message = f"'{arch}' never holds in a component of '{named}'"
            remedy = "write one of its architectures" if kinds.keys() & set(backends) else "remove it"
            yield InvalidValueError(message, code="B042", path=(*path, "arch"), help=remedy)


def _generated(config: Config) -> Iterator[InvalidValueError]:
    """Refuse steps that cannot run or that nothing needs; their scripts and inputs must be files of the kernel."""
    src, include = ([entry for _, entry in config.entries(key)] for key in ("src", "include"))
    yield from sources.check_steps(config.generate, src=src, include=include)
    for number, step in enumerate(config.generate):
        place: KeyPath = ("generate", number)
        files = {(*place, "script"): step.script}
        files |= {(*place, "inputs", index): entry for index, entry in enumerate(step.inputs)}
        files |= {(*place, "outputs", index): entry for index, entry in enumerate(step.outputs)}
        for path, entry in files.items():
            if foreign_path(entry, config.sources) is not None:
                message = f"{quoted(entry)} is of a foreign source, and a step has files of the kernel alone"
                yield InvalidValueError(message, code="B058", path=path, help="copy it into the kernel")


def _foreign(config: Config) -> Iterator[InvalidValueError]:
    """Refuse entries with an unknown foreign source, or with an invalid path in one."""
    for path, entry in config.entries("src", "include"):
        found = foreign_path(entry, config.sources)
        name, colon, _ = entry.partition(":")
        if found is None and colon and SourceName.matches(name):
            guess = nearest(name, config.sources)
            remedy = f"did you mean '{guess}'?" if guess else f"there are {listed(sorted(config.sources))}"
            message = f"{quoted(entry)} names the foreign source '{name}', and there is no [sources.{name}]"
            yield InvalidValueError(message, code="B053", path=path, help=remedy)
        elif found is not None:
            try:
                require_path(entry, found)
            except InvalidValueError as error:
                error.path = path
                yield error


def _plain_library(config: Config) -> Iterator[InvalidValueError]:
    """Refuse backends, dependencies and hub kernels with [ctypes], if they need a framework."""
    built = [backend.value for backend in Backend if backend.facts.ctypes]
    remedy = "remove it, or make a kernel with [torch]"
    for index, backend in enumerate(config.general.backends):
        path: KeyPath = ("general", "backends", index)
        if not backend.facts.ctypes:
            message = f"'{backend}' has no plain libraries: a kernel with [ctypes] is built for {listed(built)}"
            yield InvalidValueError(message, code="B046", path=path, help=remedy)
        elif not config.components(backend):
            message = f"'{backend}' has no component, and a kernel with [ctypes] is compiled for each backend"
            how = f'add a [kernel.<name>] with backend = "{backend}", or remove the backend'
            yield InvalidValueError(message, code="B046", path=path, help=how)
    for name, part in config.kernel.items():
        for index, dependency in enumerate(part.depends):
            if dependency == "torch":
                message = f"component '{name}' compiles against torch, and a kernel with [ctypes] is built without it"
                path = ("kernel", name, "depends", index)
                yield InvalidValueError(message, code="B046", path=path, help=remedy)
    settings = {(): config.general, **{(each.value,): getattr(config.general, each.value, None) for each in Backend}}
    for table, given in settings.items():
        if getattr(given, "kernel_depends", ()):
            message = "kernels of the hub are loaded with torch, and a kernel with [ctypes] is tested without it"
            path = ("general", *table, "kernel-depends")
            how = "load it by hand, or make a kernel with [torch]"
            yield InvalidValueError(message, code="B046", path=path, help=how)
