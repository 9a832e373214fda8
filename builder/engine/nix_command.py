"""Find this machine's `nix`, run it with the settings that a release needs, and read its log and its errors."""

import grp
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import resources, toml
from builder.environment import indexes
from builder.errors import BuilderError, ToolError
from builder.run import Completed, Processes, run
from builder.toolchain.tool import installing

LIBRARY = Path(resources.DATA).parent / "nix"
"""The Nix library, next to the Python modules."""
CONFIG = Path("/etc/nix/nix.conf")
HOST = "host"
NIXPKGS = "nixpkgs"

# The same setting for pip and for uv: indexes.py knows the files and variables of both.
_PIP_OF_UV = {
    "UV_DEFAULT_INDEX": "PIP_INDEX_URL",
    "UV_INDEX_URL": "PIP_INDEX_URL",
    "UV_EXTRA_INDEX_URL": "PIP_EXTRA_INDEX_URL",
    "UV_INSECURE_HOST": "PIP_TRUSTED_HOST",
    "UV_NO_INDEX": "PIP_NO_INDEX",
    "UV_FIND_LINKS": "PIP_FIND_LINKS",
}

_EXPLAINED = (
    (
        r"experimental (Nix )?feature '[^']+' is disabled",
        "this Nix does not allow the features that a build needs",
        "add 'experimental-features = nix-command flakes' to nix.conf",
    ),
    (
        r"No space left on device|not enough space|database or disk is full",
        "the disk of Nix's store is full",
        "free it with 'nix-collect-garbage', and build again: what was built is kept",
    ),
    (
        r"does not support the kernel namespaces|(cannot set up|cannot create)[^\n]*(namespace|sandbox)",
        "this machine cannot build in Nix's sandbox, which a release needs",
        "allow user namespaces, or pass --allow-unsandboxed for a wheel that is not released",
    ),
    (
        r"is not a (trusted user|trusted)|restricted setting",
        "this user may not set Nix's sandbox",
        "have 'sandbox = true' in nix.conf, or add the user to 'trusted-users'",
    ),
    (
        r"(unable to download|cannot fetch|Could ?n.t resolve|error fetching|unable to fetch)[^\n]*(nixpkgs|github)",
        "nixpkgs cannot be fetched from here",
        "build with this machine's own tools: --package-set host",
    ),
    (
        r"executing '[^']+': No such file or directory",
        "Nix's sandbox does not show the shell of the package set",
        "with a daemon: have the user in 'trusted-users' of nix.conf, or the 'sandbox-paths' in 'extra-sandbox-paths'",
    ),
    (
        r"getting attributes of path '(?P<path>[^']+)': No such file",
        "the sandbox is told to show a path that is not there",
        "correct 'extra-sandbox-paths' in nix.conf, or 'sandbox-paths' of the package set",
    ),
)


class NixError(ToolError):
    """Nix is missing or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nix:
    """A `nix` to run, and how."""

    program: str
    environ: Mapping[str, str] = field(repr=False)
    processes: Processes
    package_set: str = NIXPKGS
    sandboxed: bool = True

    @classmethod
    def find(
        cls, environ: Mapping[str, str], *, processes: Processes, package_set: str = NIXPKGS, sandboxed: bool = True
    ) -> "Nix":
        """Find Nix on PATH.

        Raises:
            NixError: there is none.
        """
        program = shutil.which("nix", path=environ.get("PATH"))
        if program is None:
            raise NixError(
                "--engine nix needs Nix, and 'nix' is not on PATH",
                help=f"{installing('nix')}; or build without: --engine local",
            )
        return cls(program=program, environ=environ, processes=processes, package_set=package_set, sandboxed=sandboxed)

    @property
    def options(self) -> tuple[str, ...]:
        """Options for every call: the settings that a release needs, whatever nix.conf says."""
        found = ["--extra-experimental-features", "nix-command flakes"]
        if self.sandboxed:
            found += ["--option", "sandbox", "true", "--option", "sandbox-fallback", "false"]
        else:
            found += ["--option", "sandbox-fallback", "true"]
        if self.package_set != NIXPKGS:
            settings = (LIBRARY / HOST if self.package_set == HOST else Path(self.package_set)) / "host.toml"
            table = toml.loads(settings.read_text(encoding="utf-8")) if settings.is_file() else {}
            paths = " ".join(map(str, table.get("sandbox-paths", [])))
            found += ["--option", "extra-sandbox-paths", paths, "--option", "substitute", "false"]
        return (*found, *building_users(self.environ))

    def variables(self) -> dict[str, str]:
        """Return the environment: the user's, with the settings of pip and uv for pip in Nix."""
        known = indexes.read(self.environ)
        env = dict(self.environ)
        for uv, pip in _PIP_OF_UV.items():
            if uv in known.env:
                env.setdefault(pip, known.env[uv])
        return env

    def evaluate(self, attribute: str, request: str) -> Any:
        """Return the value of an attribute of the library's `engine.nix`.

        Raises:
            BuilderError: it cannot be evaluated; the error contains Nix's message.
        """
        done = self.call("eval", "--json", *_expression(request), attribute)
        if done.returncode != 0:
            raise self.explain(done.output)
        return json.loads(done.output[done.output.index("{") :])

    def build(self, attributes: tuple[str, ...], request: str, *, on_line: Callable[[str], None]) -> Completed:
        """Build attributes of the library's `engine.nix`; if one fails, still build the others."""
        options = ("--no-link", "--keep-going", "--log-format", "internal-json", "-v")
        return self.call("build", *options, *_expression(request), *attributes, on_line=on_line)

    def call(self, *arguments: str, on_line: Callable[[str], None] | None = None) -> Completed:
        """Run `nix` with the options of every call."""
        argv = (self.program, *self.options, *arguments)
        return run(argv, env=self.variables(), on_line=on_line, processes=self.processes)

    def add_file(self, path: Path) -> None:
        """Add a pinned file to Nix's store, so that Nix does not download it.

        Raises:
            BuilderError: Nix does not accept the file.
        """
        self._add("sha256", str(path))

    def add_folder(self, path: Path) -> None:
        """Add a folder to Nix's store, under its own name and a hash of its content.

        Raises:
            BuilderError: Nix does not accept the folder.
        """
        self._add("--recursive", "sha256", str(path))

    def _add(self, *arguments: str) -> None:
        program = str(Path(self.program).with_name("nix-store"))
        argv = (program, *building_users(self.environ), "--add-fixed", *arguments)
        done = run(argv, env=dict(self.environ), processes=self.processes)
        if done.returncode != 0:
            raise self.explain(done.output)

    def explain(self, output: str) -> BuilderError:
        """Return Nix's output as an error; a known error gets an explanation."""
        lines = [line for line in output.splitlines() if not line.startswith(("warning:", "@nix"))]
        text = "\n".join(lines).strip()
        for pattern, message, remedy in _EXPLAINED:
            if re.search(pattern, text, re.IGNORECASE):
                last = "\n".join(f"  nix: {line}" for line in text.splitlines()[-5:])
                return NixError(f"{message}\n{last}", help=remedy)
        own = re.search(r"error: (?P<message>.*)", text, re.DOTALL)
        message = text if own is None else own["message"]
        return NixError(f"Nix failed: {message.strip()}")


