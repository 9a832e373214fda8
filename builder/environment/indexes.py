"""Read the user's package indexes from the settings of pip and uv, and pass them to uv."""

import configparser
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from uv import find_uv_bin

from builder.errors import ToolError

_KEPT = frozenset(
    {
        *("UV_CACHE_DIR", "UV_CONFIG_FILE", "UV_NO_CONFIG", "UV_OFFLINE", "UV_LINK_MODE", "UV_KEYRING_PROVIDER"),
        *("UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY", "UV_NO_INDEX"),
        *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_INSECURE_HOST", "UV_REQUEST_TIMEOUT", "UV_PYTHON_INSTALL_DIR"),
    }
)
_KEPT_PREFIXES = ("UV_HTTP_", "UV_INDEX_", "UV_CONCURRENT_")
"""uv's settings about sources of files; others, such as UV_OVERRIDE, would change what is installed."""
_DROPPED = frozenset({"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_FIND_LINKS"})

_LISTS = frozenset({"extra-index-url", "find-links", "trusted-host"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finders:
    """The user's indexes and folders."""

    folders: tuple[Path, ...] = ()
    """Local find-links folders, in the order of the settings."""
    own_index: bool = False
    """Whether the user named an index, which may be a mirror of other indexes."""
    settings: Mapping[str, str] = field(repr=False)
    """Variables for uv; an address in them may contain a password, so they are never shown."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment for uv, which trusts the system's certificates, as pip does."""
        import ssl  # noqa: PLC0415  start-up time

        if sys.platform != "darwin" and ssl.get_default_verify_paths().cafile is None:
            return self.settings
        # A company's own authority is in the system's certificates. The second variable is the older one.
        return {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true", **self.settings}

    @property
    def with_folders(self) -> Mapping[str, str]:
        """The environment for uv if it is to choose files of the folders, too."""
        remote = self.env.get("UV_FIND_LINKS")
        links = ",".join([*map(str, self.folders), *([] if remote is None else [remote])])
        return {**self.env, "UV_FIND_LINKS": links} if links else self.env


# Before CPython 3.14, a thread that asks second gets an incomplete answer; uv and builder ask from several.
sysconfig.get_config_vars()


def uv_binary() -> str:
    """Return the path of the uv that was installed with builder.

    Raises:
        ToolError: it is missing.
    """
    try:
        return os.fspath(find_uv_bin())
    except FileNotFoundError as error:
        raise ToolError(
            "uv, which makes build environments, is not installed beside builder",
            help="install builder again with its dependencies: python -m pip install --force-reinstall uv",
        ) from error


def read(environ: Mapping[str, str], *, files: Sequence[Path] | None = None) -> Finders:
    """Read the variables and pip's files; uv reads its own files.

    Raises:
        ToolError: a file of pip's settings cannot be read.
    """
    pip = _pip_settings(environ, config_files(environ) if files is None else files)
    links = [*pip.get("find-links", "").split(), *environ.get("UV_FIND_LINKS", "").replace(",", " ").split()]
    folders = dict.fromkeys(folder for folder in map(_folder, links) if folder is not None)
    remote = dict.fromkeys(link for link in links if _folder(link) is None)
    own = {"UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL"} & environ.keys()
    env = {name: value for name, value in environ.items() if _is_kept(name)}
    for name, value in _translated(pip, environ).items():
        env.setdefault(name, value)
    if remote:
        env["UV_FIND_LINKS"] = ",".join(remote)
    env |= {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    return Finders(
        folders=tuple(folders),
        own_index=bool(own or {"index-url", "extra-index-url"} & pip.keys()),
        settings=env,
    )


def config_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files of pip's settings; later ones override earlier ones."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return ()
    # Unchanged if the home folder is unknown; pathlib would raise.
    home = Path(os.path.expanduser(environ.get("HOME", "~")))  # noqa: PTH111
    shared = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    machine = [*(Path(folder, "pip/pip.conf") for folder in shared.split(":")), Path("/etc/pip.conf")]
    user = [home / ".pip/pip.conf", Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "pip/pip.conf")]
    if sys.platform == "darwin":
        machine.append(Path("/Library/Application Support/pip/pip.conf"))
        user.append(home / "Library/Application Support/pip/pip.conf")
    if named and Path(named).exists():
        user = []
    last = [Path(named)] if named else []
    return (*machine, *user, Path(sys.prefix, "pip.conf"), *last)


def _pip_settings(environ: Mapping[str, str], files: Sequence[Path]) -> dict[str, str]:
    """Return pip's settings for installing: files first, then `PIP_…` variables; later ones win."""
    settings: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            reason = str(error).splitlines()[0]
            raise ToolError(f"cannot read pip's settings in '{file}': {reason}", help="correct the file") from error
        except OSError:
            continue  # pip also skips a file that it may not read
        for section in filter(parser.has_section, ("global", "install")):
            settings |= {_key(key): value for key, value in parser.items(section)}
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            settings[_key(name.removeprefix("PIP_"))] = value
    return settings


def _key(name: str) -> str:
    key = name.lower().replace("_", "-")
    return {"default-timeout": "timeout"}.get(key, key)


def _folder(link: str) -> Path | None:
    """Return the local folder of a find-links entry; None for anything else."""
    if link.startswith("file:"):
        link = unquote(urlsplit(link).path)
    path = Path(os.path.expanduser(link))  # noqa: PTH111  as above
    return path if path.is_dir() else None


def _is_kept(name: str) -> bool:
    if name in _DROPPED or name.startswith("PIP_"):
        return False
    return not name.startswith("UV_") or name in _KEPT or name.startswith(_KEPT_PREFIXES)


def _translated(pip: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Translate pip's settings to uv's variables; uv's own settings win."""
    env = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # hashes decide what is installed, so any index may serve it
    if "index-url" in pip and "UV_INDEX_URL" not in environ:
        env["UV_DEFAULT_INDEX"] = pip["index-url"]
    if "proxy" in pip and not {"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} & environ.keys():
        env["ALL_PROXY"] = pip["proxy"]
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        env["UV_NO_INDEX"] = "1"
    if pip.get("keyring-provider") == "subprocess":
        env["UV_KEYRING_PROVIDER"] = "subprocess"
    for key, name in (
        ("extra-index-url", "UV_EXTRA_INDEX_URL"),
        ("trusted-host", "UV_INSECURE_HOST"),
        ("cert", "SSL_CERT_FILE"),
        ("client-cert", "SSL_CLIENT_CERT"),
        ("timeout", "UV_HTTP_TIMEOUT"),
    ):
        if key in pip:
            env[name] = " ".join(pip[key].split()) if key in _LISTS else pip[key]
    return env
