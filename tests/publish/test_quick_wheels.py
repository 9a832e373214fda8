"""Wheels of quick builds: they say so, and are published only at a word."""

import json

import pytest

from builder import audit
from builder.cli import run
from builder.matrix.variant import Variant
from builder.metadata import METADATA_FILE, KernelMetadata, RebuildInputs
from builder.repro.inputs import Published
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes, Wheel
from tests.wheels import make, package

CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
REASON = "built for 9.0 alone"


def quick(folder, *, only=("9.0",), version="1.0.0.dev0"):
    files = package("relu", CUDA, archs=["9.0"])
    rendered = files.pop(METADATA_FILE).content
    content = {path: member.content for path, member in files.items()}
    inputs = RebuildInputs(project="0", framework="2.13", pins="1")
    metadata = KernelMetadata.read(rendered).built(content, inputs=inputs, only=only)
    files[METADATA_FILE] = Bytes(metadata.text.encode())
    folder.mkdir(exist_ok=True)
    return make(folder, "relu", CUDA, files=files, version=version)


def test_a_full_build_says_nothing(tmp_path):
    wheel = kernel_wheel.read(quick(tmp_path / "dist", only=(), version="1.0.0"))
    assert wheel.metadata.not_for_release is None
    assert "archs" not in wheel.metadata.table["build"]


def test_a_quick_build_says_for_what_it_is(tmp_path):
    wheel = kernel_wheel.read(quick(tmp_path / "dist", only=("8.0", "9.0a")))
    assert wheel.metadata.table["build"]["archs"] == ["8.0", "9.0a"]
    assert wheel.metadata.not_for_release == "built for 8.0, 9.0a alone"


@pytest.mark.parametrize("build", [None, [], "quick", {}, {"not-for-release": None}])
def test_what_is_no_reason_is_none(build):
    assert KernelMetadata({"build": build}).not_for_release is None
    assert KernelMetadata().not_for_release is None


def test_the_audit_notes_it_and_breaks_no_rule(tmp_path):
    report = audit.run(Wheel.read(quick(tmp_path / "dist")))
    (note,) = [finding for finding in report.findings if finding.severity == "note"]
    assert note.why == f"it is not for release: {REASON}"
    full = audit.run(Wheel.read(quick(tmp_path / "full", only=(), version="1.0.0")))
    assert "note" not in {finding.severity for finding in full.findings}


@pytest.mark.parametrize(
    "command", [["index", "{dist}", "--output", "{out}"], ["bundle", "{wheel}", "--output", "{out}"]]
)
def test_it_is_laid_out_only_at_a_word(tmp_path, capsys, command):
    wheel, out = quick(tmp_path / "dist"), tmp_path / "out"
    arguments = [part.format(dist=wheel.parent, wheel=wheel, out=out) for part in command]
    assert run(arguments) == 6
    said = capsys.readouterr().err
    assert f"error: not for release: {wheel} ({REASON})" in said
    assert "help: build without --archs, or pass --allow-quick" in said
    assert not out.exists()
    assert run([*arguments, "--allow-quick"]) == 0


def test_a_site_that_has_one_takes_others(tmp_path):
    wheel, out = quick(tmp_path / "dist"), tmp_path / "site"
    assert run(["index", str(wheel.parent), "--output", str(out), "--allow-quick"]) == 0
    full = quick(tmp_path / "full", only=(), version="1.0.0")
    assert run(["index", str(full.parent), "--output", str(out)]) == 0


def test_a_site_with_one_is_published_only_at_a_word(tmp_path, capsys):
    wheel, site, target = quick(tmp_path / "dist"), tmp_path / "site", tmp_path / "www"
    assert run(["index", str(wheel.parent), "--output", str(site), "--allow-quick"]) == 0
    assert run(["publish", str(site), str(target)]) == 6
    assert f"error: not for release: {wheel.name} ({REASON})" in capsys.readouterr().err
    assert not target.exists()
    assert run(["publish", str(site), str(target), "--allow-quick"]) == 0


def test_a_layout_with_one_reaches_the_hub_only_at_a_word(tmp_path, capsys):
    wheel, build = quick(tmp_path / "dist"), tmp_path / "build"
    assert run(["bundle", str(wheel), "--output", str(build), "--allow-quick"]) == 0
    assert run(["publish", str(build), "hub:team/relu"]) == 6
    assert f"error: not for release: {CUDA} ({REASON})" in capsys.readouterr().err


def test_a_statement_names_the_gpus(tmp_path):
    wheel = quick(tmp_path / "dist")
    assert run(["attest", str(wheel)]) == 0
    stated = json.loads(wheel.with_name(f"{wheel.name}.intoto.json").read_text())
    assert stated["predicate"]["buildDefinition"]["externalParameters"]["archs"] == ["9.0"]


def test_it_is_compared_with_a_build_for_the_same_gpus(tmp_path):
    assert Published.read(quick(tmp_path / "dist", only=("8.0", "9.0a"))).options == (
        *("--wheel-version", "1.0.0.dev0"),
        *("--archs", "8.0,9.0a"),
    )
    assert "--archs" not in Published.read(quick(tmp_path / "full", only=(), version="1.0.0")).options