def building_users(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options with which root builds without the group of build users, if that group is missing.

    Debian's `nix-bin` does not create it; a group that is named in a settings file is left alone.
    """
    told = CONFIG.read_text(encoding="utf-8", errors="replace") if CONFIG.is_file() else ""
    if os.geteuid() != 0 or "build-users-group" in told + environ.get("NIX_CONFIG", ""):
        return ()
    try:
        grp.getgrnam("nixbld")
    except KeyError:
        return ("--option", "build-users-group", "")
    return ()


def _expression(request: str) -> tuple[str, ...]:
    return ("--impure", "--file", str(LIBRARY / "engine.nix"), "--argstr", "request", request)


_PREFIX = "@nix "
_BUILD = 105
"""The activity type for the build of a derivation."""
_LINE, _PHASE = 101, 104
"""Result types: a line of a build's log, and the phase of a build."""
_ERROR = 0
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_LOST = re.compile(r"unexpected end-of-file|Broken pipe|Connection (reset|closed)|cannot connect to", re.IGNORECASE)
# Nix 2.8 reports the failure in one line, Nix 2.34 gives the exit code in the next.
_CODE = re.compile(r"'(?P<drv>/[^']+\.drv)'(?:[^\n]*|\.\s+Reason: builder) failed with exit code (?P<code>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line in the log of a build; without a derivation, a line of Nix itself."""

    drv: str | None
    text: str
    started: bool = False
    """Whether the build of the derivation starts; then the text is its name."""


@dataclass(slots=True, kw_only=True)
class NixLog:
    """Follows one run of Nix."""

    errors: list[str] = field(default_factory=list)
    """Nix's own errors, in order."""
    built: set[str] = field(default_factory=set)
    """Derivations whose build began."""
    codes: dict[str, int] = field(default_factory=dict)
    """Exit codes of the builders that failed."""
    lost: bool = False
    """Whether the connection to a remote builder ended before its build did."""
    _running: dict[int, str] = field(default_factory=dict)

    def take(self, line: str) -> LogLine | None:
        """Read a line; return it if it belongs to a build."""
        if not line.startswith(_PREFIX):
            self.lost = self.lost or _LOST.search(line) is not None
            return LogLine(drv=None, text=plain(line)) if line.strip() else None
        try:
            event = json.loads(line.removeprefix(_PREFIX))
        except ValueError:
            return None
        fields = event.get("fields")
        first = str(fields[0]) if isinstance(fields, list) and fields else None
        match event.get("action"):
            case "start" if event.get("type") == _BUILD and first is not None:
                self._running[int(str(event["id"]))] = first
                self.built.add(first)
                return LogLine(drv=first, text=name_of(first), started=True)
            case "stop":
                self._running.pop(event["id"], None)
            case "result" if event.get("type") in (_LINE, _PHASE) and first is not None:
                drv = self._running.get(int(str(event["id"])))
                return None if drv is None else LogLine(drv=drv, text=plain(first))
            case "msg":
                self._take_message(event)
        return None

    def _take_message(self, event: Mapping[str, object]) -> None:
        text = plain(str(event.get("raw_msg") or event.get("msg") or ""))
        failed = _CODE.search(plain(str(event.get("msg") or "")))
        if failed is not None:
            self.codes[failed["drv"]] = int(failed["code"])
        if event.get("level") == _ERROR:
            self.errors.append(text)
            self.lost = self.lost or _LOST.search(text) is not None


def plain(text: str) -> str:
    """Return a text without colours."""
    return _ESCAPE.sub("", text)


def name_of(drv: str) -> str:
    """Return the name in a derivation's path: the part after the hash."""
    return drv.rpartition("/")[2].partition("-")[2].removesuffix(".drv")
