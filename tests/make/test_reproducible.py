"""The rules of reproducible builds, as far as they are values."""

import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder.errors import BuilderError
from builder.make import reproducible
from builder.metadata import RebuildInputs
from builder.toolchain.tool import REACHES_BUILD
from builder.wheel.archive import EPOCH, LATEST, Bytes, pack
from builder.wheel.options import BuildOptions, epoch_of
from tests.paths import ROOT

DOCUMENTED = re.findall(
    r"^\| `([\w-]+)` \(([\w/.]+)\) \| .+ \|$",
    (ROOT / "docs/reproducibility.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_the_rules_are_documented():
    assert tuple(name for name, _ in DOCUMENTED) == reproducible.NAMES


@pytest.mark.parametrize(("name", "where"), DOCUMENTED)
def test_a_rule_stands_where_the_documentation_says(name, where):
    path = ROOT / where
    assert path.is_file()
    assert path.suffix == (".cmake" if name in reproducible.OF_PROJECT else ".py")
    assert path.suffix == ".py" or f'"{name}" IN_LIST KERNEL_WITHOUT_RULES' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "LANG", "LD_PRELOAD", "NVCC_APPEND_FLAGS"])
def test_a_variable_of_the_user_is_not_used(name):
    seen, shown = (
        reproducible.variables(Path("/b"), environ={name: "mine"}, path=(), options=BuildOptions(without=rules))
        for rules in ((), ("environment",))
    )
    assert name not in seen
    assert shown[name] == "mine"


@pytest.mark.parametrize("name", REACHES_BUILD)
def test_a_variable_that_can_change_a_bit_is_seen(name):
    seen = reproducible.variables(Path("/b"), environ={name: "/x"}, path=(), options=BuildOptions())
    assert seen[name] == "/x"


def test_rules_that_are_off_survive_their_spelling():
    options = BuildOptions(without=("strip", "fixed-zip"), variables={"LD_PRELOAD": "a b"})
    assert reproducible.read_options(options.to_json()) == options
    swapped = options.to_json() | {"without": ["fixed-zip", "strip"]}
    assert reproducible.read_options(swapped) == options, "two orders of the rules have one build key"


def test_what_is_no_rule_is_refused():
    with pytest.raises(
        BuilderError, match="'stirp' is not a rule of reproducible builds\n  help: did you mean 'strip'"
    ):
        reproducible.read_options({"without": ["stirp"]})


@pytest.mark.parametrize(
    ("cuda", "canonical", "marked"),
    [
        pytest.param(None, False, False, id="no CUDA"),
        pytest.param("12.6.77", True, False, id="old, canonical path"),
        pytest.param("12.6.77", False, True, id="old, elsewhere"),
        pytest.param("13.0.48", False, False, id="new, module id rewritten"),
    ],
)
def test_a_toolchain_that_cannot_be_made_reproducible_is_marked(cuda, canonical, marked):
    reason = reproducible.why_not_reproducible(cuda=cuda, canonical=canonical)
    assert (reason is not None) is marked
    assert ("not-reproducible" in RebuildInputs(project="p", not_reproducible=reason).to_dict()) is marked


def test_a_zip_of_members_in_another_order_is_the_same():
    members = {"b.py": Bytes(b"2"), "a.py": Bytes(b"1"), "x.dist-info/WHEEL": Bytes(b"w")}
    backwards = dict(reversed(members.items()))
    assert pack(members, dist_info="x.dist-info") == pack(backwards, dist_info="x.dist-info")
    assert pack(members, dist_info="x.dist-info", epoch=None) != pack(backwards, dist_info="x.dist-info", epoch=None)


@pytest.mark.parametrize(("text", "epoch"), [(None, EPOCH), ("0", 0), ("17", 17), (str(LATEST), LATEST)])
def test_the_time_of_a_build_is_that_of_its_variable(text, epoch):
    assert epoch_of({} if text is None else {"SOURCE_DATE_EPOCH": text}) == epoch


@pytest.mark.parametrize("text", ["", "now", "-1", "1.5", "\u0661"])
def test_a_time_that_is_no_number_is_refused(text):
    with pytest.raises(BuilderError, match=f"SOURCE_DATE_EPOCH is '{text}', not a number of seconds"):
        epoch_of({"SOURCE_DATE_EPOCH": text})


@pytest.mark.parametrize("text", [str(LATEST + 1), "1700000000000", "9" * 5000])
def test_a_time_that_no_wheel_can_name_is_refused(text):
    with pytest.raises(BuilderError, match="later than the end of 2107"):
        epoch_of({"SOURCE_DATE_EPOCH": text})


def test_a_wheel_can_name_the_last_time():
    content = pack({"a.py": Bytes(b"")}, dist_info="a-1.dist-info", epoch=LATEST)
    assert zipfile.ZipFile(io.BytesIO(content)).infolist()[0].date_time == (2107, 12, 31, 23, 59, 58)


@pytest.mark.parametrize("engine", [[], ["--engine", "nix", "--package-set", "host"]], ids=["local", "nix"])
def test_a_build_says_what_is_wrong_with_its_time(engine, tmp_path):
    command = [sys.executable, "-m", "builder", "build", ROOT / "tests/data/kernels/tiny", *engine]
    program = tmp_path / "nix"
    program.write_text("#!/bin/sh\necho '{}'\n")
    program.chmod(0o755)
    done = subprocess.run(
        [*map(str, command), "--variant", "torch-stable-abi210-cpu-x86_64-linux", "--output", str(tmp_path / "dist")],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "BUILDER_STORE": str(tmp_path / "store"),
            "SOURCE_DATE_EPOCH": "5000000000",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "SOURCE_DATE_EPOCH is '5000000000', later than the end of 2107" in done.stderr


@pytest.mark.parametrize("epoch", [LATEST + 1, "now", 1.5])
def test_a_flake_that_asks_for_such_a_time_is_told(epoch):
    with pytest.raises(BuilderError, match="the option 'epoch' is"):
        BuildOptions.from_json({"epoch": epoch})


def test_every_rule_can_be_left_out():
    for name in reproducible.NAMES:
        assert reproducible.in_order([name]) == (name,)
    assert BuildOptions().without == ()
