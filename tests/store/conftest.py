import pytest

from builder.store import Store


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store")
    made.prepare()
    return made
