"""Environments made by the real uv from tiny wheels: no network, no compiler."""

import functools
import hashlib
import http.server
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from builder.environment import indexes, pinned
from builder.errors import ToolError
from builder.pins import PinSet
from tests.paths import ROOT
from tests.wheels import simple

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
PYTHON = Path(sys.executable)
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "5"}


def write_index(root, folder):
    """Write a simple index of the wheels in `folder`, and return its address."""
    for path in folder.glob("*.whl"):
        page = root / path.name.split("-")[0] / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        page.write_text(f'<!DOCTYPE html><a href="{path.as_uri()}#sha256={digest}">{path.name}</a>')
    return root.as_uri()


def pinset(*wheels):
    return PinSet(TAG, "x86_64-linux", tuple(sorted(wheels, key=lambda wheel: wheel.name)))


def settings(tmp_path, **environ):
    """Return finders that know nothing of this machine's own settings."""
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    return indexes.read({**base, **environ})


def is_empty(store):
    folder = store / "environments"
    return not folder.exists() or list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "links"


@pytest.fixture
def pins(folder):
    return pinset(simple(folder, "alpha"), simple(folder, "beta", version="2.1"))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def test_an_environment_has_exactly_the_pinned_wheels(tmp_path, folder, pins, store):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder), **NOWHERE)
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    said = subprocess.check_output(
        [made.python, "-c", "import alpha, beta, sys; print(alpha.answer + beta.answer, sys.prefix)"], text=True
    )
    assert said.split() == ["84", str(made.path)]
    infos = {path.name for path in made.site_packages.glob("*.dist-info")}
    assert infos == {"alpha-1.0.dist-info", "beta-2.1.dist-info"}
    assert made.path == store / "environments" / pins.digest
    assert [path.name for path in made.path.parent.iterdir()] == [pins.digest]


@pytest.mark.parametrize("bytecode", [True, False])
def test_python_is_compiled_at_once_where_it_is_asked_for(tmp_path, folder, pins, store, bytecode):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder), **NOWHERE)
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found, bytecode=bytecode)
    assert bool(list(made.site_packages.rglob("*.pyc"))) is bytecode
    assert pinned.damage(made, pins) is None


def test_what_builds_a_wheel_is_compiled_since_a_build_cannot_keep_its_bytecode(tmp_path, folder, store):
    pins = pinset(simple(folder, "scikit_build_core", module="{}/__init__.py"), simple(folder, "torch"))
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder), **NOWHERE)
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    assert [path.parent.parent.name for path in made.site_packages.rglob("*.pyc")] == ["scikit_build_core"]
    assert pinned.damage(made, pins) is None


def test_an_environment_says_what_is_in_it(tmp_path, folder, pins, store):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    content = json.loads((made.path / "pins.json").read_text())
    assert content["python"] == TAG
    assert content["wheels"][0] == {
        "file": "alpha-1.0-py3-none-any.whl",
        "name": "alpha",
        "sha256": pins.wheels[0].sha256,
        "version": "1.0",
    }


def test_an_environment_is_made_once_and_needs_nothing_afterwards(tmp_path, folder, pins, store):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    first = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    changed = first.path.stat().st_ino
    said = []
    gone = settings(tmp_path, **NOWHERE)
    again = pinned.make(pins, store_root=store, python=Path("/no/python"), finders=gone, progress=said.append)
    assert (again, said, again.path.stat().st_ino) == (first, [], changed)


def test_the_place_in_the_store_depends_on_the_pins_alone(tmp_path, folder, pins):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    one = pinned.make(pins, store_root=tmp_path / "one", python=PYTHON, finders=found)
    two = pinned.make(pins, store_root=tmp_path / "two", python=PYTHON, finders=found)
    assert one.path.name == two.path.name == one.digest == two.digest
    other = pinset(simple(folder, "alpha", text="answer = 43\n"))
    assert other.digest != pins.digest


def test_a_wheel_with_a_wrong_hash_is_refused_and_nothing_installed(tmp_path, folder, pins, store):
    wrong = simple(folder, "alpha", text="answer = 43\n")
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    with pytest.raises(ToolError) as error:
        pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    text = str(error.value)
    assert text.startswith("a wheel in a find-links folder is not what was pinned")
    for part in (str(folder), "alpha-1.0-py3-none-any.whl", pins.wheels[0].sha256, wrong.sha256, "help: "):
        assert part in text
    assert error.value.exit_code == 4
    assert is_empty(store)


