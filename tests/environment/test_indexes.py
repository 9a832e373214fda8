"""What pip's and uv's settings become."""

import os
import subprocess
import sys

import pytest

from builder.environment import indexes
from builder.errors import ToolError

BASE = {"PATH": "/bin", "PIP_CONFIG_FILE": os.devnull}


def env_of(**environ):
    return dict(indexes.read({**BASE, **environ}).env)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        pytest.param({"PIP_INDEX_URL": "https://m/s"}, {"UV_DEFAULT_INDEX": "https://m/s"}, id="index"),
        pytest.param(
            {"PIP_EXTRA_INDEX_URL": "https://a/s\n  https://b/s"},
            {"UV_EXTRA_INDEX_URL": "https://a/s https://b/s"},
            id="two extra indexes",
        ),
        pytest.param({"PIP_CERT": "/ca.pem"}, {"SSL_CERT_FILE": "/ca.pem"}, id="certificates"),
        pytest.param({"PIP_CLIENT_CERT": "/me.pem"}, {"SSL_CLIENT_CERT": "/me.pem"}, id="client certificate"),
        pytest.param({"PIP_PROXY": "http://p:1"}, {"ALL_PROXY": "http://p:1"}, id="proxy"),
        pytest.param({"PIP_TRUSTED_HOST": "m"}, {"UV_INSECURE_HOST": "m"}, id="trusted host"),
        pytest.param({"PIP_DEFAULT_TIMEOUT": "180"}, {"UV_HTTP_TIMEOUT": "180"}, id="timeout"),
        pytest.param({"PIP_NO_INDEX": "true"}, {"UV_NO_INDEX": "1"}, id="no index"),
        pytest.param({"PIP_KEYRING_PROVIDER": "subprocess"}, {"UV_KEYRING_PROVIDER": "subprocess"}, id="keyring"),
        pytest.param({"PIP_FIND_LINKS": "https://m/links"}, {"UV_FIND_LINKS": "https://m/links"}, id="remote links"),
        pytest.param({"UV_INDEX_HOUSE_PASSWORD": "x"}, {"UV_INDEX_HOUSE_PASSWORD": "x"}, id="index credentials"),
    ],
)
def test_a_setting_reaches_uv(setting, expected):
    env = env_of(**setting)
    assert {name: env.get(name) for name in expected} == expected
    assert not any(name.startswith("PIP_") for name in env)


@pytest.mark.parametrize(
    ("setting", "name", "expected"),
    [
        pytest.param(
            {"PIP_INDEX_URL": "https://pip", "UV_DEFAULT_INDEX": "https://uv"},
            "UV_DEFAULT_INDEX",
            "https://uv",
            id="index",
        ),
        pytest.param(
            {"PIP_INDEX_URL": "https://pip", "UV_INDEX_URL": "https://uv"}, "UV_DEFAULT_INDEX", None, id="old name"
        ),
        pytest.param({"PIP_CERT": "/pip", "SSL_CERT_FILE": "/mine"}, "SSL_CERT_FILE", "/mine", id="certificates"),
        pytest.param({"PIP_PROXY": "http://pip", "HTTPS_PROXY": "http://mine"}, "ALL_PROXY", None, id="proxy"),
        pytest.param({"UV_INDEX_STRATEGY": "first-index"}, "UV_INDEX_STRATEGY", "first-index", id="strategy"),
    ],
)
def test_uvs_own_settings_win(setting, name, expected):
    assert env_of(**setting).get(name) == expected


@pytest.mark.parametrize(
    "name", ["UV_OVERRIDE", "UV_CONSTRAINT", "UV_NO_VERIFY_HASHES", "UV_EXCLUDE_NEWER", "UV_PYTHON", "PYTHONPATH"]
)
def test_settings_that_change_what_is_installed_stay_out(name):
    assert name not in env_of(**{name: "x"})


def test_no_python_is_ever_downloaded():
    assert env_of(UV_PYTHON_DOWNLOADS="automatic")["UV_PYTHON_DOWNLOADS"] == "never"


def test_local_folders_are_looked_into_in_the_order_of_the_settings(tmp_path):
    for name in ("a", "b b", "c"):
        (tmp_path / name).mkdir()
    links = f"{tmp_path / 'a'} file://{tmp_path}/b%20b /no/such/folder"
    found = indexes.read({**BASE, "PIP_FIND_LINKS": links, "UV_FIND_LINKS": str(tmp_path / "c")})
    assert found.folders == (tmp_path / "a", tmp_path / "b b", tmp_path / "c")


def test_a_password_is_never_shown():
    found = indexes.read({**BASE, "PIP_INDEX_URL": "https://me:secret@m/s"})
    assert "secret" not in repr(found)
    assert found.own_index


def test_later_files_win_and_variables_win_over_files(tmp_path):
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[global]\nindex-url = https://first\ncert = /first\nproxy = http://first\n")
    second.write_text("[global]\nindex_url = https://second\n[install]\ncert = /second\n")
    env = indexes.read({**BASE, "PIP_PROXY": "http://variable"}, files=(first, second, tmp_path / "none")).env
    assert (env["UV_DEFAULT_INDEX"], env["SSL_CERT_FILE"], env["ALL_PROXY"]) == (
        "https://second",
        "/second",
        "http://variable",
    )


def test_a_broken_configuration_file_is_named(tmp_path):
    file = tmp_path / "pip.conf"
    file.write_text("index-url = https://no.section\n")
    with pytest.raises(ToolError, match="cannot read pip's settings in") as error:
        indexes.read(BASE, files=(file,))
    assert str(file) in str(error.value)


def test_the_files_are_those_of_pip(tmp_path):
    home = {"HOME": str(tmp_path)}
    user = [tmp_path / ".pip/pip.conf", tmp_path / ".config/pip/pip.conf"]
    assert [file for file in indexes.config_files(home) if tmp_path in file.parents][:2] == user
    assert indexes.config_files({**home, "PIP_CONFIG_FILE": os.devnull}) == ()
    named = tmp_path / "named.conf"
    named.touch()
    files = indexes.config_files({**home, "PIP_CONFIG_FILE": str(named)})
    assert files[-1] == named
    assert not set(user) & set(files)


def test_the_files_are_those_that_pip_says_it_reads():
    """Ask pip itself, where it is there: what it lists beside the variables is what is read here."""
    pip = pytest.importorskip("pip._internal.configuration")
    theirs = [file for kind, files in pip.get_configuration_files().items() for file in files]
    ours = {str(file) for file in indexes.config_files(dict(os.environ))}
    assert set(theirs) <= ours | {os.environ.get("PIP_CONFIG_FILE")}


def test_threads_that_look_for_uv_at_once_all_find_it():
    script = """
import sys, threading
from builder.environment import indexes
sys.setswitchinterval(1e-6)
barrier, found = threading.Barrier(16), []
def look():
    barrier.wait()
    found.append(indexes.uv_binary())
threads = [threading.Thread(target=look) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(found)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["16", "1"], done.stderr
