"""Made-up packages of Debian, and a mirror with them."""

import hashlib
import io
import tarfile
from pathlib import Path

_PROGRAM = (b"\x7fELF", b"#!")


def package(path: Path, members: dict[str, bytes | str], *, compressed: str = "xz") -> str:
    """Write a package and return its sha256. A text is the target of a symbolic link, bytes are a file's."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compressed}") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size, member.mode = len(content), 0o755 if content.startswith(_PROGRAM) else 0o644
                archive.addfile(member, io.BytesIO(content))
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", f"data.tar.{compressed}": buffer.getvalue()}
    whole = b"!<arch>\n" + b"".join(_member(name, content) for name, content in parts.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole)
    return hashlib.sha256(whole).hexdigest()


def _member(name: str, content: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
    return header + content + b"\n" * (len(content) % 2)
