"""The Metal compiler of Xcode."""

from pathlib import Path

from builder.errors import NotHereError
from builder.toolchain.tool import Search, Tool


def find(search: Search) -> Tool:
    """Return the Metal compiler that xcrun names.

    Raises:
        NotHereError: there is none.
    """
    found = search.which("xcrun")
    said = "" if found is None else search.run(found, "-sdk", "macosx", "--find", "metal").strip()
    if found is None or not Path(said).is_file():
        raise NotHereError(
            "no Metal compiler: xcrun finds no 'metal'",
            help="install Xcode, then its toolchain: xcodebuild -downloadComponent MetalToolchain",
        )
    metal = Path(said)
    parts = [path for path in (metal, metal.with_name("metallib"), metal.with_name("air-lld")) if path.is_file()]
    return Tool(path=metal, version=search.first_line(metal, "--version"), digest=search.digest_all(parts))
