"""Libraries for macOS: the oldest system, the machine, and what they load."""

import re
from collections.abc import Iterator

from builder.audit.report import Finding
from builder.audit.subject import Library, Subject

RULE = "macos"

_TAG = re.compile(r"macosx_([0-9]+)_([0-9]+)_(arm64|x86_64)$")
_SYSTEM = ("/usr/lib/", "/System/Library/")
_LOADED = re.compile(r"@rpath/lib(torch|torch_cpu|torch_python|c10|tvm_ffi)\.dylib$")
_INSIDE = re.compile(r"@loader_path(/|$)")


def check(subject: Subject) -> Iterator[Finding]:
    """Judge each library of a wheel for macOS by its tag."""
    for platform in subject.platforms:
        if not platform.startswith("macosx_"):
            continue
        match = _TAG.match(platform)
        for library in subject.libraries:
            if match is None:
                yield _finding(
                    library, platform, "the tag names no macOS and machine that are known", "correct the tag"
                )
            else:
                yield from _tag(library, platform, system=(int(match[1]), int(match[2])), machine=match[3])
            yield from _loads(library)


def _finding(library: Library, symbol: str, why: str, remedy: str) -> Finding:
    return Finding(file=library.name, rule=RULE, symbol=symbol, why=why, remedy=remedy)


def _tag(library: Library, platform: str, *, system: tuple[int, int], machine: str) -> Iterator[Finding]:
    extension = library.extension
    if extension.format != "Mach-O" or extension.machine != machine:
        yield _finding(
            library,
            extension.machine,
            f"the library is {extension.format} for {extension.machine}, the wheel's tag says {platform}",
            "build it for the machine that the tag names",
        )
    elif extension.minimum is None or extension.minimum > system:
        oldest = "nothing" if extension.minimum is None else "macOS {}.{}".format(*extension.minimum)
        yield _finding(
            library,
            "LC_BUILD_VERSION",
            f"the library asks for {oldest}, the wheel's tag says {platform}",
            "set CMAKE_OSX_DEPLOYMENT_TARGET before project()",
        )


def _loads(library: Library) -> Iterator[Finding]:
    for entry in library.extension.rpath:
        if _INSIDE.match(entry) is None or ".." in entry.split("/"):
            yield _finding(
                library,
                entry,
                "this path for @rpath leads out of the directory the library is installed in",
                "set CMAKE_BUILD_WITH_INSTALL_RPATH=ON, and INSTALL_RPATH to nothing or to @loader_path",
            )
    for needed in library.extension.needed:
        if not needed.startswith(_SYSTEM) and _LOADED.match(needed) is None:
            yield _finding(
                library,
                needed,
                "neither macOS nor what the framework has loaded includes this library",
                "link it statically, or use what the framework offers in its place",
            )
