"""Fetch one pinned wheel with pip, by the user's settings; Nix checks the hash."""

import os
import runpy
import shutil
import subprocess
from pathlib import Path


def target(file: str, python: str) -> list[str]:
    """Return the options with which pip chooses for the wheel's machine, and not for this one."""
    _, _, tag, abi, platforms = file.removesuffix(".whl").rsplit("-", 4)
    options = [f"--platform={platform}" for platform in platforms.split(".")]
    if not tag.startswith("py"):
        options += ["--implementation=cp", f"--python-version={python.removeprefix('cp')}", f"--abi={abi}"]
    return options


def main() -> None:
    """Write the wheel that the environment names to `out`."""
    pip = runpy.run_path(os.environ["pip"])
    env = pip["settings"]()
    file = env["name"]
    folder = Path.cwd() / "wheel"
    wanted = Path.cwd() / "wheel.txt"
    wanted.write_text(f"{env['project']}=={env['version']} --hash=sha256:{env['sha256']}\n", encoding="utf-8")
    index = [f"--extra-index-url={env['index']}"] if "index" in env else []
    argv = [
        *(*pip["command"](), "download", "--no-deps", "--only-binary=:all:", "--require-hashes"),
        *(*target(file, env["python"]), *index, f"--dest={folder}", f"--requirement={wanted}"),
    ]
    done = subprocess.run(argv, env=env, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        raise SystemExit(
            f"error: cannot get the pinned wheel {file}\n"
            "  help: where you have the file: nix-store --add-fixed sha256 FILE; else name a mirror in PIP_INDEX_URL,\n"
            "        or a proxy in HTTPS_PROXY, where Nix builds (for the daemon: in its own environment)"
        )
    shutil.copyfile(found[0], env["out"])


main()
