"""A small kernel for tests of rendering."""

from builder.config import Backend
from builder.kernel import load
from builder.render import render
from tests.given.files import write


def kernel(root, *, general="", torch="", component="", backend="cpu", framework="torch", extra="", files=None):
    """Write a small kernel whose tables have the given lines in them, and load it."""
    package = "tvm-ffi-ext" if framework == "tvm-ffi" else "torch-ext"
    source = f"{package}/binding.cpp"
    config = f"""
[general]
name = "tiny"
version = 3
edition = 5
license = "Apache-2.0"
backends = ["{backend}"]
{general}

[{framework}]
{"" if framework == "torch-noarch" else f'src = ["{source}"]'}
{torch}
"""
    if framework != "torch-noarch":
        config += f"""
[kernel.one]
backend = "{backend}"
depends = []
src = ["one.cpp"]
{component}
"""
    standard = {f"{package}/tiny/__init__.py": "", source: "", "one.cpp": "", "build.toml": config + extra}
    return load(write(root, {**standard, **(files or {})}))


def rendered(root, *, backend="cpu", only=(), **tables):
    """Return the project of a small kernel."""
    return render(kernel(root, backend=backend, **tables), Backend(backend), unique_id="x", only=only)


def lists(root, **tables):
    """Return the CMakeLists.txt of a small kernel."""
    return rendered(root, **tables)["CMakeLists.txt"]
