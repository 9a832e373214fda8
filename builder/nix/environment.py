"""Make a virtual environment of pinned wheels at `out`; runs in Nix's sandbox, with no network."""

import importlib.util
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

_BUNDLED = ("/usr/share/python-wheels", "{ensurepip}/_bundled")


def pip() -> list[str]:
    """Return the command that runs pip: the installed one, else the one that ensurepip would install."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip"]
    spec = importlib.util.find_spec("ensurepip")
    ensurepip = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path("/nonexistent")
    for folder in _BUNDLED:
        found = sorted(Path(folder.format(ensurepip=ensurepip)).glob("pip-*.whl"))
        if found:
            return [sys.executable, "-I", f"{found[-1]}/pip"]
    raise SystemExit(f"error: '{sys.executable}' has no pip\n  help: install it (python3-pip or python3-venv on Debian)")


def main() -> None:
    """Make the environment that the variables describe."""
    out = Path(os.environ["out"])
    wheels = json.loads(os.environ["wheels"])
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", str(out)], check=True)
    # A folder of links and not the files themselves: pip would note their paths, and keep them alive.
    links = Path.cwd() / "wheels"
    links.mkdir()
    for wheel in wheels:
        (links / wheel["file"]).symlink_to(wheel["path"])
    names = [f"{wheel['name']}=={wheel['version']}" for wheel in wheels]
    argv = [
        *(*pip(), f"--python={out / 'bin/python'}", "install", "--quiet", "--no-index", f"--find-links={links}"),
        *("--no-deps", "--no-compile", "--no-cache-dir", "--disable-pip-version-check", "--no-warn-script-location"),
        *("--root-user-action=ignore", *names),
    ]
    subprocess.run(argv, env=os.environ | {"HOME": str(Path.cwd())}, check=True)
    toolkit = runpy.run_path(os.environ["toolkit"])
    for site_packages in out.glob("lib/python*/site-packages"):
        root = toolkit["cuda_root"](site_packages)
        if root is not None:
            toolkit["complete"](root)
    if os.environ.get("fixup"):
        subprocess.run(["sh", "-euc", os.environ["fixup"]], check=True)


main()
