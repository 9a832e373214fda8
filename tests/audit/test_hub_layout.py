"""A folder in hub layout: its variants by the rules of wheels, and all of it by its kernel."""

import json
import os
import shutil
import zipfile

import pytest

from builder import cli
from builder.matrix.variant import Variant
from builder.publish import bundle
from builder.wheel import kernel_wheel
from tests import needs
from tests.cli.folders import write
from tests.wheels import make

CPU, CUDA = Variant.parse("torch-cpu"), Variant.parse("torch-cuda")


@pytest.fixture
def layout(tmp_path):
    """Lay two pure-Python wheels of a kernel out beside its build.toml."""
    root = write(tmp_path, "relu", "cpu", "cuda")
    config = root / "build.toml"
    config.write_text(config.read_text().replace("MIT", "Apache-2.0"))
    (tmp_path / "dist").mkdir()
    wheels = [make(tmp_path / "dist", "relu", variant) for variant in (CPU, CUDA)]
    bundle.write(bundle.lay_out(kernel_wheel.read_all(wheels)), root / "build", card="# relu\n")
    return root / "build"


def audit(capsys, *arguments):
    code = cli.run(["audit", "--json", *map(str, arguments)])
    out = capsys.readouterr()
    reports = json.loads(out.out)["wheels"] if out.out else []
    found = {(finding["file"], finding["symbol"]): finding for report in reports for finding in report["findings"]}
    return code, found, out.err


def change(folder, **values):
    path = folder / "metadata.json"
    table = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in table.items() if value is not None}, indent=2))


def test_what_bundle_lays_out_is_right(layout, capsys):
    assert audit(capsys, layout) == (0, {}, "")
    assert audit(capsys, layout.parent) == (0, {}, "")
    assert audit(capsys, layout / "torch-cpu", "--kernel", layout.parent) == (0, {}, "")
    assert cli.run(["audit", str(layout), "--complete"]) == 0
    out = capsys.readouterr().out
    assert "torch-cpu: ok (" in out
    assert "build: ok (1 rules: hub-layout)" in out


def test_the_public_client_agrees_on_the_digest(layout, capsys):
    client = pytest.importorskip("kernels._rust")
    metadata = client.Metadata.read_from_file(layout / "torch-cpu/metadata.json")
    metadata.digest.validate(client.Digest.hash_variant(metadata.digest.algorithm, layout / "torch-cpu"))
    (layout / "torch-cpu/__init__.py").write_text("answer = 43\n")
    (layout / "torch-cpu/more.py").write_text("")
    with pytest.raises(client.DigestValidationError) as refused:
        metadata.digest.validate(client.Digest.hash_variant(metadata.digest.algorithm, layout / "torch-cpu"))
    code, found, _ = audit(capsys, layout)
    assert code == 5
    assert {violation.path for violation in refused.value.violations} == {symbol for _, symbol in found}
    assert {file for file, _ in found} == {"torch-cpu/metadata.json"}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (".hidden", "left-over"),
        (".git/config", "digest does not name"),
        ("csrc/a.o", "left-over"),
        ("relu/__init__.py", "second"),
        ("other.abi3.so", "noarch wheel has no library|it is empty|not"),
        ("__pycache__/a.cpython-311.pyc", "bytecode"),
    ],
)
def test_what_does_not_belong_into_a_variant_is_found(layout, capsys, file, why):
    path = layout / "torch-cpu" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    code, found, _ = audit(capsys, layout)
    assert code == 5
    assert any(name in (f"torch-cpu/{file}", "torch-cpu/metadata.json") for name, _ in found)
    assert any(part in finding["why"] for finding in found.values() for part in why.split("|"))


