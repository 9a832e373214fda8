"""What nobody has is lacking; what goes wrong on the way is a failure, and a wrong hash the loudest."""

import functools
import hashlib
import json
import os

import pytest

from builder import cli, pins, toolchain
from builder.environment import fetch, pinned
from builder.errors import NotHereError, ToolError, WrongHashError
from builder.pins import PinnedWheel
from builder.plan.planner import Planner
from builder.run import run
from tests.given.calls import noting, raising
from tests.given.environments import NOWHERE, TAG, make, pinset
from tests.given.servers import answering
from tests.paths import ROOT
from tests.wheels import one_module

FILE = "alpha-1.0-py3-none-any.whl"
GOOD, OTHER = one_module("alpha"), one_module("alpha", text="answer = 43\n")
ALPHA = functools.partial(PinnedWheel, file=FILE, name="alpha", version="1.0", sha256=hashlib.sha256(GOOD).hexdigest())
RELU = ROOT / "examples" / "relu"


def serving(*, page_status=200, file_status=200, files=(FILE,), content=GOOD):
    """Return the answers of an index that has these files, all with the same content."""
    page = "".join(f'<a href="{file}">{file}</a>' for file in files).encode()
    one = page_status, page if page_status == 200 else b""
    other = file_status, content if file_status == 200 else b""
    return lambda path: other if path.endswith(".whl") else one


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(serving(content=OTHER), WrongHashError, id="another file"),
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
    with answering(answer) as url, pytest.raises(ToolError) as raised:
        make(tmp_path, pinset(ALPHA()), {"PIP_INDEX_URL": f"{url}/simple"})
    assert type(raised.value) is error


def test_an_index_out_of_reach_is_a_failure_and_says_what_to_set_without_a_network(tmp_path):
    with pytest.raises(ToolError) as raised:
        make(tmp_path, pinset(ALPHA()), NOWHERE)
    assert type(raised.value) is ToolError
    assert "PIP_NO_INDEX=1" in raised.value.help


def test_cells_of_one_run_ask_an_index_out_of_reach_once_and_are_told_together(tmp_path, monkeypatch, capsys):
    runs = []
    monkeypatch.setattr(fetch, "run", noting(run, runs))
    nowhere, options = "http://127.0.0.1:9", ("-q", "--json", "--set", "all")
    assert build(tmp_path, monkeypatch, *options, PIP_INDEX_URL=f"{nowhere}/simple", ALL_PROXY=nowhere) == 4
    out, err = capsys.readouterr()
    failed = [cell["reason"].splitlines()[0] for cell in json.loads(out) if cell["status"] == "failed"]
    publishers = {reason.rpartition(" from ")[2] for reason in failed if " from " in reason}
    assert len(failed) > len(set(failed))
    asked = [argv for argv in runs if "--offline" not in argv]
    assert len(asked) == 1 + len(publishers)  # the user's own index, and each publisher's
    assert sum(line.startswith("error: cannot get ") for line in err.splitlines()) == len(set(failed))


@pytest.mark.parametrize("variable", ["PIP_NO_INDEX", "UV_OFFLINE"])
def test_without_an_index_what_is_missing_is_lacking(tmp_path, variable):
    with answering(serving()) as url, pytest.raises(NotHereError):
        make(tmp_path, pinset(ALPHA()), {"PIP_INDEX_URL": f"{url}/simple", variable: "1"})


def test_a_wrong_file_of_a_mirror_is_not_passed_over_for_a_right_one_elsewhere(tmp_path):
    with answering(serving(content=OTHER)) as mirror, answering(serving()) as publisher:
        wanted = pinset(ALPHA(index=f"{publisher}/simple"))
        with pytest.raises(WrongHashError):
            make(tmp_path, wanted, {"PIP_INDEX_URL": f"{mirror}/simple"})


@pytest.fixture
def tampered():
    """An index that has every pinned file by its name, with other content."""
    pages = {}
    for part in pins.load().wheels.values():
        name = part.name.lower().replace("_", "-")
        pages[name] = f'{pages.get(name, "")}<a href="{part.file}">{part.file}</a>'

    def answer(path):
        name = path.rstrip("/").rpartition("/")[2]
        if name.endswith(".whl"):
            return 200, one_module(*name.split("-")[:2])
        return (200, pages[name].encode()) if name in pages else (404, b"")

    with answering(answer) as url:
        yield f"{url}/simple"


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
    full = ToolError("uv could not install the pinned wheels\n  uv: error: No space left on device (os error 28)")
    monkeypatch.setattr(pinned, "make", raising(full))
    assert build(tmp_path, monkeypatch, *options) == 4
    assert "No space left on device" in capsys.readouterr().err


def test_a_plan_tells_lacking_from_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Planner, "record", raising(ToolError("'c++' does not run")))
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
    (tmp_path / "links").mkdir()
    if local:
        (tmp_path / "links" / file).write_bytes(GOOD)
    with answering(serving(files=() if local else (file,))) as url:
        environ = {"PIP_INDEX_URL": f"{url}/simple", "PIP_FIND_LINKS": str(tmp_path / "links")}
        made = make(tmp_path, pinset(ALPHA(file=file), system=system), environ)
    assert (made.site_packages / "alpha.py").is_file()
