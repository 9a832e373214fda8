"""Cells through Nix, as users run them: the flake and `builder build --engine nix`, in the sandbox."""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from builder import kernel
from builder.cli.arguments import default_store
from builder.make.record import BuildRecord, changes
from builder.plan import dry_run
from builder.plan.ask import Ask
from builder.store import Store
from tests.given.files import edit, only_wheel, sha256
from tests.given.kernels import PLAIN_CELL
from tests.given.kernels import TINY_CELL as STABLE
from tests.integration import hostile, nix_tools

builder, flake, plain = nix_tools.builder, nix_tools.flake, nix_tools.plain
relu, tiny, unbuilt = nix_tools.relu, nix_tools.tiny, nix_tools.unbuilt
TVM_FFI = "tvm-ffi01-cpu-x86_64-linux"

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
]


def test_a_cell_is_the_same_file_from_nix_and_from_the_local_engine(builder, tiny, tmp_path):
    told = builder(tiny, "--variant", STABLE, "--output", tmp_path / "nix", "--json", check=0).stdout
    builder(tiny, "--variant", STABLE, "--output", tmp_path / "local", engine=(), check=0)
    ours, theirs = only_wheel(tmp_path / "nix"), only_wheel(tmp_path / "local")
    assert ours.name == theirs.name
    assert sha256(ours) == sha256(theirs)
    kept = json.loads((Path(json.loads(told)[0]["report"]["output"]) / "record.json").read_text(encoding="utf-8"))
    ask = Ask(store=Store(default_store()), environ={})
    last = ask.store.last(dry_run.alike(kernel.load(tiny), ask), STABLE)
    assert last is not None
    assert sorted(change.field for change in changes(last, BuildRecord(**kept["record"]))) == []


def test_a_hostile_kernel_gets_nothing_of_the_machine(builder, plain, tmp_path):
    with hostile.bystander() as pid, hostile.prey(tmp_path, pid=pid, store=tmp_path / "store") as tries:
        # The host's own folders are Nix's to guard: what is tried there would harm this machine.
        hostile.importing(plain, replace(tries, rough=False))
        env = {"SECRET": hostile.TOKEN, "HOME": str(tmp_path / "somebody")}
        builder(plain, "--variant", PLAIN_CELL, "--output", tmp_path / "nix", env=env, check=0)
        hostile.including(plain / "csrc/scale.cpp", tries.files[0])
        done = builder(plain, "--variant", PLAIN_CELL, "--output", tmp_path / "nix", env=env, check=4)
    assert f"file not found: {tries.files[0]}" in done.stderr
    assert not (tmp_path / "written").exists()


def test_a_tvm_ffi_cell_is_the_same_file_from_nix_and_from_the_local_engine(builder, relu, tmp_path):
    builder(relu, "--variant", TVM_FFI, "--output", tmp_path / "nix", check=0)
    builder(relu, "--variant", TVM_FFI, "--output", tmp_path / "local", engine=(), check=0)
    assert sha256(only_wheel(tmp_path / "nix")) == sha256(only_wheel(tmp_path / "local"))


def test_a_plain_library_is_the_same_file_from_nix_and_from_the_local_engine(builder, plain, tmp_path):
    builder(plain, "--variant", PLAIN_CELL, "--output", tmp_path / "nix", check=0)
    builder(plain, "--variant", PLAIN_CELL, "--output", tmp_path / "local", engine=(), check=0)
    assert sha256(only_wheel(tmp_path / "nix")) == sha256(only_wheel(tmp_path / "local"))


def on_cutlass(plain, version):
    """Let the kernel include a header of CUTLASS."""
    source = plain / "csrc/scale.cpp"
    edit(plain / "build.toml", '"cpu"\ndepends = []', f'"cpu"\ndepends = ["cutlass_{version}"]')
    answer = 'extern "C" const char* plain_cutlass() { return CUTLASS_IS; }\n'
    source.write_text(f"#include <cutlass/version.h>\n{source.read_text()}\n#ifdef CUTLASS_IS\n{answer}#endif\n")
    return plain


def test_a_cell_on_the_pinned_headers_is_the_same_file_from_nix_and_from_the_local_engine(builder, plain, tmp_path):
    kernel = on_cutlass(plain, "3_8")
    builder(kernel, "--variant", PLAIN_CELL, "--output", tmp_path / "nix", check=0)
    builder(kernel, "--variant", PLAIN_CELL, "--output", tmp_path / "local", engine=(), check=0)
    assert sha256(only_wheel(tmp_path / "nix")) == sha256(only_wheel(tmp_path / "local"))


