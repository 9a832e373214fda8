"""The shape of the current schema, from which its page and its JSON Schema come."""

import pytest

from builder.config import Config, Version, shape
from builder.config.values import ProjectPath


def records(cls=Config):
    """Yield every dataclass of a schema."""
    yield cls
    for item in shape.fields(cls):
        pending = [item.kind]
        while pending:
            kind = pending.pop()
            match kind:
                case shape.Array(item=below) | shape.Table(value=below):
                    pending.append(below)
                case shape.Record(type=below):
                    yield from records(below)
                case shape.Tagged(variants=variants):
                    for _, below in variants:
                        yield from records(below)


@pytest.mark.parametrize("cls", sorted(set(records()), key=lambda cls: cls.__name__), ids=lambda cls: cls.__name__)
def test_every_key_of_the_current_schema_is_documented(cls):
    documented = shape.documentation(cls)
    for item in shape.fields(cls):
        assert documented[item.name].endswith((".", '"`')), f"{cls.__name__}.{item.name}"
    assert cls.__doc__


def test_the_kind_of_a_path_is_found():
    assert shape.kind_at(Config, ("kernel", "any", "cuda-minver")) == shape.Scalar(Version)
    assert shape.kind_at(Config, ("torch", "src", 0)) == shape.Scalar(ProjectPath)
    assert shape.kind_at(Config, ("torch", "nothing")) is None