def test_what_does_not_belong_beside_the_variants_is_found(layout, capsys):
    (layout / "torch28-cxx98-cpu-x86_64-linux").mkdir()
    (layout / ".part").mkdir()
    (layout / "notes.txt").write_text("")
    code, found, _ = audit(capsys, layout)
    assert code == 5
    assert {file for file, _ in found} == {"torch28-cxx98-cpu-x86_64-linux", ".part", "notes.txt"}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"license": "MIT"}, "license"),
        ({"python-depends": ["einops"]}, "python-depends"),
        ({"upstream": "https://example.org"}, "upstream"),
        ({"kernels-minver": "0.17.0"}, "kernels-minver"),
        ({"version": 2}, "version"),
        ({"name": "gelu"}, "name"),
        ({"id": "_gelu_cpu_0123456"}, "id"),
        ({"id": "_relu_cuda_0123456"}, "id"),
        ({"backend": {"type": "cuda"}}, "backend.type"),
        ({"digest": None, "license": None}, "license"),
    ],
)
def test_a_metadata_of_something_else_is_found(layout, capsys, values, key):
    change(layout / "torch-cpu", **values)
    code, found, _ = audit(capsys, layout)
    assert code == 5
    assert ("torch-cpu/metadata.json", key) in found


def test_a_variant_that_is_missing_is_named_and_an_error_where_all_are_wanted(layout, capsys):
    shutil.rmtree(layout / "torch-cuda")
    code, found, _ = audit(capsys, layout)
    assert (code, found["torch-cuda", "torch-cuda"]["severity"]) == (0, "warning")
    code, found, _ = audit(capsys, layout, "--complete")
    assert (code, found["torch-cuda", "torch-cuda"]["why"]) == (5, "this variant is missing")


def test_a_variant_that_the_config_has_not_is_named(layout, capsys):
    (layout / "torch-cuda").rename(layout / "torch-rocm")
    _, found, _ = audit(capsys, layout)
    assert found["torch-rocm", "torch-rocm"]["why"] == "build.toml has no such variant"
    assert ("torch-rocm/metadata.json", "backend.type") in found


@pytest.mark.parametrize("content", [None, "[]", "{", '{"name": "x"}', '{"name": 1, "version": true}'])
def test_a_variant_without_a_readable_metadata_is_refused(layout, capsys, content):
    path = layout / "torch-cpu/metadata.json"
    path.unlink() if content is None else path.write_text(content)
    code, found, _ = audit(capsys, layout)
    assert code == 5
    assert any(file == "torch-cpu/metadata.json" for file, _ in found)


def test_a_link_is_refused_and_the_others_are_judged(layout, capsys):
    (layout / "torch-cpu/secret").symlink_to("/etc/passwd")
    os.mkfifo(layout / "torch-cuda/pipe")
    code, _, said = audit(capsys, layout)
    assert code == 2
    assert "torch-cpu/secret' is not a plain file" in said
    assert "torch-cuda/pipe' is not a plain file" in said


def test_a_folder_without_variants_and_a_layout_of_no_known_kernel_are_said(tmp_path, layout, capsys):
    (tmp_path / "empty").mkdir()
    code, found, _ = audit(capsys, tmp_path / "empty")
    assert (code, [finding["why"] for finding in found.values()]) == (5, ["it has no variant"])
    shutil.copytree(layout, tmp_path / "alone/build")
    assert audit(capsys, tmp_path / "alone/build") == (0, {}, "")
    assert cli.run(["audit", str(tmp_path / "alone/build"), "--complete"]) == 2
    assert "name the kernel with --kernel" in capsys.readouterr().err


def test_a_library_is_judged_by_the_rules_of_wheels(compiler, make_wheel, tmp_path, capsys):
    needs.program("g++")
    variant = tmp_path / "torch-stable-abi210-cpu-x86_64-linux"
    for flags, rules in (((), set()), (("-Wl,-rpath,/opt",), {"manylinux"})):
        wheel = make_wheel(library=compiler.library("", *flags))
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith("demo/")]
            archive.extractall(tmp_path / "unpacked", names)
        shutil.rmtree(variant, ignore_errors=True)
        (tmp_path / "unpacked/demo").rename(variant)
        cli.run(["audit", "--json", str(variant)])
        (report,) = json.loads(capsys.readouterr().out)["wheels"]
        assert {finding["rule"] for finding in report["findings"]} == rules
        assert all(finding["file"].startswith(f"{variant.name}/_demo") for finding in report["findings"])
