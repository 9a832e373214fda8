"""`builder torch-day` where something is wrong: what it says, and that nothing is half-written."""

import io
import json
import subprocess
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from builder import pins, toml, torch_day
from builder.config.values import Version
from builder.environment.resolve import IndexFile, NoReleaseError, UnresolvedError
from builder.errors import BuilderError, NothingToDoError, ToolError
from builder.torch_day import proposal, read, rows, tables, wheel
from builder.torch_day.proposal import FileEdit, Proposal, ProposedLine
from builder.torch_day.torch_release import from_json, to_json
from builder.torch_day.wheel import RemoteError, open_wheel
from tests.given import servers
from tests.paths import TESTS

X86, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"


def proposed(release, texts, **options):
    """Return what a release changes, by the name of the file, and what a person has to look at."""
    found = torch_day.changes(release, texts, pins.load(), rows.RowOptions(**options))
    return {edit.name: edit for edit in found.edits}, found.notes


def test_a_release_is_read_back_as_it_was_written(release):
    assert from_json(to_json(release)) == release
    text = (TESTS / "data/torch-day/2.13.0.json").read_text(encoding="utf-8")
    assert "http" not in text.replace("https://download.pytorch.org/whl/", "")


def test_every_new_line_has_a_source(newer, texts):
    edits, _ = proposed(newer, texts)
    assert set(edits) == set(torch_day.FILES)
    for edit in edits.values():
        assert list(edit.added())
        assert all(line.source for _, line in edit.added())


def test_a_block_before_one_that_begins_alike_is_shown_whole():
    old = ("[[row]]", "a = 1", "", "[[row]]", "a = 2")
    new = ("[[row]]", "a = 3", "")
    for place in (0, 3):
        lines = [ProposedLine(text=text) for text in old]
        lines[place:place] = [ProposedLine(text=text, source="x") for text in new]
        edit = FileEdit(name="a.toml", old="\n".join(old) + "\n", new=tuple(lines))
        assert list(edit.added()) == [
            (place + at + 1, ProposedLine(text=text, source="x")) for at, text in enumerate(new)
        ]


def test_blank_lines_have_no_source_and_part_no_lines_of_one():
    old = ("a = 1", "", "z = 1")
    new = ("b = 1", "", "b = 2", "")
    sources = ("x", "y", "x", "z")
    lines = [ProposedLine(text=text) for text in old]
    lines[2:2] = [ProposedLine(text=text, source=source) for text, source in zip(new, sources, strict=True)]
    edit = FileEdit(name="a.toml", old="\n".join(old) + "\n", new=tuple(lines))
    assert [line for line in edit.diff("").splitlines() if line.startswith("#")] == ["# a.toml:3-5: x"]


def test_a_new_torch_gives_rows_functions_headers_and_a_standard(newer, texts):
    edits, _ = proposed(newer, texts)
    matrix = toml.loads(edits[rows.NAME].text)
    variants = [row["variant"] for row in matrix["release"]["cell"] if row["torch"] == "2.99"]
    assert variants == ["torch299-cxx11-cu139-x86_64-linux", "torch299-cxx11-cu139-aarch64-linux"]
    assert matrix["pythons"]["2.99"] == list(newer.pythons)
    shim = json.loads(edits[tables.SHIM].text)
    assert {library: of["torch_new_function"] for library, of in shim.items()} == dict.fromkeys(shim, "2.99")
    standards = toml.loads(edits[tables.STANDARDS].text)["standard"]
    assert standards[0] == {"torch": "2.99", "cxx": 23}
    assert "torch/zzz.h" in toml.loads(edits[tables.PYTHON_HEADERS].text)["torch"]
    toolkits = [line.text for _, line in edits["pins.toml"].added() if line.text.startswith("requires")]
    assert 'requires = ["cuda-toolkit[cccl,cudart,nvcc]==13.9.*"]' in toolkits


def test_what_a_person_has_to_look_at_is_named(newer, texts):
    lacking = replace(newer, shim={"libtorch_cpu": ("torch_new_function",)}, standard=None)
    notes = "\n".join(proposed(lacking, texts)[1])
    assert "compare `ptxas --help` of CUDA 13.9 with architectures.toml" in notes
    assert "libtorch_cpu.so lacks aoti_torch_check" in notes
    assert "does not say its C++ standard" in notes
    assert "add it to `pythons`" in notes
    fewer = "\n".join(proposed(replace(newer, pythons=newer.pythons[-1:]), texts)[1])
    assert "torch 2.99.0 has no wheel for cp310, " in fewer
    assert "has no wheel for cp310" not in notes


