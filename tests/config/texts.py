"""Configs as text, and what reading one says."""

import pytest

from builder.config import parse, read
from builder.config.text import Source
from builder.errors import ConfigError

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
