"""A folder in the form of the hub client's cache, with made-up kernels."""

import hashlib
import json


def add(root, repo_id, files, *, version=1, refs=()):
    """Add a kernel as the client keeps it, with links to blobs, and return its commit; its files are text or bytes."""
    repository = root / f"kernels--{repo_id.replace('/', '--')}"
    contents = {name: each.encode() if isinstance(each, str) else each for name, each in files.items()}
    text = json.dumps([repo_id, sorted((name, hashlib.sha256(each).hexdigest()) for name, each in contents.items())])
    commit = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    for name, content in contents.items():
        blob = repository / "blobs" / hashlib.sha256(content).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        place = repository / "snapshots" / commit / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(blob)
    for ref in (f"v{version}", *refs):
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / ref).write_text(commit, encoding="utf-8")
    return commit


def kernel(name="base", *, variants=("torch-cpu",), depends=(), init="ANSWER = 42\n"):
    """Return the files of a pure-Python kernel, each variant with the same content."""
    files = {"README.md": f"# {name}\n", ".gitattributes": "*.so filter=lfs\n"}
    for variant in variants:
        table = {
            "name": name,
            "id": f"_{name.replace('-', '_')}_{variant.replace('-', '_')}",
            "version": 1,
            "license": "MIT",
            "python-depends": [],
            **({"kernel-depends": list(depends)} if depends else {}),
            "backend": {"type": "cpu"},
        }
        files[f"build/{variant}/metadata.json"] = json.dumps(table)
        files[f"build/{variant}/__init__.py"] = init
    return files


def depend(folder, *wanted, table="general"):
    """Let a kernel's build.toml depend on others: `owner/name` is version 1 of it, `owner/name@x` a revision."""
    config = folder / "build.toml"
    listed = []
    for each in wanted:
        repo_id, _, revision = each.partition("@")
        listed.append(f'{{ repo-id = "{repo_id}", ' + (f'revision = "{revision}" }}' if revision else "version = 1 }"))
    text = config.read_text(encoding="utf-8")
    line = f"[{table}]\nkernel-depends = [{', '.join(listed)}]\n"
    config.write_text(text.replace(f"[{table}]\n", line, 1), encoding="utf-8")
    return folder
