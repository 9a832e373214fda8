"""The blocks of a page of docs/ that are marked `bash`, run in order as a reader would run them."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

from tests.given.files import program

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page):
    """Return the blocks of a page; its path is relative to docs/."""
    return _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def run(page, folder, *, replace=()):
    """Run a page in an empty folder, `folder/work`; nothing of it may fail. `replace` has pairs of texts."""
    path = f"{_environment(folder / 'venv')}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    work = folder / "work"
    work.mkdir()
    script = "set -euo pipefail\n" + "\n".join(blocks(page))
    for old, new in replace:
        script = script.replace(old, new)
    done = subprocess.run(["bash", "-c", script], cwd=work, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def _environment(folder):
    """Make an environment that has what the one of these tests has, and `builder` on PATH."""
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    import torch  # noqa: PLC0415  only a test that runs needs it

    (site / "tests.pth").write_text(f"{ROOT}\n{Path(torch.__file__).parents[1]}\n")
    for name, module in (("builder", "builder.cli"), ("pip", "pip._internal.cli.main")):  # ensurepip takes seconds
        program(folder / "bin" / name, f"#!{folder / 'bin' / 'python'}\nfrom {module} import main\nmain()\n")
    return folder / "bin"
