"""Environments made by the real uv from tiny wheels: no network, no compiler."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from builder.environment import pinned
from builder.errors import ToolError
from builder.pins import PinSet
from tests.given import servers
from tests.given.calls import raising
from tests.given.environments import NOWHERE, TAG, make, pinset
from tests.paths import ROOT
from tests.wheels import simple


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "links"


@pytest.fixture
def pins(folder):
    return pinset(simple(folder, "alpha"), simple(folder, "beta", version="2.1"))


@pytest.fixture
def links(folder):
    """Settings that name the folder with the wheels."""
    return {"PIP_FIND_LINKS": str(folder)}


@pytest.fixture
def index(tmp_path, folder):
    """Write a simple index of the wheels in the folder, and return its address."""

    def write():
        for path in folder.glob("*.whl"):
            page = tmp_path / "index" / path.name.split("-")[0] / "index.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            page.write_text(f'<!DOCTYPE html><a href="{path.as_uri()}#sha256={digest}">{path.name}</a>')
        return (tmp_path / "index").as_uri()

    return write


@pytest.fixture
def _leaves_nothing(tmp_path):
    yield
    folder = tmp_path / "store/environments"
    assert not folder.exists() or list(folder.iterdir()) == []


def test_an_environment_has_exactly_the_pinned_wheels(tmp_path, pins, links):
    made = make(tmp_path, pins, {**links, **NOWHERE})
    said = subprocess.check_output(
        [made.python, "-c", "import alpha, beta, sys; print(alpha.answer + beta.answer, sys.prefix)"], text=True
    )
    assert said.split() == ["84", str(made.path)]
    infos = {path.name for path in made.site_packages.glob("*.dist-info")}
    assert infos == {"alpha-1.0.dist-info", "beta-2.1.dist-info"}
    assert made.path == tmp_path / "store" / "environments" / pins.digest
    assert [path.name for path in made.path.parent.iterdir()] == [pins.digest]


@pytest.mark.parametrize("bytecode", [True, False])
def test_python_is_compiled_at_once_where_it_is_asked_for(tmp_path, pins, links, bytecode):
    made = make(tmp_path, pins, {**links, **NOWHERE}, bytecode=bytecode)
    assert bool(list(made.site_packages.rglob("*.pyc"))) is bytecode
    assert pinned.damage(made) is None


def test_what_builds_a_wheel_is_compiled_since_a_build_cannot_keep_its_bytecode(tmp_path, folder, links):
    pins = pinset(simple(folder, "scikit_build_core", module="{}/__init__.py"), simple(folder, "torch"))
    made = make(tmp_path, pins, {**links, **NOWHERE})
    assert [path.parent.parent.name for path in made.site_packages.rglob("*.pyc")] == ["scikit_build_core"]
    assert pinned.damage(made) is None


def test_an_environment_says_what_is_in_it(tmp_path, pins, links):
    content = json.loads((make(tmp_path, pins, links).path / "pins.json").read_text())
    assert content["python"] == TAG
    assert content["wheels"][0] == {
        "file": "alpha-1.0-py3-none-any.whl",
        "name": "alpha",
        "sha256": pins.wheels[0].sha256,
        "version": "1.0",
    }


def test_an_environment_is_made_once_and_needs_nothing_afterwards(tmp_path, pins, links):
    first = make(tmp_path, pins, links)
    changed = first.path.stat().st_ino
    said = []
    again = make(tmp_path, pins, NOWHERE, python=Path("/no/python"), progress=said.append)
    assert (again, said, again.path.stat().st_ino) == (first, [], changed)


def test_the_place_in_the_store_depends_on_the_pins_alone(tmp_path, folder, pins, links):
    one, two = (make(tmp_path, pins, links, store=name) for name in ("one", "two"))
    assert one.path.name == two.path.name == pins.digest
    assert pinset(simple(folder, "alpha", text="answer = 43\n")).digest != pins.digest


@pytest.mark.usefixtures("_leaves_nothing")
def test_a_wheel_with_a_wrong_hash_is_refused_and_nothing_installed(tmp_path, folder, pins, links):
    wrong = simple(folder, "alpha", text="answer = 43\n")
    with pytest.raises(ToolError) as error:
        make(tmp_path, pins, links)
    text = str(error.value)
    assert text.startswith("a wheel in a find-links folder is not what was pinned")
    for part in (str(folder), "alpha-1.0-py3-none-any.whl", pins.wheels[0].sha256, wrong.sha256, "help: "):
        assert part in text
    assert error.value.exit_code == 4


def test_every_wrong_wheel_is_named_at_once(tmp_path, folder, pins, links):
    simple(folder, "alpha", text="answer = 43\n")
    simple(folder, "beta", version="2.1", text="answer = 43\n")
    with pytest.raises(ToolError, match="2 wheels in a find-links folder"):
        make(tmp_path, pins, links)


def test_a_good_copy_in_another_folder_is_taken(tmp_path, folder, pins):
    bad = tmp_path / "bad"
    simple(bad, "alpha", text="answer = 43\n")
    made = make(tmp_path, pins, {"PIP_FIND_LINKS": f"{bad} {folder.as_uri()}"})
    assert "42" in (made.site_packages / "alpha.py").read_text()


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param(NOWHERE, id="unreachable index"),
        pytest.param({"UV_OFFLINE": "1"}, id="offline"),
        pytest.param({"PIP_NO_INDEX": "1"}, id="no index"),
    ],
)
@pytest.mark.usefixtures("_leaves_nothing")
def test_a_cold_store_without_network_names_the_missing_wheels(tmp_path, folder, pins, links, environ):
    (folder / "beta-2.1-py3-none-any.whl").unlink()
    with pytest.raises(ToolError) as error:
        make(tmp_path, pins, {**links, **environ})
    text = str(error.value)
    assert text.startswith("cannot get 1 of 2 pinned wheels\n  uv: ")
    assert "\n  --> beta-2.1-py3-none-any.whl\n" in text
    assert "alpha-1.0" not in text
    for remedy in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "HTTPS_PROXY"):
        assert remedy in text.partition("help: ")[2]
    assert error.value.exit_code == 4


def test_a_store_that_fetched_a_wheel_once_needs_no_network(tmp_path, pins, index):
    environ = {"PIP_INDEX_URL": index()}
    made = make(tmp_path, pins, environ)
    (made.path / pinned.MARKER).unlink()
    again = make(tmp_path, pins, {**environ, "UV_OFFLINE": "1"})
    assert (again.path / pinned.MARKER).exists()


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_CONFIG_FILE"])
def test_the_users_index_is_used(tmp_path, pins, index, variable):
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index()}\n")
    value = str(tmp_path / "pip.conf") if variable == "PIP_CONFIG_FILE" else index()
    assert (make(tmp_path, pins, {variable: value}).site_packages / "beta.py").exists()


def test_a_mirror_serves_what_an_index_out_of_reach_publishes(tmp_path, folder, pins):
    for wheel in pins.wheels:  # an index that has to be asked over HTTP
        page = folder / "simple" / wheel.name / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(f'<!DOCTYPE html><a href="/{wheel.file}#sha256={wheel.sha256}">{wheel.file}</a>')
    elsewhere = replace(pins.wheels[0], index="http://127.0.0.1:9/torch")
    with servers.serving_folder(folder) as mirror:
        made = make(tmp_path, pinset(elsewhere, pins.wheels[1]), {"PIP_INDEX_URL": f"{mirror}/simple"})
    assert (made.site_packages / "alpha.py").exists()


def test_a_wheel_comes_from_the_index_it_is_pinned_to(tmp_path, pins, index):
    wheels = (replace(wheel, index=index()) for wheel in pins.wheels)
    (tmp_path / "empty").mkdir()
    environ = {**NOWHERE, "PIP_INDEX_URL": (tmp_path / "empty").as_uri()}
    assert make(tmp_path, pinset(*wheels), environ).python.exists()


@pytest.mark.usefixtures("_leaves_nothing")
def test_an_index_that_serves_another_file_is_refused(tmp_path, folder, pins, index):
    wrong = simple(folder, "alpha", text="answer = 43\n")
    with pytest.raises(ToolError) as error:
        make(tmp_path, pins, {"PIP_INDEX_URL": index()})
    assert str(error.value).startswith("an index serves a file that is not the pinned one")
    assert pins.wheels[0].sha256 in str(error.value)
    assert wrong.sha256 in str(error.value)


def test_settings_that_change_what_is_installed_are_not_passed_on(tmp_path, pins, links):
    (tmp_path / "override.txt").write_text("alpha==9.9\n")
    others = {
        "UV_OVERRIDE": str(tmp_path / "override.txt"),
        "UV_NO_VERIFY_HASHES": "1",
        "UV_TARGET": str(tmp_path / "elsewhere"),
        "VIRTUAL_ENV": str(tmp_path / "mine"),
    }
    assert (make(tmp_path, pins, {**links, **others}).site_packages / "alpha-1.0.dist-info").is_dir()
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
def test_a_damaged_environment_is_made_again_and_said(tmp_path, pins, links, harm):
    made = make(tmp_path, pins, links)
    harm(made)
    said = []
    make(tmp_path, pins, links, progress=said.append)
    assert said[0].startswith(f"the environment {pins.digest[:12]} is damaged")
    assert (made.site_packages / "alpha.py").read_text() == "answer = 42\n"
    assert [path.name for path in made.path.parent.iterdir()] == [pins.digest]


@pytest.mark.usefixtures("_leaves_nothing")
def test_a_python_of_another_version_is_refused(tmp_path, folder, links):
    with pytest.raises(ToolError, match=r"is not the Python 3\.9"):
        make(tmp_path, PinSet("cp39", "x86_64-linux", (simple(folder, "alpha"),)), links)


@pytest.mark.usefixtures("_leaves_nothing")
def test_a_python_that_does_not_run_is_refused(tmp_path, pins, links):
    with pytest.raises(ToolError, match="uv cannot make an environment"):
        make(tmp_path, pins, links, python=tmp_path / "none")


SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    from builder.pins import PinnedWheel
    from tests.given.environments import make, pinset

    root, links, kill, *wheels = sys.argv[1:]
    names = [wheel.split(":") for wheel in wheels]
    known = [PinnedWheel(file=f, name=n, version=v, sha256=s) for f, n, v, s in names]

    def progress(line):
        print(line, flush=True)
        if kill == "kill":
            os.kill(os.getpid(), signal.SIGKILL)

    make(Path(root), pinset(*known), {"PIP_FIND_LINKS": links}, progress=progress)
"""