def test_headers_of_a_pinned_commit_are_fetched_by_nix_and_give_the_same_file(builder, flake, plain, tmp_path):
    repository, library = tmp_path / "cutlass", tmp_path / "library"
    for path in ("include/cutlass/cutlass.h", "tools/util/include/cutlass/util/a.h"):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text("")
    (repository / "include/cutlass/version.h").write_text("#define CUTLASS_IS __FILE__\n")
    git = ("git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.org")
    for arguments in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "4.0.0"), ("tag", "v4.0.0")):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    shutil.copytree(flake, library, symlinks=True)
    facts = library / "builder/data/cutlass.toml"
    text = facts.read_text().replace("https://github.com/NVIDIA/cutlass", f"file://{repository}")
    facts.write_text(text.replace("dc4817921edda44a549197ff3a9dcf5df0636e7b", head))
    kernel, env = on_cutlass(plain, "4_0"), {"PYTHONPATH": str(library)}
    builder(kernel, "--variant", PLAIN_CELL, "--output", tmp_path / "nix", env=env, check=0)
    builder(kernel, "--variant", PLAIN_CELL, "--output", tmp_path / "local", env=env, engine=(), check=0)
    assert sha256(only_wheel(tmp_path / "nix")) == sha256(only_wheel(tmp_path / "local"))


def test_nothing_is_built_twice_and_the_results_are_told(builder, unbuilt, tmp_path):
    first = json.loads(builder(unbuilt, "--variant", PLAIN_CELL, "--json", check=0).stdout)[0]
    again = json.loads(builder(unbuilt, "--variant", PLAIN_CELL, "--json", check=0).stdout)[0]
    assert (first["status"], again["status"]) == ("built", "hit")
    assert first["sha256"] == again["sha256"] == sha256(tmp_path / "dist" / Path(first["wheel"]).name)
    assert first["report"]["sandbox"] is True
    assert "[" in Path(first["log"]).read_text(encoding="utf-8")
    assert again["seconds"] < first["seconds"]
    rebuilt = nix_tools.nix(
        *("build", "--rebuild", "--impure", "--no-link"),
        *("--expr", nix_tools.expression([unbuilt], PLAIN_CELL), unbuilt.name),
    )
    assert rebuilt.returncode == 0, rebuilt.stderr


def test_a_compilers_error_comes_first_and_the_log_is_kept(builder, plain, tmp_path):
    source = plain / "csrc/scale.cpp"
    source.write_text(f"{source.read_text()}\nint broken = ;\n")
    done = builder(plain, "--variant", PLAIN_CELL, env={"BUILDER_STORE": str(tmp_path / "store")}, check=4)
    assert "error: expected primary-expression" in done.stderr
    assert "csrc/scale.cpp" in done.stderr
    log = done.stderr.split("the whole log: ")[1].splitlines()[0]
    assert "expected primary-expression" in Path(log).read_text(encoding="utf-8")


def test_a_finding_of_the_audit_fails_the_build_with_its_own_message(builder, plain):
    source = plain / "csrc/scale.cpp"
    symbol = 'extern "C" int _PyLong_AsInt(void*);\nextern "C" int plain_planted() { return _PyLong_AsInt(nullptr); }\n'
    source.write_text(f"{source.read_text()}\n{symbol}")
    done = builder(plain, "--variant", PLAIN_CELL, check=5)
    assert "breaks rules" in done.stderr
    assert "_PyLong_AsInt" in done.stderr


def test_a_wheel_that_does_not_load_fails_the_build_with_its_own_message(builder, plain):
    (plain / "ctypes-ext/plain/__init__.py").write_text("import no_such_module\n")
    done = builder(plain, "--variant", PLAIN_CELL, check=5)
    assert "cannot be imported: the module 'no_such_module' is not declared" in done.stderr


def test_an_unknown_variant_names_the_nearest(builder, tiny):
    done = builder(tiny, "--variant", "torch-stable-abi210-cpu-x86_64-linx", check=3)
    assert "no such cell of this kernel" in done.stderr
    assert STABLE in done.stderr


def test_a_cell_that_the_package_set_lacks_says_why(builder):
    relu = nix_tools.ROOT / "examples/relu"
    done = builder(relu, "--variant", "torch212-cxx11-cpu-x86_64-linux", check=4)
    assert "no wheels are pinned for torch 2.12 cpu on x86_64-linux with a Python of the package set" in done.stderr


def test_a_machine_without_nix_says_how_to_get_it(builder, tiny, tmp_path):
    done = builder(tiny, "--variant", STABLE, env={"PATH": str(tmp_path)}, check=4)
    assert "--engine nix needs Nix, and 'nix' is not on PATH" in done.stderr
    assert "--engine local" in done.stderr


