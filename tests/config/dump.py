"""Config → TOML: the inverse of parsing."""

from collections.abc import Mapping
from enum import Enum

import tomlkit

from builder.config import Version, shape
from builder.config.source_tables import Component


def dump(config):
    """Return the text of edition 5 that parses to `config`: one spelling for each kernel."""
    return tomlkit.dumps(plain(config))


def plain(value):
    """Return what a value of a config is in a document, without the keys that have their defaults."""
    match value:
        case Enum():
            return value.value
        case str() | Version():
            return str(value)
        case Mapping():
            return {plain(key): plain(entry) for key, entry in value.items()}
        case tuple():
            return [plain(entry) for entry in value]
        case bool() | int():
            return value
    found = {"backend": str(value.backend)} if isinstance(value, Component) else {}
    for item in shape.fields(type(value)):
        own = getattr(value, item.name)
        if item.rest:
            found |= plain(own)
        elif item.required or own != item.default:
            found[item.key] = plain(own)
    return found