@pytest.fixture
def start(tmp_path, folder, pins):
    """Start another process that makes the environment."""

    def starting(*, kill=False):
        wheels = [f"{wheel.file}:{wheel.name}:{wheel.version}:{wheel.sha256}" for wheel in pins.wheels]
        argv = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path), str(folder), "kill" if kill else ""]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen([*argv, *wheels], env=env, stdout=subprocess.PIPE, text=True)

    return starting


def test_several_processes_at_once_make_an_environment_once(tmp_path, pins, start):
    started = [start() for _ in range(3)]
    said = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sum(text.count("installing") for text in said) == 1
    assert [path.name for path in (tmp_path / "store/environments").iterdir()] == [pins.digest]


def test_a_killed_run_leaves_nothing_that_stays(tmp_path, folder, pins, links, start):
    process = start(kill=True)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    environments = tmp_path / "store/environments"
    assert [path.name.startswith(f".{pins.digest}-") for path in environments.iterdir()] == [True]
    other = pinset(simple(folder, "gamma"))
    make(tmp_path, other, links)
    assert [path.name for path in environments.iterdir()] == [other.digest]
    make(tmp_path, pins, links)
    assert {path.name for path in environments.iterdir()} == {other.digest, pins.digest}


@pytest.mark.usefixtures("_leaves_nothing")
def test_an_interrupted_run_leaves_nothing(tmp_path, pins, links):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, pins, links, progress=raising(KeyboardInterrupt()))