def test_nixpkgs_that_cannot_be_fetched_names_the_host_package_set(builder, tiny):
    # No proxy answers there: the same as no network, and as fast.
    env = {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "HOME": "/nonexistent"}
    done = builder(tiny, "--variant", STABLE, env=env, engine=("--engine", "nix"))
    if done.returncode == 0:
        pytest.skip("nixpkgs is in the store")
    assert done.returncode == 4, done.stderr
    assert "nixpkgs cannot be fetched from here" in done.stderr
    assert "--package-set host" in done.stderr


def test_a_wrong_file_in_a_find_links_folder_is_told_and_nothing_is_built(builder, tmp_path):
    folder = tmp_path / "links"
    folder.mkdir()
    pinned = first_unfetched()
    if pinned is None:
        pytest.skip("every wheel is in the store")
    (folder / pinned).write_bytes(b"something else")
    env = {"PIP_FIND_LINKS": str(folder)}
    done = builder(nix_tools.ROOT / "examples/relu", "--variant", "torch214-cxx11-cu130-x86_64-linux", env=env, check=4)
    assert "is not the file that was pinned" in done.stderr


def first_unfetched():
    """Return a pinned wheel of a cell that nobody builds here, and so is in no store."""
    request = {
        "kernel": str(nix_tools.ROOT / "examples/relu"),
        "lock": str(nix_tools.ROOT / "flake.lock"),
        "set": "host",
        "system": "x86_64-linux",
        "options": {},
        "variants": ["torch214-cxx11-cu130-x86_64-linux"],
    }
    engine = nix_tools.LIBRARY / "engine.nix"
    done = nix_tools.nix(
        "eval", "--impure", "--json", "--file", engine, "--argstr", "request", json.dumps(request), "plan"
    )
    (planned,) = json.loads(done.stdout).values()
    missing = [wheel["file"] for wheel in planned["wheels"] if not Path(wheel["out"]).exists()]
    return next((file for file in missing if file.startswith("torch-")), None)


