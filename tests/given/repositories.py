"""Repositories of git, made without the settings of whoever runs the tests."""

import os
import subprocess

from tests.given.files import write

SETTINGS = ("user.name=A", "user.email=a@example.org", "init.defaultBranch=main", "protocol.file.allow=always")


def git(folder, *arguments):
    """Run git in a folder, and return its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ = {**clean, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    options = [word for setting in SETTINGS for word in ("-c", setting)]
    command = ["git", *options, *arguments]
    return subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder, files=None, message="a change"):
    """Write files into a repository, made where there is none, commit all of it, and return the commit."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    write(folder, files or {})
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
