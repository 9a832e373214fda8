"""`builder repro`: leaks that were planted are found and named, and kernels that have none are the same everywhere."""

import json
import shutil

import pytest

from benchmarks.repro_table import BACKENDS
from builder import sandbox
from builder.repro.variations import NAMES
from tests.given.kernels import PLAIN_CELL, linux
from tests.integration import rendered, rocm
from tests.paths import ROOT

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.slow,
    linux,
    rendered.needs_torch,
]


@pytest.fixture
def repro(builder):
    def run(*arguments, command="repro", **more):
        return builder(command, *arguments, **more)

    return run


def says(kernel, text):
    """Let the library of a kernel hold a text, where no optimisation removes it."""
    source = kernel / "csrc/scale.cpp"
    source.write_text(f'{source.read_text()}\n__attribute__((used)) extern const char planted[] = "says " {text};\n')
    return kernel


def compiler(folder, script):
    """Return a C++ compiler that a leak was planted in: `extra` of the shell `script` goes before the arguments."""
    path = folder / "leaky-g++"
    path.write_text(f'#!/bin/sh\nextra=\n{script}\nexec g++ $extra "$@"\n')
    path.chmod(0o755)
    return {"CXX": str(path), "CC": shutil.which("gcc")}


def causes(done):
    """Return the variations that were named, and the places that each changes, as text."""
    return {
        " ".join(cause["variations"]): " ".join(
            f"{each['member']} {each['part']} {each['detail']}" for each in cause["differences"]
        )
        for cause in json.loads(done.stdout)["causes"]
    }


def test_the_time_of_the_build_is_found_and_named(repro, plain, tmp_path):
    """A compiler that knows nothing of SOURCE_DATE_EPOCH, as old ones."""
    says(plain, "__TIME__")
    env = compiler(tmp_path, "unset SOURCE_DATE_EPOCH")
    found = causes(repro(plain, "--variant", PLAIN_CELL, "--json", env=env, check=1))
    assert list(found) == ["time"]
    assert ".so section .rodata" in found["time"]
    assert "'says " in found["time"]


def test_the_folder_of_the_build_is_found_and_named(repro, plain):
    says(plain, "__FILE__")
    off = ("--without", "canonical-path", "--without", "prefix-map")
    found = causes(repro(plain, "--variant", PLAIN_CELL, "--json", "--vary", "store,locale", *off, check=1))
    # Away from the canonical path each build also has a folder of its own.
    assert list(found) == ["repetition", "store"]
    assert ".so section .rodata" in found["repetition"]
    assert "scratch" in found["repetition"]
    assert ".so section " in found["store"]


def test_a_random_symbol_is_found_and_named(repro, plain, tmp_path):
    source = plain / "csrc/scale.cpp"
    source.write_text(
        f'{source.read_text()}\nextern "C" __attribute__((visibility("default"))) int PLANTED() {{ return 1; }}\n'
    )
    env = compiler(tmp_path, "extra=-DPLANTED=plain_$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')")
    found = causes(repro(plain, "--variant", PLAIN_CELL, "--json", "--vary", "locale,time", env=env, check=1))
    assert list(found) == ["repetition"]
    assert ".so symbol plain_" in found["repetition"]
    assert "only in the first" in found["repetition"]


def test_a_directory_listing_is_found_and_named(repro, plain, tmp_path):
    says(plain, "LISTING")
    listed = r"""extra="-DLISTING=\"$(ls -U ${PWD%/build*}/src/csrc | tr '\n' ',')\"" """
    found = causes(repro(plain, "--variant", PLAIN_CELL, "--json", env=compiler(tmp_path, listed), check=1))
    assert list(found) == ["order"]
    assert ".so section .rodata" in found["order"]
    # The order itself is the file system's; both have all the files.
    assert found["order"].count("answer.cpp") == 2


def test_a_variable_of_the_user_is_found_and_named(repro, plain, tmp_path):
    says(plain, "USER_SEEN")
    env = compiler(tmp_path, r"""extra="-DUSER_SEEN=\"${USER:-}\"" """)
    vary = ("--vary", "locale,user")
    found = causes(repro(plain, "--variant", PLAIN_CELL, "--json", *vary, "--without", "environment", env=env, check=1))
    assert list(found) == ["user"]
    assert ".so section .rodata" in found["user"]
    assert "'says " in found["user"]
    assert repro(plain, "--variant", PLAIN_CELL, *vary, env=env, check=0).stdout.startswith("the same bytes")


def test_a_published_wheel_is_verified_and_a_changed_source_is_said_first(repro, plain, tmp_path):
    repro(plain, "--variant", PLAIN_CELL, "--output", tmp_path / "dist", command="build", check=0)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    done = repro(plain, "--against", wheel, check=0)
    assert done.stdout.startswith("the same bytes: sha256 ")
    says(plain, '"something new"')
    changed = repro(plain, "--against", wheel, check=1)
    first = changed.stdout.splitlines()[0]
    assert first.startswith("input: project (digest of the rendered project: sources, headers, CMake): published with ")
    # The library is named by the content of the kernel.
    assert ".so: only in the first" in changed.stdout
    record = json.loads(repro(plain, "--against", wheel, "--json", check=1).stdout)
    assert [each["name"] for each in record["inputs"]] == ["project"]


def test_what_cannot_be_varied_is_refused_by_name(repro, plain):
    done = repro(plain, "--variant", PLAIN_CELL, "--vary", "tmie", check=2)
    assert "nothing named 'tmie' can be varied" in done.stderr
    assert "did you mean 'time'?" in done.stderr
    refused = repro(plain, "--variant", PLAIN_CELL, "--without", "stirp", check=2)
    assert "'stirp' is not a rule of reproducible builds" in refused.stderr


MARKS = {
    "cuda, classic": (pytest.mark.cuda, pytest.mark.network),
    "cuda, stable ABI": (pytest.mark.cuda,),
    "hip, stable ABI": (pytest.mark.rocm, pytest.mark.network),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in BACKENDS])
def test_a_backend_is_the_same_under_every_variation_of_the_documented_table(repro, name, tmp_path):
    if name.startswith("cuda") and not sandbox.can_mount():
        pytest.skip("this kernel allows no user namespaces")
    example = BACKENDS[name]
    options, env = ((), {}) if example.pinned else rocm_environment(tmp_path)
    done = repro(ROOT / example.kernel, "--variant", example.variant, *options, "--json", env=env, check=0)
    result = json.loads(done.stdout)
    assert result["same"]
    assert set(result["varied"]) | set(result["skipped"]) == set(NAMES)
    assert result["builds"] == 2


def rocm_environment(folder):
    """Return options and variables of a build for ROCm, which no wheel brings: what this machine has is made one."""
    why_not = rocm.why_not()
    if why_not:
        pytest.skip(why_not)
    thrust = rocm.thrust(folder / "debian")
    if thrust is None:
        pytest.skip("apt has no rocThrust's headers; BUILDER_TEST_ROCTHRUST names a folder with thrust and rocprim")
    python, root = rocm.environment(folder, rendered.torch_folder(), thrust)
    return ("--no-isolation", "--python", python), {"ROCM_PATH": str(root)}