def test_a_wheel_with_another_hash_than_pinned_is_refused_by_nix(tmp_path):
    """A mirror that serves something else: a wheel of the right name, and another content."""
    with zipfile.ZipFile(tmp_path / "demo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("demo.py", "")
        wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        wheel.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("demo-1.0.dist-info/RECORD", "")
    pinned = hashlib.sha256(secrets.token_bytes(8)).hexdigest()
    expression = f"""
      let
        library = import {nix_tools.LIBRARY};
        set = import {nix_tools.LIBRARY}/host {{ system = "x86_64-linux"; }};
        pinned.demo = {{
          file = "demo-1.0-py3-none-any.whl"; name = "demo"; version = "1.0"; sha256 = "{pinned}"; index = null;
        }};
        tag = builtins.head (builtins.attrNames set.pythons);
      in {{ demo = (library.environment.prepare pinned set).wheels.${{tag}}.demo; }}
    """
    paths = f"{' '.join(nix_tools.HOST['sandbox-paths'])} {tmp_path}"
    done = nix_tools.nix(
        *("build", "-L", "--impure", "--no-link", "--expr", expression, "demo"),
        *("--option", "extra-sandbox-paths", paths),
        env={"PIP_FIND_LINKS": str(tmp_path), "PIP_NO_INDEX": "1"},
    )
    assert done.returncode != 0
    assert "cannot get the pinned wheel demo-1.0-py3-none-any.whl" in done.stderr
    assert "nix-store --add-fixed sha256" in done.stderr


def test_the_flake_shows_and_checks(flake):
    shown = nix_tools.nix("flake", "show", "--json", f"path:{flake}", *nix_tools.override(flake))
    if shown.returncode != 0 and "does not allow" in shown.stderr:
        pytest.skip(shown.stderr)
    assert shown.returncode == 0, shown.stderr
    outputs = json.loads(shown.stdout)
    assert {"kernels", "builder", "default", "relu"} <= set(outputs["packages"]["x86_64-linux"])
    assert {"cpu", "cuda", "default"} <= set(outputs["devShells"]["x86_64-linux"])
    checked = nix_tools.nix("flake", "check", "--no-build", f"path:{flake}", *nix_tools.override(flake))
    assert checked.returncode == 0, checked.stderr
    # Nix 2.8 does not know `lib`, which every flake with functions has.
    wrong = [line for line in checked.stderr.splitlines() if "unknown flake output" in line and "'lib'" not in line]
    assert wrong == []
    assert "lacks attribute" not in checked.stderr


def test_the_template_of_the_flake_gives_a_kernel_that_builds(flake, tmp_path):
    kernel = tmp_path / "new"
    kernel.mkdir()
    made = nix_tools.nix("flake", "init", "--template", f"path:{flake}", cwd=kernel)
    assert made.returncode == 0, made.stderr
    override = ("--override-input", "builder", f"path:{flake}", *nix_tools.override(flake, "builder/nixpkgs"))
    built = nix_tools.nix("build", "--json", "--no-link", f"path:{kernel}#kernels", *override)
    assert built.returncode == 0, built.stderr
    (output,) = (Path(entry["outputs"]["out"]) for entry in json.loads(built.stdout))
    assert any(wheel.name.startswith("my_kernel-") for wheel in output.glob("*.whl"))


def test_a_kernel_of_its_own_with_a_flake_of_five_lines(tiny, flake):
    (tiny / "flake.nix").write_text(
        "{\n"
        f'  inputs.builder.url = "path:{flake}";\n'
        "  outputs = { self, builder }: builder.lib.kernelFlake { inherit self; path = ./.; };\n"
        "}\n"
    )
    # Inside the folder: the address of one with a space cannot be written for Nix 2.8.
    override = nix_tools.override(flake, "builder/nixpkgs")
    names = nix_tools.nix(
        "eval", "--json", ".#cells.x86_64-linux", *override, "--apply", "builtins.attrNames", cwd=tiny
    )
    assert names.returncode == 0, names.stderr
    assert STABLE in json.loads(names.stdout)
    built = nix_tools.nix("build", "--json", "--no-link", f'.#cells.x86_64-linux."{STABLE}"', *override, cwd=tiny)
    assert built.returncode == 0, built.stderr
    (output,) = (Path(entry["outputs"]["out"]) for entry in json.loads(built.stdout))
    assert only_wheel(output).name.startswith("tiny-1.0.0+torch.stable210.cpu-")


def test_a_public_repository_changes_one_input_and_its_workflow_gets_the_layout_of_the_hub(tiny, flake, tmp_path):
    (tiny / "flake.nix").write_text(
        "{\n"
        f'  inputs.kernel-builder.url = "path:{flake}";\n'
        "  outputs = { self, kernel-builder }:\n"
        "    kernel-builder.lib.genKernelFlakeOutputs { inherit self; path = ./.; };\n"
        "}\n"
    )
    override = nix_tools.override(flake, "kernel-builder/nixpkgs")
    names = nix_tools.nix("eval", ".#backendCi", "--apply", "builtins.attrNames", "--json", *override, cwd=tiny)
    assert names.returncode == 0, names.stderr
    assert json.loads(names.stdout) == ["cpu"]
    built = nix_tools.nix("build", ".#backendCi.cpu", "--out-link", tmp_path / "result", *override, cwd=tiny)
    assert built.returncode == 0, built.stderr
    metadata = json.loads((tmp_path / "result" / STABLE / "metadata.json").read_text())
    assert metadata["name"] == "tiny"
    assert (tmp_path / "result/CARD.md").is_file()
    copied = nix_tools.nix("run", ".#build-and-copy", *override, cwd=tiny)
    assert copied.returncode == 0, copied.stderr
    assert os.access(tiny / "build" / STABLE / "metadata.json", os.W_OK)


def test_the_tool_itself_runs_from_nix(flake):
    built = nix_tools.nix("build", "--json", "--no-link", f"path:{flake}#builder", *nix_tools.override(flake))
    assert built.returncode == 0, built.stderr
    (output,) = (Path(entry["outputs"]["out"]) for entry in json.loads(built.stdout))
    names = subprocess.run(
        [output / "bin/builder", "matrix", nix_tools.ROOT / "examples/relu", "--format", "names"],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "torch213-cxx11-cpu-x86_64-linux" in names.stdout.split()
    pages = subprocess.run(
        [output / "bin/builder", "docs"], env={"HOME": "/nonexistent"}, capture_output=True, text=True, check=True
    )
    assert "tutorial.md" in pages.stdout.split()


def test_a_shell_has_the_cells_python_and_builder_and_writes_nothing_into_the_store(flake):
    began = time.time()
    done = nix_tools.nix(
        *("develop", f"path:{flake}#cpu", *nix_tools.override(flake), "--ignore-environment"),
        *("--command", "python", "-c", "import torch; print('torch', torch.__version__, torch.__path__[0])"),
    )
    assert done.returncode == 0, done.stderr
    assert "torch 2." in done.stdout
    # Where the store can be written, as by root without a daemon, what Python compiles would change the environment.
    folder = Path(done.stdout.split()[-1])
    assert not [path for path in folder.parent.rglob("*.pyc") if path.stat().st_mtime >= began]


def test_a_wheel_that_was_built_outside_the_sandbox_is_no_release(builder, unbuilt):
    off = {"NIX_CONFIG": "sandbox = false"}
    cell = (unbuilt, "--variant", PLAIN_CELL)
    allowed = json.loads(builder(*cell, "--json", "--allow-unsandboxed", env=off, check=0).stdout)
    assert allowed[0]["report"]["sandbox"] is False
    refused = builder(*cell, check=4)
    assert "was built outside Nix's sandbox, and a release needs it" in refused.stderr
    assert "nix store delete" in refused.stderr
