"""Fetch all files of a locked kernel with the hub's library, by the user's settings; Nix checks the hash."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

LIBRARY = "huggingface-hub"
"""Any version will do, since the hash decides."""


def main() -> None:
    """Write the commit that the environment names to `out`."""
    pip = runpy.run_path(os.environ["pip"])
    env = pip["settings"]() | {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    if "PIP_CERT" in env:
        env["SSL_CERT_FILE"] = env["PIP_CERT"]
    library = Path.cwd() / "library"
    argv = [*pip["command"](), "install", "--only-binary=:all:", f"--target={library}", LIBRARY]
    if subprocess.run(argv, env=env, check=False).returncode != 0:
        refuse(f"{LIBRARY}, which would fetch it, cannot be installed")
    os.environ.clear()
    os.environ.update(env)
    sys.path.insert(0, str(library))
    fetch(env["repository"], env["commit"], Path(env["out"]))


def fetch(repository: str, commit: str, out: Path) -> None:
    """Download the files of a commit."""
    from huggingface_hub import HfApi  # noqa: PLC0415  installed just now

    try:
        HfApi().snapshot_download(repository, revision=commit, repo_type="kernel", local_dir=out)
    except Exception as error:  # noqa: BLE001  the library and its HTTP client raise many
        refuse(next(iter(str(error).strip().splitlines()), type(error).__name__))
    shutil.rmtree(out / ".cache", ignore_errors=True)  # files that the library leaves


def refuse(why: str) -> NoReturn:
    """End with the remedy."""
    raise SystemExit(
        f"error: cannot get the locked kernel '{os.environ['repository']}' at {os.environ['commit'][:7]}: {why}\n"
        "  help: 'builder build --engine nix' brings it; or bring all of the lock, in the folder of the kernel:\n"
        "        builder lock --check --store KEPT && nix-store --add-fixed --recursive sha256 KEPT/kernels/*"
    )


main()
