"""Check libraries for macOS: the oldest system, the machine, and the libraries that they load."""

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
                why = "the tag names no macOS and machine that are known"
                yield Finding(library.name, RULE, platform, why, "correct the tag")
            else:
                yield from _tag(library, platform, system=(int(match[1]), int(match[2])), machine=match[3])
            yield from _loads(library)


def _tag(library: Library, platform: str, *, system: tuple[int, int], machine: str) -> Iterator[Finding]:
    extension = library.extension
    if extension.format != "Mach-O" or extension.machine != machine:
        why = f"the library is {extension.format} for {extension.machine}, the wheel's tag says {platform}"
        remedy = "build it for the machine that the tag names"
        yield Finding(library.name, RULE, extension.machine, why, remedy)
    elif extension.minimum is None or extension.minimum > system:
        oldest = "nothing" if extension.minimum is None else "macOS {}.{}".format(*extension.minimum)
        why = f"the library asks for {oldest}, the wheel's tag says {platform}"
        remedy = "set CMAKE_OSX_DEPLOYMENT_TARGET before project()"
        yield Finding(library.name, RULE, "LC_BUILD_VERSION", why, remedy)


def _loads(library: Library) -> Iterator[Finding]:
    for entry in library.extension.rpath:
        if _INSIDE.match(entry) is None or ".." in entry.split("/"):
            why = "this path for @rpath leads out of the directory the library is installed in"
            remedy = "set CMAKE_BUILD_WITH_INSTALL_RPATH=ON, and INSTALL_RPATH to nothing or to @loader_path"
            yield Finding(library.name, RULE, entry, why, remedy)
    for needed in library.extension.needed:
        if not needed.startswith(_SYSTEM) and _LOADED.match(needed) is None:
            why = "neither macOS nor what the framework has loaded includes this library"
            remedy = "link it statically, or use what the framework offers in its place"
            yield Finding(library.name, RULE, needed, why, remedy)
