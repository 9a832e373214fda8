"""Make a virtual environment from pinned wheels at `out`; runs in Nix's sandbox, without network."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Make the environment that the variables describe."""
    out = Path(os.environ["out"])
    wheels = json.loads(os.environ["wheels"])
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", str(out)], check=True)
    # A folder of links to the files: pip would record the files' own paths, and so keep them alive.
    links = Path.cwd() / "wheels"
    links.mkdir()
    for wheel in wheels:
        (links / _installed_as(wheel)).symlink_to(wheel["path"])
    names = [f"{wheel['name']}=={wheel['version']}" for wheel in wheels]
    pip = runpy.run_path(os.environ["pip"])["command"]()
    argv = [
        *(*pip, f"--python={out / 'bin/python'}", "install", "--no-index", f"--find-links={links}"),
        *("--no-deps", "--no-compile", "--no-warn-script-location", "--root-user-action=ignore", *names),
    ]
    subprocess.run(argv, env=os.environ | {"HOME": str(Path.cwd())}, check=True)
    toolkit = runpy.run_path(os.environ["toolkit"])
    for site_packages in out.glob("lib/python*/site-packages"):
        root = toolkit["cuda_root"](site_packages)
        if root is not None:
            toolkit["complete"](root)
    if os.environ.get("fixup"):
        subprocess.run([os.environ["shell"], "-euc", os.environ["fixup"]], check=True)


def _installed_as(wheel: dict[str, Any]) -> str:
    """Return the file name for pip; a wheel for another system is only unpacked, so it gets a name that pip accepts."""
    file: str = wheel["file"]
    if not wheel.get("foreign"):
        return file
    distribution, version = file.split("-")[:2]
    return f"{distribution}-{version}-py3-none-any.whl"


main()
