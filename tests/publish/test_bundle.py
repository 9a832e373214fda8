import json
import os
import stat

import pytest
from kernels._rust import Digest, Metadata

from builder.cli import run
from builder.matrix import rows
from builder.matrix.variant import Variant
from builder.publish import bundle, card
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes
from tests.given.repositories import git
from tests.wheels import make, package, rewritten, tag_of

CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
METADATA = "relu/metadata.json"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAMES = [
    *sorted({row.variant for row in rows() if row.variant}),
    *sorted({row.tvm_ffi_variant for row in rows() if row.tvm_ffi_variant}),
    "torch-stable-abi210-cu130-x86_64-linux",
    "torch-stable-abi210-metal-aarch64-darwin",
    "torch-cuda",
    "torch-npu",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_wheel_gives_its_variant_back(name):
    variant = Variant.parse(name)
    assert Variant.of_wheel(variant.label, tag_of(variant).split("-")[2]) == variant


@pytest.mark.parametrize(
    ("label", "platform"),
    [
        pytest.param("torch213.cxx11.cpu", "any", id="compiled for any platform"),
        pytest.param("torch.cuda", "manylinux_2_28_x86_64", id="noarch for one platform"),
        pytest.param("torch213.cpu", "manylinux_2_28_x86_64", id="no cxx11 on linux"),
        pytest.param("torch213.cxx11.cpu", "macosx_15_0_arm64", id="cxx11 on darwin"),
        pytest.param("torch213.cxx11.cpu", "manylinux_2_28_riscv64", id="unknown cpu"),
        pytest.param("cu130", "manylinux_2_28_x86_64", id="label of somebody else"),
        pytest.param("torch-stable-abi210-cpu", "manylinux_2_28_x86_64", id="a name and not a label"),
    ],
)
def test_a_label_that_is_of_no_variant_is_refused(label, platform):
    with pytest.raises(ValueError, match=r"is not|belongs to the names of torch on linux"):
        Variant.of_wheel(label, platform)


def test_each_wheel_becomes_a_directory_that_the_client_accepts(tmp_path):
    wheels = [make(tmp_path, "some-kernel", Variant.parse(name)) for name in NAMES]
    assert run(["bundle", *map(str, wheels), "--output", str(tmp_path / "build"), "--commit", COMMIT]) == 0
    assert sorted(path.name for path in (tmp_path / "build").iterdir()) == sorted([*NAMES, card.NAME])
    for name in NAMES:
        folder = tmp_path / "build" / name
        metadata = Metadata.read_from_file(folder / "metadata.json")
        assert str(metadata.name) == "some-kernel"
        assert (metadata.provenance.kernel.commit, metadata.provenance.kernel.dirty) == (COMMIT, False)
        metadata.digest.validate(Digest.hash_variant(metadata.digest.algorithm, folder))


def test_the_variants_go_to_the_folder_build_where_none_is_named(tmp_path, monkeypatch):
    wheel = make(tmp_path, "relu", CPU)
    monkeypatch.chdir(tmp_path)
    assert run(["bundle", str(wheel)]) == 0
    assert sorted(path.name for path in (tmp_path / "build").iterdir()) == sorted([card.NAME, str(CPU)])


def test_a_file_far_below_the_package_is_written_where_it_belongs(tmp_path):
    wheel = make(tmp_path, "relu", CPU, files=package("relu", CPU, more={"layers/a/b/c.py": Bytes(b"")}))
    assert run(["bundle", str(wheel), "--output", str(tmp_path / "build")]) == 0
    assert (tmp_path / "build" / str(CPU) / "layers/a/b/c.py").read_bytes() == b""


def test_the_folders_above_the_variants_are_made(tmp_path):
    output = tmp_path / "a" / "b" / "build"
    assert run(["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(output)]) == 0
    assert (output / str(CPU)).is_dir()


def test_a_bundle_of_no_wheel_is_refused(capsys):
    assert run(["bundle"]) == 2
    assert "WHEEL" in capsys.readouterr().err


def test_the_variants_of_a_folder_are_the_folders_that_are_named_so(tmp_path):
    for name in (str(CUDA), str(CPU), "tests", f"{CPU}.old"):
        (tmp_path / name).mkdir()
    (tmp_path / "torch-cuda").touch()
    assert bundle.variants_in(tmp_path) == (str(CPU), str(CUDA))
    assert bundle.variants_in(tmp_path / "absent") == ()


@pytest.mark.parametrize(("said", "expected"), [(False, False), (True, None), (None, None)])
def test_metadata_says_of_a_wheel_that_it_was_built_without_a_sandbox(tmp_path, said, expected):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU)])
    record = {"sha256": wheel.sha256, "sandbox": said}
    wheel.wheel.path.with_name(f"{wheel.wheel.path.name}.record.json").write_text(json.dumps(record))
    tree = bundle.lay_out([wheel])
    assert json.loads(tree[str(CPU)]["metadata.json"].read())["provenance"].get("sandbox") is expected


