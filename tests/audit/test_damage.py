"""Whatever happened to a wheel, the audit answers: findings, or that the file is damaged."""

import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import audit, json_text
from builder.wheel.archive import Wheel, WheelError

MODULES = sorted(Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so"), key=lambda path: path.stat().st_size)


@pytest.fixture
def whole(make_wheel):
    library = MODULES[0].read_bytes() if MODULES else b"\x7fELF"
    return make_wheel(library=library)


@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_wheel_is_judged_or_refused(whole, tmp_path_factory, data):
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
    path = tmp_path_factory.getbasetemp() / whole.name
    path.write_bytes(content[:cut])
    try:
        report = audit.run(Wheel.read(path))
    except WheelError:
        return
    assert json_text.document(report.to_dict())
    assert report.to_text()


@given(st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_library_in_a_sound_wheel_is_judged(make_wheel, changes):
    content = bytearray(MODULES[0].read_bytes() if MODULES else b"\x7fELF" + bytes(100))
    for position, value in changes:
        content[position % min(len(content), 8192)] = value
    assert audit.run(Wheel.read(make_wheel(library=bytes(content)))).findings
