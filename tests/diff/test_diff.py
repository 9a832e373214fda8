"""What changed between two wheels, read from their bytes, and what of it breaks."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from builder import cli
from builder.diff import changes, facts, ops
from builder.diff.changes import FactChange, VariantDifference
from builder.matrix.variant import Variant
from builder.wheel.archive import Bytes
from tests import wheels
from tests.given.device_code import LOAD, STORE, compiled, fatbin, image
from tests.given.kernels import linux
from tests.given.processes import tool
from tests.given.servers import serving_folder

VARIANT = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
LIBRARY = "_demo_cuda_0123456.abi3.so"
ROOMY, SPILLING = compiled(registers=40), compiled(registers=32, stack=8, moves=[(STORE, 4), (LOAD, 8)])
SCHEMA = b"\0tile(Tensor x, int size=1) -> Tensor\0"


def device(*contents, archs=(80, 90)):
    return fatbin(*(image(2, arch, content=each) for arch, each in zip(archs, contents, strict=False)))


@pytest.fixture
def make(tmp_path):
    """Write a wheel in a folder of its own, and return its path."""

    def write(name, *code, variant=VARIANT, requires=("torch==2.13.*",), files=(), version="1.0.0", **more):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        own = {LIBRARY: wheels.library(*(code or (device(ROOMY, ROOMY),))), **dict(files)}
        package = wheels.package("demo", variant, archs=["8.0", "9.0"], more=own)
        return wheels.make(folder, "demo", variant, files=package, requires=requires, version=version, **more)

    return write


@pytest.fixture
def diff(capsys):
    """Compare two builds; return the exit code, and the changes of the only variant by part and subject."""

    def run(before, after):
        code = cli.run(["diff", "--no-load", "--json", str(before), str(after)])
        (found,) = json.loads(capsys.readouterr().out)["variants"]
        return code, {(each["part"], each["subject"]): each for each in found["changes"]}

    return run


def test_a_wheel_does_not_differ_from_itself(make, capsys):
    path = str(make("a"))
    assert cli.run(["diff", "--no-load", path, path]) == 0
    assert f"{VARIANT}: nothing changed\n" in capsys.readouterr().out


def test_a_function_that_spills_is_shown_with_both_figures_and_breaks_nothing(make, diff):
    code, found = diff(make("a"), make("b", device(SPILLING, ROOMY)))
    change = found["device code", "8.0 tile(float*)"]
    assert (code, change["breaking"]) == (0, False)
    assert change["before"].startswith("40 registers, spills: none, 0 bytes of stack")
    assert change["after"].startswith("32 registers, spills: 4 bytes stored, 8 loaded, 8 bytes of stack")
    assert ("device code", "9.0 tile(float*)") not in found


def test_a_function_beyond_the_budget_of_its_kernel_breaks(make, diff):
    def limited(members):
        table = json.loads(members["demo/metadata.json"])
        members["demo/metadata.json"] = json.dumps({**table, "require": {"functions": [{"no-spills": True}]}}).encode()

    before, after = make("a"), make("b", device(SPILLING, ROOMY))
    for path in (before, after):
        wheels.rewritten(path, limited, fits=True)
    code, found = diff(before, after)
    assert code == 1
    assert found["library", "tile(float*)"]["breaks"] == "the audit finds it, by its rule 'functions'"
    assert diff(after, before)[0] == 0


def test_a_lost_architecture_and_its_gpus_break(make, diff):
    before, after = make("a"), make("b", device(ROOMY, archs=(90,)))
    code, found = diff(before, after)
    assert code == 1
    breaking = {subject for (_, subject), change in found.items() if change["breaking"]}
    assert {"demo/_demo_cuda.abi3.so, machine code for 8.0", "A100 (8.0)"} <= breaking
    assert diff(after, before)[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "breaks"),
    [
        pytest.param((), ("numpy",), True, id="new"),
        pytest.param(("numpy",), (), False, id="not required any more"),
        pytest.param(("numpy>=1",), ("numpy>=2",), True, id="a later bound"),
        pytest.param(("numpy>=2",), ("numpy>=1",), False, id="an earlier bound"),
        pytest.param(("numpy",), ("numpy<3",), True, id="an upper bound"),
        pytest.param(("numpy==1.2.*",), ("numpy==1.3.*",), True, id="another version"),
    ],
)
def test_a_requirement_breaks_where_it_lets_less_in(make, diff, before, after, breaks):
    code, found = diff(make("a", requires=("torch==2.13.*", *before)), make("b", requires=("torch==2.13.*", *after)))
    assert found["library", "numpy"]["breaking"] is breaks
    assert code == int(breaks)


def test_a_requirement_in_another_spelling_breaks_nothing(make, diff):
    code, _ = diff(make("a", requires=("zope.event",)), make("b", requires=("zope_event",)))
    assert code == 0


@pytest.mark.parametrize(
    ("before", "after", "breaks"),
    [
        pytest.param("cp39-abi3-manylinux_2_28_x86_64", "cp39-abi3-manylinux_2_34_x86_64", True, id="a newer glibc"),
        pytest.param("cp39-abi3-manylinux_2_34_x86_64", "cp39-abi3-manylinux_2_28_x86_64", False, id="an older glibc"),
        pytest.param("cp39-abi3-manylinux_2_28_x86_64", "cp310-abi3-manylinux_2_28_x86_64", True, id="a newer Python"),
        pytest.param("cp310-abi3-manylinux_2_28_x86_64", "cp39-abi3-manylinux_2_28_x86_64", False, id="older Python"),
        pytest.param("cp39-abi3-manylinux_2_28_x86_64", "py3-none-manylinux_2_28_x86_64", False, id="any Python"),
    ],
)
def test_a_tag_that_leaves_systems_out_breaks(make, diff, before, after, breaks):
    _, found = diff(make("a", tag=before), make("b", tag=after))
    assert found["library", "tags"]["breaking"] is breaks


def test_a_later_stable_abi_loses_the_torch_before_it(make, diff):
    older, newer = (Variant.parse(f"torch-stable-abi{version}-cu130-x86_64-linux") for version in (210, 212))
    before, after = (
        make(name, variant=variant, requires=("torch>=2.10",)) for name, variant in (("a", older), ("b", newer))
    )
    assert diff(before, after)[1]["library", "variant"]["breaking"]
    assert not diff(after, before)[1]["library", "variant"]["breaking"]


def test_the_identity_names_changed_sources_and_breaks_nothing(make, diff):
    code, found = diff(make("a"), make("b", files={"layers/more.py": Bytes(b"x = 1\n")}))
    assert (code, found["identity", "file layers/more.py"]["breaking"]) == (0, False)


def test_folders_are_compared_by_variant_and_a_lost_one_breaks(make, capsys):
    other = Variant.parse("torch212-cxx11-cu130-x86_64-linux")
    make("a")
    make("a", variant=other)
    after = make("b").parent
    assert cli.run(["diff", "--no-load", str(after.parent / "a"), str(after)]) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"{other}: lost" in lines
    assert lines[-3:] == ["variant result", f"{other} lost", f"{VARIANT} nothing changed"]
    assert cli.run(["diff", "--no-load", str(after), str(after.parent / "a")]) == 0


def test_markdown_has_a_row_for_each_change_and_no_markup_of_a_stranger(make, capsys):
    after = make("b", device(SPILLING, ROOMY), requires=("torch==2.13.*", "numpy"))
    assert cli.run(["diff", "--no-load", "--format", "markdown", str(make("a")), str(after)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "| **breaking** | library | `numpy` | `-` | `numpy` | it is required, and was not |" in lines
    assert all(line.count("|") == 7 for line in lines if line.startswith("|"))


@linux
def test_only_functions_of_its_own_are_exports_of_a_library_and_no_instances_of_templates(make, diff, tmp_path):
    paths = []
    for kind, name in (("int", "before"), ("long", "after")):
        text = f"template <class T> T twice(T x) {{ return x + x; }} {kind} {name}({kind} x) {{ return twice(x); }}"
        (tmp_path / "a.cpp").write_text(text)
        subprocess.run([tool("g++"), "-shared", "-fPIC", "-O0", "a.cpp", "-o", "a.so"], cwd=tmp_path, check=True)
        paths.append(make(name, files={LIBRARY: Bytes((tmp_path / "a.so").read_bytes())}))
    exported = {subject for _, subject in diff(*paths)[1] if subject.startswith("exports ")}
    assert exported == {"exports before(int)", "exports after(long)"}


@pytest.mark.parametrize("shown", [changes.text, changes.markdown])
def test_the_schemas_of_an_op_stand_whole_next_to_each_other(shown):
    before, after = "f(Tensor x) -> Tensor", "f(Tensor x, int n) -> Tensor"
    change = FactChange(part="ops", subject="f", before=before, after=after)
    said = shown([VariantDifference(variant="v", before="a", after="b", changes=(change,))])
    (line,) = (each for each in said.splitlines() if "Tensor x" in each)
    assert line.replace("`", "").replace(" | ", "  →  ").count(f"{before}  →  {after}") == 1


@pytest.fixture
def site(make, tmp_path):
    """An index with two versions of a kernel, and one of another kernel."""
    paths = [make("a"), make("b", device(SPILLING, ROOMY), version="1.1.0")]
    wheels.make(tmp_path / "b", "other", VARIANT)
    site = tmp_path / "site"
    assert cli.run(["index", *(str(path.parent) for path in paths), "--output", str(site)]) == 0
    return site, paths


def test_an_index_stands_for_a_version_or_the_newest_one_of_the_other_kernel(site, diff, capsys):
    folder, (old, new) = site
    capsys.readouterr()
    assert diff(f"{folder}==1.0.0", old) == (0, {})
    assert diff(folder, new) == (0, {})
    assert ("device code", "8.0 tile(float*)") in diff(f"{folder}==1.0.0", new)[1]
    with pytest.raises(SystemExit):
        sys.exit(cli.run(["diff", "--no-load", f"{folder}==3", str(new)]))
    assert f"'{folder}' has no demo 3\n  help: it has 1.0.0, 1.1.0" in capsys.readouterr().err


def test_an_index_at_a_url_is_fetched(site, diff, capsys):
    folder, (old, _) = site
    capsys.readouterr()
    with serving_folder(folder) as address:
        assert diff(f"{address}/==1.0.0", old) == (0, {})


def test_the_variants_of_a_hub_layout_are_compared(make, capsys, tmp_path):
    layouts = []
    for name, *code in (("a", device(ROOMY, ROOMY)), ("b", device(SPILLING, ROOMY))):
        layouts.append(str(tmp_path / f"layout of {name}"))
        assert cli.run(["bundle", str(make(name, *code)), "--output", layouts[-1]]) == 0
    capsys.readouterr()
    assert cli.run(["diff", "--no-load", *layouts]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == f"{VARIANT}: 1 change, none breaking"
    assert any(line.startswith("fine 8.0 tile(float*) 40 registers, spills: none") for line in lines)


def test_an_index_with_a_file_that_it_does_not_name_is_refused(site, capsys):
    folder, (old, _) = site
    (folder / "files" / old.name).write_bytes(b"other")
    assert cli.run(["diff", "--no-load", f"{folder}==1.0.0", str(old)]) == 2
    assert "is not the file that its builder-index.json names" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["nothing", "no wheels"])
def test_what_is_no_build_is_refused(tmp_path, what, capsys):
    (tmp_path / "no wheels").mkdir()
    assert cli.run(["diff", "--no-load", str(tmp_path / what), str(tmp_path / what)]) == 2
    assert what in capsys.readouterr().err


def test_the_python_api_is_compared_where_griffe_is_installed(make, diff):
    pytest.importorskip("griffe")
    api = functools.partial(lambda text: {"__init__.py": Bytes(text), "layers/__init__.py": Bytes(b"")})
    before = make("a", files=api(b"def tile(x, size=1): ...\ndef gone(): ...\n"))
    after = make("b", files=api(b"def tile(x): ...\ndef added(): ...\n"))
    code, found = diff(before, after)
    assert code == 1
    assert found["Python API", "demo.gone"]["breaking"]
    assert found["Python API", "demo.tile(size)"]["breaks"] == "parameter was removed"
    assert not found["Python API", "demo.added"]["breaking"]


def test_without_griffe_the_report_says_what_installs_it(make, capsys, monkeypatch):
    monkeypatch.setattr("builder.diff.python_api.find_spec", lambda _: None)
    cli.run(["diff", "--no-load", str(make("a")), str(make("b"))])
    assert "note: the Python API: griffe is not installed: python -m pip install" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "breaks"),
    [
        pytest.param(SCHEMA, b"", True, id="lost"),
        pytest.param(b"", SCHEMA, False, id="new"),
        pytest.param(SCHEMA, SCHEMA.replace(b"=1", b"=2"), True, id="changed, and nothing judges it"),
        pytest.param(SCHEMA, b"\0\0\0@" + SCHEMA[1:], None, id="after a number"),
    ],
)
def test_what_is_not_loaded_has_the_schemas_in_its_libraries(make, capsys, before, after, breaks):
    paths = [make(name, device(ROOMY, ROOMY) + text) for name, text in (("a", before), ("b", after))]
    code = cli.run(["diff", "--no-load", "--json", *map(str, paths)])
    (found,) = json.loads(capsys.readouterr().out)["variants"]
    changed = [each["breaking"] for each in found["changes"] if (each["part"], each["subject"]) == ("ops", "tile")]
    assert (code, changed) == (int(bool(breaks)), [] if breaks is None else [breaks])
    assert "neither build was loaded" in found["notes"][0]


OP = {"schema": "k::f(Tensor x) -> Tensor", "keys": ["CPU", "Meta"], "fake": True, "mutable": False, "fits": True}


@pytest.mark.parametrize(
    ("changed", "subject", "breaks"),
    [
        pytest.param({}, None, "", id="nothing"),
        pytest.param({"keys": ["CPU", "CUDA", "Meta"]}, "k::f, dispatch keys", "", id="a key more"),
        pytest.param({"keys": ["Meta"]}, "k::f, dispatch keys", "it has no kernel for CPU any more", id="a key less"),
        pytest.param({"fake": False}, "k::f, fake kernel", "torch.compile needs it", id="no fake kernel"),
        pytest.param({"schema": "k::f(Tensor x, int n=1) -> Tensor"}, "k::f", "", id="a schema that fits"),
        pytest.param({"schema": "k::f(Tensor x, int n) -> Tensor", "fits": False}, "k::f",
                     "torch's parser: calls of the schema before do not fit", id="a schema that does not"),
        pytest.param({"schema": "k::f(Tensor(a!) x) -> Tensor", "mutable": True}, "k::f",
                     "what it changes in place is different", id="in place"),
    ],
)  # fmt: skip
def test_what_the_dispatcher_says_of_an_op_breaks_where_a_call_would(changed, subject, breaks):
    found = [(each.subject, each.breaks) for each in ops.of_dispatcher({"k::f": OP}, {"k::f": {**OP, **changed}})]
    assert found == ([] if subject is None else [(subject, breaks)])


def test_an_op_that_nothing_registers_any_more_breaks():
    assert [each.breaking for each in ops.of_dispatcher({"k::f": OP}, {})] == [True]
    assert [each.breaking for each in ops.of_dispatcher({}, {"k::f": OP})] == [False]


def test_a_torch_that_is_not_here_is_said_and_loads_nothing(make, capsys, tmp_path):
    cli.run(["diff", "--json", "--store", str(tmp_path / "store"), "--python", sys._base_executable,  # noqa: SLF001
             str(make("a")), str(make("b"))])  # fmt: skip
    (found,) = json.loads(capsys.readouterr().out)["variants"]
    assert "only schemas in the libraries: " in found["notes"][0]


def test_a_name_that_leaves_its_folder_is_not_loaded(make, monkeypatch):
    def elsewhere(members):
        table = json.loads(members["demo/metadata.json"])
        members["demo/metadata.json"] = json.dumps({**table, "name": "/etc", "id": "/etc/passwd"}).encode()

    monkeypatch.setattr("builder.sandbox.why_unavailable", lambda: None)
    paths = [str(wheels.rewritten(make(name), elsewhere, fits=True)) for name in ("a", "b")]
    found = [facts.of(Path(path)) for path in paths]
    assert facts.module_of(facts.opened(Path(paths[0]))) == "demo"
    builds = [ops.Build(path=Path(path), facts=each, variant=VARIANT) for path, each in zip(paths, found, strict=True)]
    _, note = ops.compare(*builds, ops.Loading(store=Path(paths[0]).parent))
    assert "names no library" in note
