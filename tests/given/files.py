"""Files and folders that tests write and read."""

import contextlib
import fcntl
import hashlib


def write(root, files):
    """Write files, path -> text or bytes, below a folder, and return it."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def program(path, text):
    """Write a program, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def edit(path, old, new):
    """Replace a text in a file, which must have it."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def tree(folder):
    """Return the files below a folder, path -> bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def names(folder):
    """Return the names in a folder, which may not be there."""
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def only_wheel(folder):
    (found,) = folder.glob("*.whl")
    return found


@contextlib.contextmanager
def once(folder):
    """Say whether a folder, which all workers of a run share, is to be filled: one does it, and the others wait."""
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        filled = folder / ".filled"
        yield not filled.exists()
        filled.touch()
