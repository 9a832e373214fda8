"""Parts of the objects of a cell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.build.part import Part
from builder.errors import BuilderError


@given(st.integers(1, 9999), st.integers(1, 9999))
def test_a_part_is_read_as_it_is_written(one, other):
    part = Part(number=min(one, other), of=max(one, other))
    assert Part.parse(str(part)) == part


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1 / 4", "01/4", "1/99999", "\u0661/4"]
)
def test_what_is_no_part_is_refused(text):
    with pytest.raises(BuilderError, match="not a part such as 1/4"):
        Part.parse(text)
