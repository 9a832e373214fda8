"""Install the pinned CPU torch beside the tests, for those that are marked `torch`."""

import os
import sys
from pathlib import Path

from builder import pins, toolchain
from builder.cli.arguments import default_store
from builder.config import Framework
from builder.environment import indexes, interpreters
from builder.environment.fetch import Installer
from builder.errors import BuilderError

TORCH = "2.13"


def main() -> None:
    here = interpreters.running()
    requirement = pins.Requirement(
        framework=Framework.TORCH,
        version=TORCH,
        compute="cpu",
        python="" if here is None else here.tag,
        system=toolchain.system(),
    )
    try:
        wanted = pins.load().environment(requirement)
    except pins.MissingPinsError as error:
        sys.stderr.write(f"tests marked `torch` will be skipped: {error}\n")
        return
    cache = default_store() / "uv"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        installer = Installer(finders=indexes.read(os.environ), progress=print)
        installer.install(wanted, into=Path(sys.prefix), cache=cache)
    except BuilderError as error:
        sys.exit(f"error: {error}")


main()
