"""The digest in metadata.json: which files of a package the client verifies, and their hashes."""

from collections.abc import Mapping

from builder.hashes import base64_sha256
from builder.wheel.archive import Bytes

METADATA_FILE = "metadata.json"
SIGNATURE_FILE = "metadata.json.sigstore"
"""The signature of it, which the hub's client verifies."""
_NOT_DIGESTED = (METADATA_FILE, SIGNATURE_FILE)


def is_digested(name: str) -> bool:
    """Whether the digest of a package has a file: not what holds or signs it, and no bytecode."""
    return name not in _NOT_DIGESTED and not name.endswith((".pyc", ".pyo"))


def digests(package: Mapping[str, Bytes]) -> dict[str, str]:
    """Return the base64 sha256 of every file that the client verifies."""
    return {name: base64_sha256(package[name].content) for name in sorted(package) if is_digested(name)}
