"""A CUDA toolkit whose module ids do not depend on where a build is, for machines without the canonical path."""

import shlex
import shutil
from pathlib import Path

# cudafe++ hashes the real path of a source into an id that ends in the names of kernels: the folder is taken off it.
_SCRIPT = """#!/bin/sh
folder={folder}
left=$#
path=
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  if [ -n "$path" ]; then argument=${{argument#"$folder"/}}; fi
  path=
  if [ "$argument" = --orig_src_path_name ]; then path=1; fi
  set -- "$@" "$argument"
  left=$((left - 1))
done
exec {cudafe} "$@"
"""


def farm(root: Path, target: Path, *, folder: Path) -> Path:
    """Make a toolkit of links to the one at `root` in `target`; module ids see paths relative to `folder`."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "bin").mkdir(parents=True)
    for path in sorted(root.iterdir()):
        if path.name != "bin":
            (target / path.name).symlink_to(path)
    for path in sorted((root / "bin").iterdir()):
        (target / "bin" / path.name).symlink_to(path)
    nvcc, cudafe = target / "bin/nvcc", target / "bin/cudafe++"
    nvcc.unlink()
    # nvcc follows links to itself and looks for its parts there: so it is copied, not linked.
    shutil.copy2(root / "bin/nvcc", nvcc)
    cudafe.unlink()
    real = shlex.quote(str((root / "bin/cudafe++").resolve()))
    # nvcc names a source by its real path.
    cudafe.write_text(_SCRIPT.format(folder=shlex.quote(str(folder.resolve())), cudafe=real), encoding="utf-8")
    cudafe.chmod(0o755)
    return target
