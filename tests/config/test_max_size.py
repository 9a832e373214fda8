"""The most bytes that a wheel may have."""

import pytest

from builder.config import Backend, parse
from builder.config.update import rewrite
from builder.config.wheel_values import WheelSize
from builder.metadata import KernelMetadata
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

LIMIT = '[torch]\n[wheel]\nmax-size = "200 MB" # of the index\n'


def test_it_is_read_written_kept_by_update_and_stands_in_the_wheel():
    config = five(LIMIT)
    assert config.wheel.max_size.bytes == 200_000_000
    assert parse(source(dump(config))) == config
    assert rewrite(source(GENERAL + LIMIT)) == GENERAL + LIMIT
    assert KernelMetadata.of(config, Backend.CPU, ops="a", extensions={}).table["require"] == {"max-size": "200 MB"}
    assert "require" not in KernelMetadata.of(five("[torch]\n"), Backend.CPU, ops="a", extensions={}).table


@pytest.mark.parametrize(
    ("text", "size"),
    [("1.5GiB", 3 << 29), ("0.25 kB", 250), ("100 MiB", 100 << 20), ("1 KiB", 1024), ("2 GB", 2 * 10**9)],
)
def test_a_size_is_a_number_of_bytes(text, size):
    assert WheelSize(text).bytes == size


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("200mb", "write '200 MB'"),
        ("200", None),
        ("0 MB", None),
        ("-1 MB", None),
        ("1e3 MB", None),
        ("1 MB\\n", None),
        ("\\u0661 MB", None),
        ("MB", None),
    ],
)
def test_what_is_no_size_is_refused_at_its_place(text, remedy):
    (problem,) = problems_of(GENERAL + LIMIT.replace("200 MB", text))
    assert (problem.code, problem.key) == ("B066", ("wheel", "max-size"))
    assert remedy is None or problem.help == remedy