def test_modes_do_not_depend_on_the_umask(tmp_path):
    files = package("relu", CPU)
    wheel = make(tmp_path, "relu", CPU, files=files)
    before = os.umask(0o077)
    try:
        assert run(["bundle", str(wheel), "--output", str(tmp_path / "build")]) == 0
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "build" / str(CPU)).rglob("*")}
    assert modes == {0o644, 0o755}


def test_without_a_commit_metadata_names_none(tmp_path):
    tree = bundle.lay_out(kernel_wheel.read_all([make(tmp_path, "relu", CPU)]))
    assert "kernel" not in json.loads(tree[str(CPU)]["metadata.json"].read())["provenance"]


def test_the_commit_comes_from_the_checkout_of_the_kernel(tmp_path):
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    (kernel / "file").write_text("1")
    git(kernel, "init", "-q")
    git(kernel, "add", "file")
    git(kernel, "commit", "-qm", "x")
    assert bundle.commit_of(kernel) == bundle.Commit(id=git(kernel, "rev-parse", "HEAD"), dirty=False)
    (kernel / "untracked").write_text("1")
    assert bundle.commit_of(kernel).dirty is False
    (kernel / "file").write_text("2")
    assert bundle.commit_of(kernel).dirty is True


def test_a_kernel_outside_of_git_is_said(tmp_path, capsys):
    wheel = make(tmp_path, "relu", CPU)
    arguments = ["bundle", str(wheel), "--output", str(tmp_path / "build"), "--kernel", str(tmp_path)]
    assert run(arguments) == 0
    assert "is not in a git checkout" in capsys.readouterr().err


@pytest.mark.parametrize("commit", ["", "HEAD", "0123456", "G" * 40, "A" * 40], ids=str)
def test_what_is_not_a_commit_is_refused(commit, tmp_path, capsys):
    wheel = make(tmp_path, "relu", CPU)
    assert run(["bundle", str(wheel), "--output", str(tmp_path / "build"), "--commit", commit]) == 2
    assert "is not a commit" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()


def test_two_wheels_of_one_variant_are_refused(tmp_path, capsys):
    other = make(tmp_path, "relu", CPU, tag="cp39-abi3-manylinux_2_34_x86_64")
    wheels = [make(tmp_path, "relu", CPU), other, make(tmp_path, "relu", CUDA)]
    assert run(["bundle", *map(str, wheels), "--output", str(tmp_path / "build")]) == 2
    message = capsys.readouterr().err
    assert "two wheels are of one variant" in message
    assert other.name in message
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    "other",
    [pytest.param({"name": "gelu"}, id="kernel"), pytest.param({"name": "relu", "version": "2.0.0"}, id="version")],
)
def test_wheels_of_different_kernels_are_refused(tmp_path, capsys, other):
    wheels = [make(tmp_path, "relu", CPU), make(tmp_path, variant=CUDA, **other)]
    assert run(["bundle", *map(str, wheels), "--output", str(tmp_path / "build")]) == 2
    assert "different kernels or versions" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()


BROKEN = {
    "cut short": (lambda p: os.truncate(p, p.stat().st_size - 200), "not a readable wheel"),
    "a name that escapes": (lambda p: rewritten(p, lambda m: m.update({"../../evil.py": b"x"})), "unsafe name"),
    "a changed file": (lambda p: rewritten(p, lambda m: m.update({"relu/_ops.py": b"x"})), "does not have the hash"),
    "a file more": (lambda p: rewritten(p, lambda m: m.update({"relu/more.py": b"x"})), "is not listed in RECORD"),
    "many files more": (
        lambda p: rewritten(p, lambda m: m.update({f"relu/more{n}.py": b"x" for n in range(25)})),
        "is not listed in RECORD; and 5 more",
    ),
    "a file less": (lambda p: rewritten(p, lambda m: m.pop("relu/_ops.py")), "listed in RECORD and missing"),
    "a digest that is wrong": (
        lambda p: rewritten(p, lambda m: m.update({"relu/more.py": b"x"}), fits=True),
        "the digest in",
    ),
    "a backend that is another": (
        lambda p: rewritten(
            p, lambda m: m.update({METADATA: m[METADATA].replace(b'"type": "cpu"', b'"type": "cuda"')}), fits=True
        ),
        "says backend 'cuda'",
    ),
    "a kernel name that escapes": (
        lambda p: rewritten(
            p,
            lambda m: m.update({METADATA: m[METADATA].replace(b'"name": "relu"', b'"name": "../../evil"')}),
            fits=True,
        ),
        "'../../evil'",
    ),
    "a second package": (
        lambda p: rewritten(p, lambda m: m.update({"torch/__init__.py": b""}), fits=True),
        "it holds 'relu', 'torch'",
    ),
    "no metadata.json": (lambda p: rewritten(p, lambda m: m.pop(METADATA), fits=True), "one package"),
    "metadata.json that is none": (
        lambda p: rewritten(p, lambda m: m.update({METADATA: b"[]"}), fits=True),
        "is not a JSON object",
    ),
    "a file that is also a directory": (
        lambda p: rewritten(p, lambda m: m.update({"relu/layers": b""}), fits=True),
        "a file and a directory",
    ),
    "no file": (lambda p: p.with_name("absent.whl"), "is not a file"),
    "a name that is none of a wheel": (lambda p: p.rename(p.with_name("relu.whl")), "not named like a wheel"),
    "no label": (lambda p: p.rename(p.with_name(p.name.replace("+torch213.cxx11.cpu", ""))), "has no 'relu-1.0.0"),
}


