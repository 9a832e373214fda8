"""The uv that is installed with the tests."""

import subprocess

import pytest
from packaging.version import Version
from uv import find_uv_bin


def version():
    said = subprocess.run([find_uv_bin(), "--version"], capture_output=True, text=True, check=True)
    return Version(said.stdout.split()[1])


needs_variants = pytest.mark.skipif(version() < Version("0.13"), reason="this uv knows no wheel variants")