def test_a_diff_is_one_that_git_applies(newer, texts, tmp_path):
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    edits, notes = proposed(newer, texts)
    found = Proposal(edits=tuple(edits.values()), notes=notes)
    (tmp_path / "change.diff").write_text(found.diff(""), encoding="utf-8")
    subprocess.run(["git", "apply", "change.diff"], cwd=tmp_path, check=True)
    for edit in found.edits:
        assert (tmp_path / edit.name).read_text(encoding="utf-8") == edit.text


def test_a_dropped_torch_is_legacy_and_its_tvm_ffi_cells_stay(newer, texts):
    edits, notes = proposed(newer, texts, drop=("2.13",))
    matrix = toml.loads(edits[rows.NAME].text)
    before = [row for row in toml.loads(texts[rows.NAME])["release"]["cell"] if row["torch"] == "2.13"]
    kept = [row for row in matrix["release"]["cell"] if row["torch"] == "2.13"]
    assert kept == []  # other torches have each of its backends
    assert [row for row in matrix["legacy"]["cell"] if row["torch"] == "2.13"] == before
    after = {row.get("tvm-ffi-variant") for row in matrix["release"]["cell"]}
    for system in ("x86_64-linux", "aarch64-linux"):
        assert {f"tvm-ffi01-{compute}-{system}" for compute in ("cpu", "cu130", "cu132")} <= after
    assert "tvm-ffi01-cpu-aarch64-darwin" in after
    assert not [note for note in notes if note.startswith("row stays, since no other torch")]


def test_the_tvm_ffi_cell_of_a_toolkit_that_leaves_goes_to_the_next_one_of_its_backend(newer, texts):
    old = 'backend = "xpu", toolkit = "2025.3.2"'
    whole = texts[rows.NAME]
    (line,) = [line for line in whole.splitlines(keepends=True) if old in line]
    again = whole.replace(line, "").replace("[release]\ncell = [\n", f"[release]\ncell = [\n{line}")
    newest = ', tvm-ffi = "0.1", tvm-ffi-variant = "tvm-ffi01-xpu20260-x86_64-linux"'
    assert again.count(newest) == 1
    edits, _ = proposed(newer, {**texts, rows.NAME: again.replace(newest, "")}, drop=("2.12",))
    assert edits[rows.NAME].text.count(newest) == 1


def test_the_last_row_of_a_backend_on_a_system_stays_and_is_named(newer, texts):
    edits, notes = proposed(newer, texts, drop=("2.11",))
    release = toml.loads(edits[rows.NAME].text)["release"]["cell"]
    assert [row["backend"] for row in release if row["torch"] == "2.11"] == ["tpu"]
    (note,) = [note for note in notes if note.startswith("row stays, since no other torch")]
    assert 'backend = "tpu"' in note


def test_a_torch_without_rows_cannot_be_dropped(newer, texts):
    with pytest.raises(BuilderError, match=r"no row of the release set has torch '2\.0'"):
        proposed(newer, texts, drop=("2.0",))


def test_a_row_moves_from_the_preview_set(newer, texts):
    first, _ = proposed(newer, texts, into="preview")
    second, _ = proposed(newer, {**texts, rows.NAME: first[rows.NAME].text})
    moved = toml.loads(second[rows.NAME].text)
    assert not [row for row in moved["preview"]["cell"] if row["torch"] == "2.99"]
    assert len([row for row in moved["release"]["cell"] if row["torch"] == "2.99"]) == 2


def test_a_row_whose_wheels_are_seen_counts_as_tested(newer, texts):
    first, _ = proposed(newer, texts)
    text = first[rows.NAME].text
    marked = "".join(
        line.replace(" },", ", tested = false },") if 'torch = "2.99"' in line else line
        for line in text.splitlines(keepends=True)
    )
    assert marked.count("tested = false }") == text.count("tested = false }") + 2
    second, _ = proposed(newer, {**texts, rows.NAME: marked})
    assert second[rows.NAME].text == text


def test_files_without_edits_are_written(data, newer, texts):
    proposal.require_unedited(data, torch_day.FILES)
    edits, notes = proposed(newer, texts)
    proposal.write(Proposal(edits=tuple(edits.values()), notes=notes), data)
    assert {name: (data / name).read_text(encoding="utf-8") for name in edits} == {
        e.name: e.text for e in edits.values()
    }
    assert not list(data.glob(".*.part"))


def test_local_edits_are_not_written_over(data):
    (data / "matrix.toml").write_text("# mine\n", encoding="utf-8")
    with pytest.raises(NothingToDoError, match=r"files with local edits would be written over: matrix\.toml"):
        proposal.require_unedited(data, torch_day.FILES)


