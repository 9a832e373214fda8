"""How texts of a user, and numbers, are shown."""

import pytest

from builder.wording import size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (29_364, "28.7 KiB"),
        (512 << 20, "512.0 MiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_sizes_are_shown_in_a_unit_for_people(count, text):
    assert size(count) == text
