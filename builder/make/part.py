"""Compile some objects of a cell into the cache, for the machine that links them all."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from builder import json_text
from builder.errors import BuilderError

_COUNTS = "part.json"
_SPELLING = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})", re.ASCII)

# Runs in the sandbox: CMake configures the whole project, and ninja makes the objects of one source, or every
# n-th object, the slowest kinds first.
_FRONTEND = """
import json, os, subprocess, sys
base, arguments, wanted = sys.argv[1:]
source, build, wanted = f"{base}/src", f"{base}/build", json.loads(wanted)
configured = subprocess.run(["cmake", "-S", source, "-B", build, *json.loads(arguments)]).returncode
if configured != 0:
    sys.exit(configured)
said = subprocess.run(["ninja", "-C", build, "-t", "compdb"], check=True, capture_output=True, text=True).stdout
rules = [rule for rule in json.loads(said[said.find("[\\n"):]) if rule["output"].endswith(".o")]
rules.sort(key=lambda rule: (not rule["file"].endswith(".cu"), -os.path.getsize(rule["file"]), rule["output"]))
if "source" in wanted:
    chosen = [rule for rule in rules if rule["file"] == f"{source}/{wanted['source']}"]
else:
    chosen = rules[wanted["number"] - 1 :: wanted["of"]]
mine = [rule["output"] for rule in chosen]
with open(f"{base}/part.json", "w", encoding="utf-8") as file:
    json.dump({"mine": len(mine), "all": len(rules)}, file)
sys.exit(subprocess.run(["ninja", "-C", build, *mine]).returncode if mine else 0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPart:
    """One of several equal parts, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "BuildPart":
        """Parse a part such as `1/4`.

        Raises:
            BuilderError: the text is not a part, or its number is too large.
        """
        match = _SPELLING.fullmatch(text)
        if match is None or int(match[1]) > int(match[2]):
            raise BuilderError(f"'{text}' is not a part such as 1/4", help="write NUMBER/COUNT; the first is 1")
        return cls(number=int(match[1]), of=int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The objects of one source."""

    source: str
    """Its path in the project."""


def frontend(python: Path, part: BuildPart | SourceFile, *, base: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that configures a project and compiles a part of it; `base` is the scratch directory."""
    return [str(python), "-c", _FRONTEND, str(base), json_text.line(list(arguments)), json_text.line(asdict(part))]


def counts(scratch: Path) -> tuple[int, int]:
    """Return the number of objects in the part, and of all objects."""
    found = json_text.read(scratch / _COUNTS)
    return found["mine"], found["all"]