@pytest.mark.parametrize(("spoil", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_wheel_is_refused_and_nothing_is_written(tmp_path, capsys, spoil, message):
    good = make(tmp_path, "relu", CUDA)
    bad = make(tmp_path, "relu", CPU)
    bad = spoil(bad) or bad
    assert run(["bundle", str(good), str(bad), "--output", str(tmp_path / "build")]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "build").exists()
    assert not (tmp_path.parent / "evil.py").exists()


IN_A_FOLDER = {name: case for name, case in BROKEN.items() if name != "no file"}


@pytest.mark.parametrize("command", ["index", "attest"])
@pytest.mark.parametrize(("spoil", "message"), IN_A_FOLDER.values(), ids=IN_A_FOLDER)
def test_a_broken_wheel_reaches_no_index_and_gets_no_statement(tmp_path, capsys, command, spoil, message):
    dist = tmp_path / "dist"
    dist.mkdir()
    bad = make(dist, "relu", CPU)
    wheels = [make(dist, "relu", CUDA), spoil(bad) or bad]
    arguments = [dist] if command == "index" else wheels
    assert run([command, *map(str, arguments), "--output", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert not (tmp_path / "out").exists()
    assert not (tmp_path.parent / "evil.py").exists()


def test_every_broken_wheel_is_named_in_one_run(tmp_path, capsys):
    wheels = [make(tmp_path, "relu", CPU), make(tmp_path, "relu", CUDA)]
    os.truncate(wheels[0], wheels[0].stat().st_size - 200)
    rewritten(wheels[1], lambda members: members.update({"../../evil.py": b"x"}))
    assert run(["bundle", *map(str, wheels), "--output", str(tmp_path / "build")]) == 2
    message = capsys.readouterr().err
    assert all(wheel.name in message for wheel in wheels)


def test_the_same_bundle_again_changes_nothing_and_other_files_are_kept(tmp_path, capsys):
    output = tmp_path / "build"
    arguments = ["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(output)]
    assert run(arguments) == 0
    before = (output / str(CPU)).stat().st_ino
    assert run(arguments) == 0
    assert (output / str(CPU)).stat().st_ino == before
    assert run(["bundle", str(make(tmp_path, "relu", CUDA)), "--output", str(output)]) == 0
    assert bundle.variants_in(output) == (str(CPU), str(CUDA))
    assert str(CPU) in (output / card.NAME).read_text()
    assert "was there" in capsys.readouterr().out


def test_a_variant_with_other_files_is_replaced_only_when_asked(tmp_path, capsys):
    output = tmp_path / "build"
    assert run(["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(output)]) == 0
    arguments = ["bundle", str(make(tmp_path, "relu", CPU, content="answer = 43\n")), "--output", str(output)]
    assert run(arguments) == 3
    assert "--force" in capsys.readouterr().err
    assert (output / str(CPU) / "__init__.py").read_text() == "answer = 42\n"
    assert run([*arguments, "--force"]) == 0
    assert (output / str(CPU) / "__init__.py").read_text() == "answer = 43\n"
    assert sorted(path.name for path in output.iterdir()) == [card.NAME, str(CPU)]


def test_what_a_killed_run_left_is_cleared(tmp_path):
    output = tmp_path / "build"
    (output / ".part" / str(CPU)).mkdir(parents=True)
    assert run(["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(output)]) == 0
    assert sorted(path.name for path in output.iterdir()) == [card.NAME, str(CPU)]


def test_an_output_that_cannot_be_written_is_said(tmp_path, capsys):
    (tmp_path / "build").write_text("")
    assert run(["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(tmp_path / "build")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_card_keeps_what_its_author_wrote(tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU)])
    text = f"---\nlicense: mit\ntags:\n  - own\n---\n\n# ReLU\n\n{card.USAGE}\n\n{card.VARIANTS}\n"
    filled = card.fill(text, wheel, variants=[str(CUDA), str(CPU)])
    assert filled.startswith("---\nlicense: mit\ntags:\n  - own\nlibrary_name: kernels\n---\n\n# ReLU\n")
    assert 'relu = get_kernel("<owner>/relu", version=1)' in filled
    assert filled.index(f"`{CPU}`") < filled.index(f"`{CUDA}`")
    assert "<!--" not in filled


def test_the_card_names_the_repository_that_was_given(tmp_path, capsys):
    arguments = ["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(tmp_path / "build")]
    assert run([*arguments, "--repo-id", "../x"]) == 2
    assert "is not a repository" in capsys.readouterr().err
    assert not (tmp_path / "build").exists()
    assert run([*arguments, "--repo-id", "team/relu"]) == 0
    assert 'get_kernel("team/relu", version=1)' in (tmp_path / "build" / card.NAME).read_text()
