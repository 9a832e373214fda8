"""The most bytes that a wheel may have, as its kernel says."""

import functools
import json
import random

import pytest
from packaging.version import Version

from builder import cli
from builder.audit import sizes
from builder.audit.size_budget import is_exceeded, ways_out
from builder.audit.sizes import CodeSize, FileSize, WheelSizes
from builder.audit.subject import Subject
from builder.wheel.archive import Wheel
from tests.given.device_code import fatbin, image

NOISE = random.Random(0).randbytes(60_000)
CODE = fatbin(
    image(2, 80, content=NOISE[:40_000]), image(2, 90, content=NOISE[40_000:]), image(1, 90, content=b"p" * 500)
)


@pytest.fixture
def wheel(make_wheel, compiler):
    cuda = functools.partial(make_wheel, label="torch213.cxx11.cu130", backend="cuda")
    return lambda limit: cuda(library=compiler.library() + CODE, metadata={"require": {"max-size": limit}})


def findings(path, capsys):
    code = cli.run(["audit", "--json", str(path)])
    (report,) = json.loads(capsys.readouterr().out)["wheels"]
    return code, [each for each in report["findings"] if each["rule"] == "size"]


def test_a_wheel_that_is_too_large_is_refused_with_what_takes_its_bytes_and_three_ways_out(wheel, capsys):
    path = wheel("50 kB")
    code, (finding,) = findings(path, capsys)
    assert (code, finding["file"], finding["severity"]) == (5, "demo/metadata.json", "error")
    assert (
        f"may have 50 kB (50,000 bytes) and has {path.stat().st_size:,}; 8.0 takes 39.1 KiB, 9.0 takes 20.0 KiB"
        in (finding["why"])
    )
    assert finding["remedy"].split("; or ") == [
        "compress the 59.1 KiB of device code that are not, by '-Xfatbin=-compress-all' in 'cuda-flags'",
        "leave out PTX, which takes 500 B and serves GPUs that have no code of their own",
        "leave out 8.0, which takes 39.1 KiB",
    ]


@pytest.mark.parametrize(("size", "exceeded"), [(1000, False), (1001, True)])
def test_a_wheel_may_have_just_as_many_bytes(tmp_path, size, exceeded):
    path = tmp_path / "demo.whl"
    path.write_bytes(bytes(size))
    metadata = {"demo/metadata.json": b'{"require": {"max-size": "1 kB"}}'}
    subject = Subject(name="demo", version="1", dist_info="d", tags=(), package="demo", texts=metadata)
    wheel = Wheel(path=path, name="demo", version=Version("1"), tags=frozenset(), members={})
    assert is_exceeded(subject, wheel) is exceeded


@pytest.mark.parametrize("limit", ["a lot", 5, None, ["1 MB"]])
def test_a_limit_that_is_no_size_is_a_finding(wheel, capsys, limit):
    _, found = findings(wheel(limit), capsys)
    assert len(found) == (limit is not None)


def test_a_wheel_that_is_small_enough_is_not_measured(wheel, capsys, monkeypatch):
    monkeypatch.setattr(sizes, "of", None)
    assert findings(wheel("1 GB"), capsys)[1] == []


def test_without_device_code_the_limit_is_the_way_out(make_wheel, compiler):
    path = make_wheel(library=compiler.library(), metadata={"require": {"max-size": "0.1 kB"}})
    assert ways_out(sizes.of(Wheel.read(path))) == ("raise 'max-size' in [wheel] of build.toml",)


def test_of_one_architecture_nothing_is_left_out():
    code = CodeSize(arch="gfx942", what="code for gfx942", ptx=False, size=5, plain=5, pieces=1)
    whole = WheelSizes(packed=9, files=(FileSize(name="a.so", size=9, code=(code,)),))
    assert ways_out(whole) == (
        "compress the 5 B of device code that are not, by '--offload-compress' in 'hip-flags'",
        "raise 'max-size' in [wheel] of build.toml",
    )
