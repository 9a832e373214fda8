"""A short run of every fuzz target; `python -m tests.fuzz --seconds N` is the long one."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_reader_answers_or_refuses_in_words(target):
    search = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    search(given(target.inputs)(target.check))()
