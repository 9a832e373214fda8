"""Folders with several kernels, for tests."""

CONFIG = """\
[general]
name = "{name}"
version = 1
edition = 5
license = "MIT"
backends = [{backends}]

[torch-noarch]
"""


def write(root, name, *backends, folder=None):
    """Write a pure-Python kernel below `root`, and return its folder."""
    where = root / (folder or name)
    package = where / "torch-ext" / name.replace("-", "_")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    listed = ", ".join(f'"{backend}"' for backend in backends or ("cpu",))
    (where / "build.toml").write_text(CONFIG.format(name=name, backends=listed), encoding="utf-8")
    return where
