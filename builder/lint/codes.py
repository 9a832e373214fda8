"""Every code of a finding, with its title and its page in the docs.

Codes are stable: a code is never given to another rule. Below B100: the config cannot be read. From B100: lints.
"""

from pathlib import Path

from builder import resources
from builder.errors import BuilderError

PAGES = resources.CMAKE.parent / "docs" / "errors"

CODES = {
    "B001": "the config cannot be read",
    "B002": "the config is not valid TOML",
    "B003": "the config is too deep or has too many values",
    "B004": "the edition is not supported",
    "B010": "unknown key",
    "B011": "missing key",
    "B012": "wrong type",
    "B013": "unknown name",
    "B014": "key of another backend",
    "B015": "keys that exclude each other",
    "B016": "no framework table, or no key where one of several is required",
    "B020": "invalid kernel name",
    "B021": "invalid version",
    "B022": "invalid Git URL",
    "B023": "path outside the project",
    "B024": "invalid CUDA capability",
    "B025": "invalid ROCm architecture",
    "B026": "invalid file extension",
    "B027": "invalid name of a kernel table",
    "B028": "unknown Python dependency, or one of another backend",
    "B029": "invalid system",
    "B030": "a listed file does not exist or is not a file",
    "B031": "a file leaves the project through a symbolic link",
    "B032": "the Python package does not exist",
    "B033": "the Python package is nested in itself",
    "B034": "a glob matches no file, or is used in an old schema",
    "B035": "too many files",
    "B036": "the license is missing in an old schema",
    "B037": "an upgrade would make two components of one name",
    "B038": "invalid name of a macro",
    "B039": "unknown library",
    "B041": "a pattern that names no source",
    "B042": "a condition that is none, or never holds",
    "B043": "invalid name of an extension",
    "B044": "an extension without a library, or a component of one that is not there",
    "B045": "invalid name of a function that a plain library exports",
    "B046": "something that a plain library cannot have",
    "B050": "invalid name of a foreign source",
    "B051": "invalid URL of a foreign source",
    "B052": "a foreign source that is not named by a whole hash",
    "B053": "a path that a foreign source cannot have",
    "B054": "invalid requirement of a Python package",
    "B055": "a data file that the wheel cannot have",
    "B056": "a second Python package",
    "B057": "a version that the wheel cannot have",
    "B058": "a step of [[generate]] that cannot be run, or for nothing",
    "B059": "an argument of a step that names no value",
    "B060": "a text that CMake cannot hold",
    "B061": "a compiler flag that is not safe",
    "B062": "a source of another backend",
    "B063": "a library of another backend",
    "B064": "flags of a single Metal shader",
    "B065": "an unknown GPU, or one that no component is for",
    "B066": "a size of a wheel that is none",
    "B067": "two entries that make code for the same GPU",
    "B101": "a component whose backend is not enabled",
    "B102": "a component in a pure-Python kernel",
    "B103": "a backend without compiled code, in a kernel that has components",
    "B104": "a file is listed twice",
    "B105": "an include directory does not exist",
    "B106": "minver above maxver",
    "B107": "a stable ABI above the newest PyTorch",
    "B108": "a stable ABI for a backend that is not enabled",
    "B109": "two versions of CUTLASS in one backend",
    "B110": "a backend without a cell",
    "B111": "no cell at all",
    "B112": "an architecture that no toolkit compiles for",
    "B113": "no architecture is left to compile for",
    "B114": "a license that is not an SPDX expression",
    "B115": "a glob, which the public kernel-builder does not expand",
    "B116": "a [matrix] table, which the public kernel-builder refuses",
    "B117": "a spelling that the public kernel-builder refuses",
    "B118": "a backend without a cell in a release",
    "B119": "backends that are missing or repeated",
    "B120": "an op outside the namespace of the build",
    "B121": "an op whose namespace cannot be told",
    "B122": "a Python file that cannot be read",
    "B123": "a component that no CUDA toolkit is new enough for",
    "B124": "a config in an old schema",
    "B125": "a source that needs Python's headers",
    "B126": "a [build] table, which the public kernel-builder refuses",
    "B127": "a call to a function that is newer than glibc 2.28",
    "B128": "a table of foreign sources, which the public kernel-builder refuses",
    "B129": "a C++ standard that is older than that of torch's headers",
    "B130": "a key that the public kernel-builder refuses",
    "B131": "a condition that holds in no cell",
    "B132": "a foreign source that nothing uses",
    "B133": "a header of a library that the kernel does not name",
    "B134": "an edition that is a preview",
    "B135": "a pair of capabilities, which the public kernel-builder does not know",
    "B141": "a module of Python without 'python-abi'",
    "B142": "a line that keeps a kernel from one wheel for every Python",
    "B143": "a 'python-abi' that no source needs",
    "B144": "a module of Python with a name of its own",
    "B147": "a required GPU without code",
}


def page_of(code: str, pages: Path = PAGES) -> str:
    """Return the page of `code` as Markdown.

    Raises:
        BuilderError: there is no such code.
    """
    known = sorted(page.stem for page in pages.glob("B*.md"))
    if code not in known:
        near = f"the codes are {known[0]} to {known[-1]}" if known else "this installation has no documentation"
        raise BuilderError(f"no page explains '{code}'", help=near)
    return (pages / f"{code}.md").read_text(encoding="utf-8")