def test_files_outside_of_git_are_not_written_over(tmp_path):
    with pytest.raises(NothingToDoError, match="nobody can tell what was edited"):
        proposal.require_unedited(tmp_path, ("matrix.toml",))


def test_a_file_that_changed_meanwhile_leaves_all_as_they_were(data, newer, texts):
    (data / "torch-shim.json").write_text("{}", encoding="utf-8")
    with pytest.raises(NothingToDoError, match=r"changed meanwhile: torch-shim\.json"):
        proposal.write(torch_day.changes(newer, texts, pins.load(), rows.RowOptions()), data)
    assert (data / "matrix.toml").read_text(encoding="utf-8") == texts["matrix.toml"]


def test_a_file_that_cannot_be_written_leaves_all_as_they_were(tmp_path, monkeypatch):
    (tmp_path / "a.toml").write_text("old\n", encoding="utf-8")
    (tmp_path / "b.toml").write_text("old\n", encoding="utf-8")
    edits = tuple(
        FileEdit(name=name, old="old\n", new=(ProposedLine(text="new", source="x"),)) for name in ("a.toml", "b.toml")
    )
    rename = Path.replace

    def full(self, target):
        if target.name == "b.toml":
            raise OSError(28, "no space left")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ToolError, match="cannot write the data files"):
        proposal.write(Proposal(edits=edits, notes=()), tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {
        "a.toml": "old\n",
        "b.toml": "old\n",
    }


def test_an_index_that_did_not_answer_is_an_error_of_writing(release):
    away = replace(release, away=("https://example.org/cu126: no route to host",))
    torch_day.require_answers(away, partial=True)
    with pytest.raises(ToolError, match="an index did not answer, so rows and pins may be missing") as refused:
        torch_day.require_answers(away, partial=False)
    assert "TORCH_DAY=--partial" in refused.value.help


ASKED = {"pins": pins.load(), "env": {}, "libraries": (), "progress": lambda _: None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(read.Indexes):
    """Answers each requirement with a file, or with an error."""

    answers: dict

    def files(self, requirement, **_):
        found = self.answers.get(requirement, ())
        if isinstance(found, Exception):
            raise found
        return tuple(IndexFile(file=name, sha256="0" * 64, place="x") for name in found)


@pytest.mark.parametrize(
    ("version", "answer", "message"),
    [
        pytest.param("2.x", AssertionError(), "'2.x' is not a version of torch", id="no version"),
        pytest.param("2.99", NoReleaseError("no"), "torch 2.99 is not published", id="not published"),
        pytest.param("2.99", UnresolvedError("timed out"), "uv: timed out", id="away"),
        pytest.param("2.99", (), "has no wheels", id="no wheels"),
        pytest.param("2.99", [f"torch-2.99.0-cp313-cp313-{ARM}.whl"], "2.99.0 has no wheel for x86_64-linux", id="ARM"),
        pytest.param(
            "2.99",
            ["torch-2.99.0-py3-none-any.whl", f"torch-2.99.0-pp310-pypy310_pp73-{X86}.whl", "torch.zip"],
            "has no wheel for x86_64-linux",
            id="no CPython",
        ),
    ],
)
def test_a_version_that_cannot_be_read_is_said(version, answer, message):
    with pytest.raises(BuilderError, match=message):
        read.read(version, Index(**ASKED, answers={f"torch=={version}.*": answer}))


def test_who_waits_for_a_slow_index_sees_which_one():
    heard = []
    away = dict.fromkeys(("torch==2.99.*", "torch"), UnresolvedError("timed out"))
    source = Index(**{**ASKED, "progress": heard.append}, answers=away)
    for ask in (lambda: read.read("2.99", source), lambda: read.newer(source, ["2.13"])):
        with pytest.raises(ToolError, match="the default index does not say"):
            ask()
    assert heard == [
        "asking the default index for torch 2.99",
        "asking the default index for a torch that is newer than 2.13",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("matrix.toml", "[release\n", r"matrix\.toml' cannot be read", id="not TOML"),
        pytest.param("torch-shim.json", "{", r"torch-shim\.json' cannot be read", id="not JSON"),
        pytest.param("matrix.toml", None, r"cannot read '.*matrix\.toml': No such file", id="absent"),
    ],
)
def test_data_that_cannot_be_read_is_said(data, name, text, message):
    (data / name).unlink()
    if text is not None:
        (data / name).write_text(text, encoding="utf-8")
    with pytest.raises(BuilderError, match=message):
        torch_day.propose("2.99", data=data, options=rows.RowOptions(), environ={}, progress=lambda _: None)


def test_rows_in_another_layout_are_not_guessed_at(newer, texts):
    other = texts[rows.NAME].replace("[release]\ncell = [", "[release]\ncell = [ # all")
    with pytest.raises(BuilderError, match=r"matrix\.toml has no line 'cell = \[' below '\[release\]'"):
        proposed(newer, {**texts, rows.NAME: other})


def test_what_is_newer_is_named_from_the_oldest_on():
    known = {"torch": "2.99.0", "torch<2.99": "2.98.1", "torch<2.98": "2.13.0"}
    source = Index(
        **ASKED, answers={name: [f"torch-{version}-cp313-cp313-{X86}.whl"] for name, version in known.items()}
    )
    assert read.newer(source, ["2.13", "2.9"]) == ("2.98.1", "2.99.0")
    with pytest.raises(NothingToDoError, match=r"no torch is newer than 2\.99"):
        read.newer(source, ["2.99"])


def test_a_patch_of_the_newest_torch_that_is_not_pinned_is_new():
    torch = (wheel.version.partition("+")[0] for wheel in pins.load().wheels.values() if wheel.name == "torch")
    major, minor, patch = max(tuple(map(int, version.split("."))) for version in torch)

    known = [f"{major}.{minor}", "2.9"]
    same, later = (f"{major}.{minor}.{number}" for number in (patch, patch + 1))
    assert read.newer(Index(**ASKED, answers={"torch": [f"torch-{later}-cp313-cp313-{X86}.whl"]}), known) == (later,)
    with pytest.raises(NothingToDoError, match="no torch is newer"):
        read.newer(Index(**ASKED, answers={"torch": [f"torch-{same}-cp313-cp313-{X86}.whl"]}), known)


def test_indexes_of_all_cuda_toolkits_are_asked():
    found = read.indexes_of(pins.load())
    assert {index.rpartition("/")[2] for index in found} >= {"cpu", "cu126", "cu130", "cu132", "rocm7.2", "xpu"}
    assert len(found) == len(set(found))


class Server(servers.Folder):
    """Give parts of a file; `/whole` gives all of it, `/broken` nothing."""

    content = b""

    def do_GET(self):  # noqa: N802  the name that `http.server` calls
        if self.path == "/broken":
            self.send_error(503)
            return
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = self.content if self.path == "/whole" else self.content[int(first) : int(last) + 1]
        self.send_response(200 if self.path == "/whole" else 206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@pytest.fixture
def address():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("torch/version.py", "cuda: Optional[str] = '13.4'\nhip: Optional[str] = None\n")
        made.writestr("torch-2.99.0.dist-info/METADATA", "Name: torch\nRequires-Dist: triton==9\n\ntext\n")
    Server.content = archive.getvalue()
    with servers.serving(Server) as address:
        yield address


def test_a_wheel_is_read_where_it_lies(address):
    with open_wheel("torch.whl", f"{address}/torch.whl", env={}) as archive:
        facts = wheel.versions(archive, "torch.whl")
        assert facts.toolkits == {"cuda": "13.4"}
        assert facts.requires == ("triton==9",)
        with pytest.raises(ToolError, match=r"'torch\.whl' has no 'torch/share/cmake/Torch/TorchConfig\.cmake'"):
            wheel.everything(archive, "torch.whl", ())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        pytest.param("/whole", "does not give parts of files", id="no ranges"),
        pytest.param("/broken", "cannot fetch 'torch.whl'", id="broken"),
    ],
)
def test_a_server_that_does_not_serve_is_said(address, path, message):
    with pytest.raises(RemoteError, match=message):
        open_wheel("torch.whl", f"{address}{path}", env={})


def test_headers_reach_python_s_through_others():
    headers = {
        "torch/a.h": "#include <Python.h>",
        "torch/b.h": '#include "a.h"',
        "torch/c.h": "# include <torch/b.h>",
        "torch/d.h": "// #include <torch/b.h>",
        "torch/torch.h": "#include <torch/a.h>",
        "other.h": "#include <Python.h>",
    }
    assert wheel.with_python(headers) == ("torch/a.h", "torch/b.h", "torch/c.h")


def test_a_later_standard_keeps_its_place(release, texts):
    older = replace(release, version="2.5.0", standard=18)
    found = toml.loads(tables.standards(older, texts[tables.STANDARDS]).text)["standard"]
    assert [Version(entry["torch"]) for entry in found] == [Version("2.12"), Version("2.5"), Version("2.1")]
