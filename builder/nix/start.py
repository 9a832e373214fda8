"""Build the cell that the variable `spec` describes; runs in Nix's sandbox, with the environment of builder's tools."""

import importlib
import os
import sys
from pathlib import Path

core = Path(os.environ["core"])
if not os.environ.get("checkout"):  # the package itself, and not a folder that contains it
    (Path.cwd() / "builder").symlink_to(core)
    core = Path.cwd()
sys.path.insert(0, str(core))

# Its path is known only now.
sys.exit(importlib.import_module(os.environ.get("module", "builder.make.derivation")).main(os.environ))