def test_every_wrong_wheel_is_named_at_once(tmp_path, folder, pins, store):
    simple(folder, "alpha", text="answer = 43\n")
    simple(folder, "beta", version="2.1", text="answer = 43\n")
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    with pytest.raises(ToolError, match="2 wheels in a find-links folder"):
        pinned.make(pins, store_root=store, python=PYTHON, finders=found)


def test_a_good_copy_in_another_folder_is_taken(tmp_path, folder, pins, store):
    bad = tmp_path / "bad"
    simple(bad, "alpha", text="answer = 43\n")
    found = settings(tmp_path, PIP_FIND_LINKS=f"{bad} {folder.as_uri()}")
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    assert "42" in (made.site_packages / "alpha.py").read_text()


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param(NOWHERE, id="unreachable index"),
        pytest.param({"UV_OFFLINE": "1"}, id="offline"),
        pytest.param({"PIP_NO_INDEX": "1"}, id="no index"),
    ],
)
def test_a_cold_store_without_network_names_the_missing_wheels(tmp_path, folder, pins, store, environ):
    (folder / "beta-2.1-py3-none-any.whl").unlink()
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder), **environ)
    with pytest.raises(ToolError) as error:
        pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    text = str(error.value)
    assert text.startswith("cannot get 1 of 2 pinned wheels\n  uv: ")
    assert "\n  --> beta-2.1-py3-none-any.whl\n" in text
    assert "alpha-1.0" not in text
    for remedy in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "HTTPS_PROXY"):
        assert remedy in text.partition("help: ")[2]
    assert error.value.exit_code == 4
    assert is_empty(store)


def test_a_store_that_fetched_a_wheel_once_needs_no_network(tmp_path, folder, pins, store):
    index = write_index(tmp_path / "index", folder)
    first = settings(tmp_path, PIP_INDEX_URL=index)
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=first)
    (made.path / pinned.MARKER).unlink()
    offline = settings(tmp_path, PIP_INDEX_URL=index, UV_OFFLINE="1")
    again = pinned.make(pins, store_root=store, python=PYTHON, finders=offline)
    assert (again.path / pinned.MARKER).exists()


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_the_users_index_is_used(tmp_path, folder, pins, store, variable):
    index = write_index(tmp_path / "index", folder)
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=settings(tmp_path, **{variable: index}))
    assert (made.site_packages / "beta.py").exists()


def test_the_index_of_a_pip_configuration_file_is_used(tmp_path, folder, pins, store):
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nindex-url = {write_index(tmp_path / 'index', folder)}\n")
    found = settings(tmp_path, PIP_CONFIG_FILE=str(config))
    assert pinned.make(pins, store_root=store, python=PYTHON, finders=found).python.exists()


@pytest.fixture
def mirror(folder, pins):
    """An index of the pinned wheels that has to be asked over HTTP."""
    for wheel in pins.wheels:
        page = folder / "simple" / wheel.name / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(f'<!DOCTYPE html><a href="/{wheel.file}#sha256={wheel.sha256}">{wheel.file}</a>')
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()
        thread.join()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_mirror_serves_what_an_index_out_of_reach_publishes(tmp_path, pins, store, mirror):
    elsewhere = replace(pins.wheels[0], index="http://127.0.0.1:9/torch")
    found = settings(tmp_path, PIP_INDEX_URL=mirror, UV_HTTP_RETRIES="0")
    made = pinned.make(pinset(elsewhere, pins.wheels[1]), store_root=store, python=PYTHON, finders=found)
    assert (made.site_packages / "alpha.py").exists()


def test_a_wheel_comes_from_the_index_it_is_pinned_to(tmp_path, folder, pins, store):
    index = write_index(tmp_path / "index", folder)
    wheels = (replace(wheel, index=index) for wheel in pins.wheels)
    found = settings(tmp_path, **NOWHERE | {"PIP_INDEX_URL": (tmp_path / "empty").as_uri()})
    (tmp_path / "empty").mkdir()
    assert pinned.make(pinset(*wheels), store_root=store, python=PYTHON, finders=found).python.exists()


def test_an_index_that_serves_another_file_is_refused(tmp_path, folder, pins, store):
    wrong = simple(folder, "alpha", text="answer = 43\n")
    found = settings(tmp_path, PIP_INDEX_URL=write_index(tmp_path / "index", folder))
    with pytest.raises(ToolError) as error:
        pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    assert str(error.value).startswith("an index serves a file that is not the pinned one")
    assert pins.wheels[0].sha256 in str(error.value)
    assert wrong.sha256 in str(error.value)
    assert is_empty(store)


