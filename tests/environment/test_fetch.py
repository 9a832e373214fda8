"""What nobody has is lacking; what goes wrong on the way is a failure, and a wrong hash the loudest."""

import contextlib
import hashlib
import http.server
import io
import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from builder import cli, pins, toolchain
from builder.environment import fetch, indexes, pinned
from builder.errors import NotHereError, ToolError, WrongHashError
from builder.pins import PinnedWheel, PinSet
from builder.plan.planner import Planner
from builder.run import run
from tests.given import servers
from tests.paths import ROOT

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
FILE = "alpha-1.0-py3-none-any.whl"
RELU = ROOT / "examples" / "relu"


def wheel(name, version, *, answer=42):
    """Return the bytes of a wheel with one module."""
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": f"answer = {answer}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{member},,{len(text)}\n" for member, text in members.items()) + f"{info}/RECORD,,\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for member, text in {**members, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(member), text)
    return content.getvalue()


GOOD = wheel("alpha", "1.0")
PINS = PinSet(
    TAG, "x86_64-linux", (PinnedWheel(file=FILE, name="alpha", version="1.0", sha256=hashlib.sha256(GOOD).hexdigest()),)
)


@contextlib.contextmanager
def index(answer):
    """Serve a package index: `answer(path)` gives a status and a body."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = answer(self.path)
            self.send_response(status)
            kind = "application/octet-stream" if self.path.endswith(".whl") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    with servers.serving(Handler) as address:
        yield f"{address}/simple"


def page(*files):
    return "".join(f'<a href="{file}">{file}</a>' for file in files).encode()


def make(tmp_path, **environ):
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "UV_HTTP_RETRIES": "0"}
    found = indexes.read({**base, **environ})
    return pinned.make(PINS, store_root=tmp_path / "store", python=Path(sys.executable), finders=found)


def serving(*, page_status=200, file_status=200, files=(FILE,), content=GOOD):
    def answer(path):
        if path.endswith(".whl"):
            return file_status, content if file_status == 200 else b""
        return page_status, page(*files) if page_status == 200 else b""

    return answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(serving(content=wheel("alpha", "1.0", answer=43)), WrongHashError, id="another file"),
        pytest.param(serving(content=b"x" * 100), ToolError, id="no wheel at all"),
        pytest.param(serving(page_status=401), ToolError, id="401"),
        pytest.param(serving(page_status=403), ToolError, id="403"),
        pytest.param(serving(page_status=500), ToolError, id="500"),
        pytest.param(serving(file_status=403), ToolError, id="403 of the file"),
        pytest.param(serving(file_status=404), ToolError, id="404 of the file"),
        pytest.param(serving(file_status=503), ToolError, id="503 of the file"),
        pytest.param(serving(page_status=404), NotHereError, id="no such package"),
        pytest.param(serving(files=("alpha-0.9-py3-none-any.whl",)), NotHereError, id="no such version"),
        pytest.param(serving(files=("alpha-1.0-cp39-cp39-win_amd64.whl",)), NotHereError, id="no such platform"),
    ],
)
def test_only_what_nobody_has_is_lacking(tmp_path, answer, error):
    with index(answer) as url, pytest.raises(ToolError) as raised:
        make(tmp_path, PIP_INDEX_URL=url)
    assert type(raised.value) is error


def test_an_index_out_of_reach_is_a_failure_and_says_what_to_set_without_a_network(tmp_path):
    with pytest.raises(ToolError) as raised:
        make(tmp_path, PIP_INDEX_URL="http://127.0.0.1:9/simple", UV_HTTP_TIMEOUT="5")
    assert type(raised.value) is ToolError
    assert "PIP_NO_INDEX=1" in raised.value.help


def test_cells_of_one_run_ask_an_index_out_of_reach_once_and_are_told_together(tmp_path, monkeypatch, capsys):
    asked = []

    def counted(argv, **given):
        if argv[1] == "pip" and "--offline" not in argv:
            asked.append(argv)
        return run(argv, **given)

    monkeypatch.setattr(fetch, "run", counted)
    nowhere, options = "http://127.0.0.1:9", ("-q", "--json", "--set", "all")
    assert build(tmp_path, monkeypatch, *options, PIP_INDEX_URL=f"{nowhere}/simple", ALL_PROXY=nowhere) == 4
    out, err = capsys.readouterr()
    failed = [cell["reason"].splitlines()[0] for cell in json.loads(out) if cell["status"] == "failed"]
    publishers = {reason.rpartition(" from ")[2] for reason in failed if " from " in reason}
    assert len(failed) > len(set(failed))
    assert len(asked) == 1 + len(publishers)  # the user's own index, and each publisher's
    assert sum(line.startswith("error: cannot get ") for line in err.splitlines()) == len(set(failed))


@pytest.mark.parametrize("variable", ["PIP_NO_INDEX", "UV_OFFLINE"])
def test_without_an_index_what_is_missing_is_lacking(tmp_path, variable):
    with index(serving()) as url, pytest.raises(NotHereError):
        make(tmp_path, PIP_INDEX_URL=url, **{variable: "1"})


def test_a_wrong_file_of_a_mirror_is_not_passed_over_for_a_right_one_elsewhere(tmp_path):
    bad = serving(content=wheel("alpha", "1.0", answer=43))
    with index(bad) as mirror, index(serving()) as publisher:
        wanted = PinSet(
            TAG,
            "x86_64-linux",
            (PinnedWheel(file=FILE, name="alpha", version="1.0", sha256=PINS.wheels[0].sha256, index=publisher),),
        )
        base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
        found = indexes.read({**base, "PIP_INDEX_URL": mirror, "UV_HTTP_RETRIES": "0"})
        with pytest.raises(WrongHashError):
            pinned.make(wanted, store_root=tmp_path / "store", python=Path(sys.executable), finders=found)


@pytest.fixture
def tampered():
    """An index that has every pinned file by its name, with other content."""
    known = {}
    for part in pins.load().wheels.values():
        known.setdefault(part.name.lower().replace("_", "-"), []).append(part.file)

    def answer(path):
        name = path.rstrip("/").rpartition("/")[2]
        if name.endswith(".whl"):
            return 200, wheel(*name.split("-")[:2])
        files = known.get(name)
        return (404, b"") if files is None else (200, page(*files))

    with index(answer) as url:
        yield url


def build(tmp_path, monkeypatch, *arguments, **environ):
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name, value in {"PIP_CONFIG_FILE": os.devnull, "UV_HTTP_RETRIES": "0", **environ}.items():
        monkeypatch.setenv(name, value)
    where = ("--store", str(tmp_path / "store"), "--output", str(tmp_path / "dist"))
    return cli.run(["build", str(RELU), "--backend", "cpu", *where, *arguments])


@pytest.mark.parametrize("options", [(), ("-q",)], ids=["as usual", "quiet"])
def test_a_build_from_a_tampered_index_fails_loudly(tmp_path, tampered, monkeypatch, capsys, options):
    assert build(tmp_path, monkeypatch, *options, PIP_INDEX_URL=tampered) == 4
    said = capsys.readouterr().err
    assert "an index serves a file that is not the pinned one" in said
    assert "NOT WHAT WAS PINNED" in said.splitlines()[-2]


def test_a_build_without_an_index_skips_what_it_lacks(tmp_path, monkeypatch, capsys):
    assert build(tmp_path, monkeypatch, PIP_NO_INDEX="1") == 3
    assert "skipped" in capsys.readouterr().err


@pytest.mark.parametrize("options", [(), ("-q",)], ids=["as usual", "quiet"])
def test_a_disk_that_fills_while_installing_is_a_failure(tmp_path, monkeypatch, capsys, options):
    def full(*_, **__):
        raise ToolError("uv could not install the pinned wheels\n  uv: error: No space left on device (os error 28)")

    monkeypatch.setattr(pinned, "make", full)
    assert build(tmp_path, monkeypatch, *options) == 4
    assert "No space left on device" in capsys.readouterr().err


def test_a_plan_tells_lacking_from_wrong(tmp_path, monkeypatch, capsys):
    def broken(*_, **__):
        raise ToolError("'c++' does not run")

    monkeypatch.setattr(Planner, "record", broken)
    assert build(tmp_path, monkeypatch, "--dry-run", "--json") == 0
    plans = {plan["reason"]: plan["action"] for plan in json.loads(capsys.readouterr().out)}
    assert plans.pop("'c++' does not run") == "refuse"
    assert set(plans.values()) == {"skip"}  # cells of other systems


@pytest.mark.parametrize(
    "file",
    [
        pytest.param("alpha-1.0-py3-none-manylinux_2_28_aarch64.whl", id="another system"),
        pytest.param("alpha-1.0-cp313-cp313-manylinux_2_28_x86_64.whl", id="another Python"),
        pytest.param("alpha-1.0-cp313-cp313-manylinux_2_28_aarch64.whl", id="both"),
    ],
)
@pytest.mark.parametrize("local", [True, False], ids=["in a folder", "from an index"])
def test_what_a_build_only_links_to_may_be_for_another_system_or_python(tmp_path, monkeypatch, file, local):
    if TAG == "cp313":
        pytest.skip("that is the Python of these tests")
    monkeypatch.setattr(toolchain, "system", lambda: "x86_64-linux")
    system = "aarch64-linux" if "aarch64" in file else "x86_64-linux"
    wheels = (PinnedWheel(file=file, name="alpha", version="1.0", sha256=PINS.wheels[0].sha256),)
    monkeypatch.setattr(sys.modules[__name__], "PINS", PinSet(TAG, system, wheels))
    (tmp_path / "links").mkdir()
    if local:
        (tmp_path / "links" / file).write_bytes(GOOD)
    with index(serving(files=() if local else (file,))) as url:
        made = make(tmp_path, PIP_INDEX_URL=url, PIP_FIND_LINKS=str(tmp_path / "links"))
    assert (made.site_packages / "alpha.py").is_file()
