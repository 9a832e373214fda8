"""metadata.json as one type: the bytes that it writes, and what it makes of a file that a stranger wrote."""

import inspect
import json

import pytest

from builder.config import Backend
from builder.config.v5 import KernelDependency
from builder.make.kernel_lock import dependency
from builder.metadata import KernelMetadata, RebuildInputs, dependency_table, is_digested
from tests.config.texts import five

RENDERED = KernelMetadata.read('{"name": "d\u00e9mo", "backend": {"type": "cpu", "archs": ["1"]}}'.encode())
VALUES = (None, True, 5, "text", "", [], [5, None], {}, {"a": []}, {"archs": 5, "files": [], "gpus": "H100", "type": 1})
KEYS = (
    *("name", "id", "version", "license", "upstream", "source", "python-depends", "extensions", "backend"),
    *("require", "exports", "digest", "provenance", "build"),
)
PROPERTIES = [name for name, _ in inspect.getmembers(KernelMetadata, lambda member: isinstance(member, property))]


def test_a_build_completes_what_was_compiled_and_keeps_what_was_not():
    inputs = RebuildInputs(project="p", framework="f", pins="q", toolchain={"nvcc": "13", "cxx": "14"})
    built = RENDERED.built({"a.py": b"", "a.pyc": b""}, archs=("2", "3"), inputs=inputs)
    assert built.text.startswith('{\n  "name": "d\u00e9mo",\n')
    assert list(built.table) == ["name", "backend", "digest", "provenance", "build"]
    assert built.archs == ("2", "3")
    assert list(built.table["build"]) == ["project", "framework", "pins", "toolchain"]
    assert list(built.table["build"]["toolchain"]) == ["cxx", "nvcc"]
    assert built.digests.keys() == {"a.py"}
    assert built.inputs == inputs
    assert RENDERED.built({}).archs == ("1",)


def test_a_quick_build_says_for_what_it_is():
    quick = RENDERED.built({}, only=("8.0", "9.0a"), shared_code=("9.0a",))
    assert list(quick.table["build"]) == ["archs", "not-for-release", "shared-code"]
    assert (quick.quick_archs, quick.shared_code) == (("8.0", "9.0a"), ("9.0a",))
    assert quick.not_for_release == "built for 8.0, 9.0a alone"
    assert RENDERED.built({}).not_for_release is None


def test_extensions_that_the_cell_leaves_out_are_gone():
    assert "extensions" not in KernelMetadata({"extensions": {}}).built({}).table
    assert KernelMetadata({"extensions": {"rope": "_x"}}).built({}).extensions == {"rope": "_x"}


def test_a_family_has_its_own_architectures_and_the_keys_of_the_whole():
    whole = RENDERED.built({"a.py": b"1"}, only=("8.0",), shared_code=("8.9",))
    whole = KernelMetadata({**whole.table, "require": {"gpus": ["A100", "H100"], "max-size": "1 MB"}, "own": 1})
    part = whole.of_family("sm80", {"a.py": b"2"}, archs=["8.0"], gpus=["A100"], shared_code=())
    assert list(part.table) == list(whole.table)
    assert part.table["require"] == {"max-size": "1 MB", "gpus": ["A100"]}
    assert part.table["build"] == {"archs": ["8.0"], "not-for-release": "built for 8.0 alone", "gpus": "sm80"}
    assert part.digests != whole.digests
    none = whole.of_family("sm100", {}, archs=[], gpus=[], shared_code=("10.0",))
    assert none.table["require"] == {"max-size": "1 MB"}
    assert none.shared_code == ("10.0",)


def test_a_commit_and_a_missing_sandbox_are_added_to_what_is_known_of_the_build():
    said = RENDERED.built({}).from_commit("c" * 40, dirty=True).without_sandbox()
    assert list(said.table["provenance"]) == ["kernel-builder", "kernel", "sandbox"]
    assert (said.commit, said.unsandboxed) == ("c" * 40, True)
    assert said.builder == RENDERED.built({}).builder
    assert not RENDERED.unsandboxed


def test_cmake_completes_a_template_and_finds_no_variable_of_its_own_in_the_rest():
    config = five('upstream = "git@example.org:a/b.git"\n[torch]\nsrc = ["b.cpp"]')
    metadata = KernelMetadata.of(config, Backend.CUDA, ops="_a", extensions={"rope": "_b"})
    text = metadata.template({"archs", "extensions"})
    assert text.count("@") == 4
    filled = text.replace("@KERNEL_ARCHITECTURES@", "[]").replace("@KERNEL_EXTENSIONS@", '{"rope": "_b"}')
    assert json.loads(filled) == {**metadata.table, "backend": {"type": "cuda", "archs": []}}
    assert '"extensions"' not in KernelMetadata.of(config, Backend.CUDA, ops="_a", extensions={}).template(
        {"extensions"}
    )


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_another_type_is_no_error_of_this_program(key):
    whole = RENDERED.built({"a.py": b""}, inputs=RebuildInputs(project="p")).table
    for value in VALUES:
        for table in ({key: value}, {**whole, key: value}):
            metadata = KernelMetadata(table)
            for name in PROPERTIES:
                getattr(metadata, name)
            assert not list(metadata.unlike(metadata))


def test_values_of_use_are_read_and_others_are_none():
    metadata = KernelMetadata(
        {
            "name": 5,
            "version": True,
            "id": ["x"],
            "python-depends": ["numpy", 5],
            "extensions": {"rope": "_a", "A B": "_c"},
            "exports": ["f", 1],
            "backend": {"type": 5, "archs": [9, "8.0"]},
            "build": {"toolchain": {"gcc": 12}},
        }
    )
    assert (metadata.name, metadata.version, metadata.ops) == (None, None, None)
    assert metadata.python_depends == ("numpy",)
    assert metadata.extensions == {"rope": "_a"}
    assert metadata.exports == ()
    assert (metadata.backend, metadata.archs) == ("5", ("9", "8.0"))
    assert metadata.inputs.toolchain == {"gcc": "12"}


@pytest.mark.parametrize("listed", [5, "text", [5], [{"repo-id": "a/b"}], [{"repo-id": "a", "version": 1}]])
def test_kernels_that_are_none_are_refused_where_they_are_read(listed):
    with pytest.raises(ValueError, match=r".+"):
        tuple(map(dependency, KernelMetadata({"kernel-depends": listed}).kernel_depends))


def test_a_kernel_that_it_depends_on_is_read_as_it_is_written():
    for wanted in (KernelDependency(repo_id="a/b", version=1), KernelDependency(repo_id="a/b", revision="main")):
        (read,) = KernelMetadata({"kernel-depends": [dependency_table(wanted)]}).kernel_depends
        assert dependency(read) == wanted
    assert KernelMetadata().kernel_depends == ()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        pytest.param({}, "lacks 'name', 'backend', 'digest'", id="nothing"),
        pytest.param({"name": "a", "backend": {}, "digest": {}}, None, id="whole"),
        pytest.param(
            {"name": 1, "backend": [], "digest": {}, "version": True},
            "has values of another type: 'name' is no text; 'version' is no whole number; 'backend' is no table",
            id="types",
        ),
    ],
)
def test_a_wheel_is_published_with_what_clients_need(table, why):
    assert KernelMetadata(table).unusable == why


def test_the_digest_is_of_all_files_but_what_holds_it_signs_it_or_is_made_of_others():
    names = ("a.py", "metadata.json", "metadata.json.sigstore", "a.pyc", "sub/metadata.json")
    assert [name for name in names if is_digested(name)] == ["a.py", "sub/metadata.json"]