def test_settings_that_change_what_is_installed_are_not_passed_on(tmp_path, folder, pins, store):
    (tmp_path / "override.txt").write_text("alpha==9.9\n")
    found = settings(
        tmp_path,
        PIP_FIND_LINKS=str(folder),
        UV_OVERRIDE=str(tmp_path / "override.txt"),
        UV_NO_VERIFY_HASHES="1",
        UV_TARGET=str(tmp_path / "elsewhere"),
        VIRTUAL_ENV=str(tmp_path / "mine"),
    )
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    assert (made.site_packages / "alpha-1.0.dist-info").is_dir()
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(
            lambda made: (made.site_packages / "alpha.py").write_text(""), id="truncated file, also in uv's cache"
        ),
        pytest.param(lambda made: (made.site_packages / "alpha.py").unlink(), id="missing file"),
        pytest.param(lambda made: (made.path / "pins.json").write_text("{}"), id="other marker"),
        pytest.param(lambda made: (made.path / "pins.json").unlink(), id="no marker"),
        pytest.param(lambda made: (made.path / "bin/python").unlink(), id="no Python"),
    ],
)
def test_a_damaged_environment_is_made_again_and_said(tmp_path, folder, pins, store, harm):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    made = pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    harm(made)
    said = []
    pinned.make(pins, store_root=store, python=PYTHON, finders=found, progress=said.append)
    assert said[0].startswith(f"the environment {pins.digest[:12]} is damaged")
    assert (made.site_packages / "alpha.py").read_text() == "answer = 42\n"
    assert [path.name for path in made.path.parent.iterdir()] == [pins.digest]


def test_a_python_of_another_version_is_refused(tmp_path, folder, store):
    wheel = simple(folder, "alpha")
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    with pytest.raises(ToolError, match=r"is not the Python 3\.9"):
        pinned.make(PinSet("cp39", "x86_64-linux", (wheel,)), store_root=store, python=PYTHON, finders=found)
    assert is_empty(store)


def test_a_python_that_does_not_run_is_refused(tmp_path, folder, pins, store):
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    with pytest.raises(ToolError, match="uv cannot make an environment"):
        pinned.make(pins, store_root=store, python=tmp_path / "none", finders=found)
    assert is_empty(store)


SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    from builder.environment import indexes, pinned
    from builder.pins import PinnedWheel, PinSet

    store, links, kill, *wheels = sys.argv[1:]
    names = [wheel.split(":") for wheel in wheels]
    known = tuple(PinnedWheel(file=f, name=n, version=v, sha256=s) for f, n, v, s in names)
    pins = PinSet({tag!r}, "x86_64-linux", known)

    def progress(line):
        print(line, flush=True)
        if kill == "kill":
            os.kill(os.getpid(), signal.SIGKILL)

    found = indexes.read({{"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "HOME": store,
                          "PIP_FIND_LINKS": links}})
    pinned.make(pins, store_root=Path(store), python=Path(sys.executable), finders=found, progress=progress)
"""


def start(pins, *, store, folder, kill=False):
    """Start another process that makes the environment."""
    wheels = [f"{wheel.file}:{wheel.name}:{wheel.version}:{wheel.sha256}" for wheel in pins.wheels]
    script = textwrap.dedent(SCRIPT.format(tag=TAG))
    argv = [sys.executable, "-c", script, str(store), str(folder), "kill" if kill else "", *wheels]
    root = str(ROOT)
    return subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.PIPE, text=True)


def test_several_processes_at_once_make_an_environment_once(folder, pins, store):
    started = [start(pins, store=store, folder=folder) for _ in range(3)]
    said = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sum(text.count("installing") for text in said) == 1
    assert [path.name for path in (store / "environments").iterdir()] == [pins.digest]


def test_a_killed_run_leaves_nothing_that_stays(tmp_path, folder, pins, store):
    process = start(pins, store=store, folder=folder, kill=True)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    left = list((store / "environments").iterdir())
    assert [path.name.startswith(f".{pins.digest}-") for path in left] == [True]
    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    other = pinset(simple(folder, "gamma"))
    pinned.make(other, store_root=store, python=PYTHON, finders=found)
    assert [path.name for path in (store / "environments").iterdir()] == [other.digest]
    pinned.make(pins, store_root=store, python=PYTHON, finders=found)
    assert {path.name for path in (store / "environments").iterdir()} == {other.digest, pins.digest}


def test_an_interrupted_run_leaves_nothing(tmp_path, folder, pins, store):
    def interrupt(_):
        raise KeyboardInterrupt

    found = settings(tmp_path, PIP_FIND_LINKS=str(folder))
    with pytest.raises(KeyboardInterrupt):
        pinned.make(pins, store_root=store, python=PYTHON, finders=found, progress=interrupt)
    assert is_empty(store)
