"""The size of a wheel, known from the build that was refused for it."""

import functools
import json

import pytest

from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL, linux

pytestmark = [
    pytest.mark.cmake,
    linux,
]


@pytest.mark.slow
def test_a_wheel_that_was_too_large_is_announced_before_it_is_built_again(builder, plain):
    edit(plain / "build.toml", "[ctypes]", '[wheel]\nmax-size = "1 kB"\n\n[ctypes]')
    build = functools.partial(builder, "build", plain, "--variant", PLAIN_CELL)
    planned = build("--dry-run")
    assert "no estimate of its size before its first build here; 1 kB are allowed" in planned.stdout, planned.stderr
    first = build()
    assert (first.returncode, "its wheel will have" in first.stderr) == (5, False), first.stderr
    assert "the wheel may have 1 kB (1,000 bytes)" in first.stderr
    (plan,) = json.loads(build("--dry-run", "--json").stdout)
    assert plan["estimated-size"] > 1000
    assert f"warning: {PLAIN_CELL}: its wheel will have about " in build().stderr
    explained = builder("matrix", plain, "--explain", check=0)
    assert f"{PLAIN_CELL}: its wheel: about " in explained.stderr
