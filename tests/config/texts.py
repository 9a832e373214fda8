"""Configs as text, and what reading one says."""

import pytest

from builder import toml
from builder.config import parse, read
from builder.config.text import Source
from builder.errors import ConfigError
from tests.paths import TESTS

LICENSE = "MIT"
GENERAL = '[general]\nname = "relu"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cpu", "cuda"]\n'


def source(text):
    return Source(name="build.toml", text=text)


def five(text=""):
    return parse(source(GENERAL + text))


def problems_of(text):
    with pytest.raises(ConfigError) as raised:
        read(source(text))
    return raised.value.problems


def old(text, **keys):
    return read(source(text), license=LICENSE, **keys).config


def refusal_of(action, *arguments, **options):
    """Return the error with which a config is refused, if it is."""
    try:
        action(*arguments, **options)
    except ConfigError as error:
        return error
    return None


# The values that the keys of a table may have, with the verdicts of this parser and the public one.

BASE = {
    "": {},
    "general": {"name": '"relu"', "version": "1", "edition": "5", "license": '"MIT"', "backends": '["cpu"]'},
    "kernel.k": {"backend": '"cpu"', "depends": "[]", "src": "[]"},
    "kernel.cuda": {"backend": '"cuda"', "depends": "[]", "src": "[]"},
    "kernel.rocm": {"backend": '"rocm"', "depends": "[]", "src": "[]"},
    "kernel.xpu": {"backend": '"xpu"', "depends": "[]", "src": "[]"},
    "kernel.metal": {"backend": '"metal"', "depends": "[]", "src": "[]"},
    "torch": {},
    "torch-noarch": {},
    "tvm-ffi": {"src": "[]"},
    "wheel": {},
}
FRAMEWORKS = ("torch", "torch-noarch", "tvm-ffi")


def document(edition, table, key, value):
    """Return a config in which `key` of `table` is `value`."""
    framework = table if table in FRAMEWORKS else "torch"
    needed = dict.fromkeys(["", "general", framework, *([table] if table not in FRAMEWORKS else [])])
    tables = {name: dict(BASE[name]) for name in needed}
    if edition == "edition-4":
        del tables["general"]["edition"]
    if table == "" and key in tables:
        del tables[key]
    tables[table][key] = value
    lines = []
    for name, keys in tables.items():
        lines += [f"[{name}]"] * bool(name) + [f"{name_} = {value_}" for name_, value_ in keys.items()]
    return "\n".join(lines) + "\n"


def differences():
    """Yield the edition, the table and the key of each case, with its values and what both parsers say of each."""
    cases = toml.loads((TESTS / "data/config/differential.toml").read_text(encoding="utf-8"))
    for edition, tables in cases.items():
        for table, keys in tables.items():
            for key, verdicts in keys.items():
                yield edition, table, key, [(value, verdict) for verdict, of in verdicts.items() for value in of]
