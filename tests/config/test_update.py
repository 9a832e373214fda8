"""`builder update`: any schema to edition 5, and the rest of the text as it was."""

import difflib
import os
import stat
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tomlkit.exceptions import TOMLKitError

from builder import toml
from builder.cli import run
from builder.config import read, toml_edit, update
from builder.config.text import Source
from builder.errors import BuilderError, ConfigError
from tests.config.texts import refusal_of, source
from tests.paths import TESTS

CASES = TESTS / "data" / "update"


@pytest.mark.parametrize("case", sorted(CASES.glob("*.before.toml")), ids=lambda path: path.name.split(".")[0])
def test_a_config_of_each_schema_becomes_the_text_on_disk(case):
    text = update.rewrite(source(case.read_text(encoding="utf-8")), license="MIT")
    assert text == case.with_name(case.name.replace(".before.", ".after.")).read_text(encoding="utf-8")


@pytest.mark.parametrize("case", sorted(CASES.glob("*.before.toml")), ids=lambda path: path.name.split(".")[0])
def test_what_was_not_changed_keeps_its_lines_in_their_order(case):
    before = case.read_text(encoding="utf-8").splitlines()
    after = update.rewrite(source("\n".join(before)), license="MIT").splitlines()
    gone = [line[2:] for line in difflib.ndiff(before, after) if line.startswith("- ")]
    changed = (
        "language",
        "universal",
        "cuda-m",
        "python-depends",
        "stable-abi",
        "rocm-archs",
        "cuda-cap",
        "minver",
        "torch.",
        "general = {",
        "[torch]",
    )
    unexpected = [line for line in gone if line.strip() and not any(word in line for word in changed)]
    assert unexpected == []


VALID = sorted((CASES.parent / "config" / "valid").glob("*.toml"))


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_every_valid_config_keeps_its_meaning_and_one_of_edition_5_its_text(path):
    before = Source.read(path)
    if path.stem.startswith("v5-"):
        assert update.rewrite(before) == before.text
    else:
        assert_rewritten(before)


# --- properties: every schema, every way to lay a table out ---

NAMES = st.sampled_from(["a", "b2", "c-d", "e_f"])
FILES = st.lists(st.sampled_from(["x.cu", "src/y.cpp", "torch-ext/z.h"]), max_size=3, unique=True)
VERSIONS = st.sampled_from(["2.9", "2.10", "12.4", "13.0"])
DEPENDS = st.lists(st.sampled_from(["torch", "cutlass_3_5"]), max_size=2, unique=True)
BACKENDS = st.lists(st.sampled_from(["cpu", "cuda", "metal", "rocm", "xpu"]), min_size=1, unique=True)


PARTS = {"depends": DEPENDS, "src": FILES}
COMPONENT = st.fixed_dictionaries(
    {**PARTS, "backend": st.sampled_from(["cpu", "metal"])}, optional={"include": FILES}
) | st.fixed_dictionaries(
    {**PARTS, "backend": st.just("cuda")}, optional={"cuda-capabilities": st.just(["8.0"]), "cuda-minver": VERSIONS}
)
OLD_COMPONENT = st.fixed_dictionaries(
    PARTS,
    optional={
        "language": st.sampled_from(["cuda", "cuda-hipify", "metal"]),
        "cuda-capabilities": st.just(["8.0", "9.0a"]),
        "rocm-archs": st.just(["gfx942"]),
        "include": FILES,
    },
)
NAME = {"name": st.just("my-kernel")}
HUB = {"hub": st.fixed_dictionaries({"branch": st.just("main")})}
CUDA = {
    "cuda": st.fixed_dictionaries({}, optional={"minver": VERSIONS, "python-depends": st.just(["nvidia-cutlass-dsl"])})
}
OLD_DEPENDS = st.lists(st.sampled_from(["einops", "nvidia-cutlass-dsl"]), max_size=2, unique=True)
CUDA_KEYS = {"cuda-minver": VERSIONS, "cuda-maxver": VERSIONS, "python-depends": OLD_DEPENDS}
TORCH = {"src": FILES, "include": FILES, "pyext": st.just(["py"])}
BOUNDS = {"minver": VERSIONS, "maxver": VERSIONS}
OPTIONAL = {
    "torch": st.fixed_dictionaries({}, optional=TORCH | BOUNDS),
    "kernel": st.dictionaries(NAMES, COMPONENT, max_size=3),
}
V1 = st.fixed_dictionaries(
    {"general": st.fixed_dictionaries(NAME)},
    optional={
        "torch": st.fixed_dictionaries({"universal": st.booleans()}, optional=TORCH),
        "kernel": st.dictionaries(NAMES, OLD_COMPONENT, max_size=3),
    },
)
V2 = st.fixed_dictionaries(
    {"general": st.fixed_dictionaries(NAME, optional={"universal": st.booleans()} | CUDA_KEYS | HUB)}, optional=OPTIONAL
)
V3 = st.fixed_dictionaries(
    {"general": st.fixed_dictionaries({**NAME, "backends": BACKENDS}, optional=HUB | CUDA)}, optional=OPTIONAL
)
V4_GENERAL = {**NAME, "backends": BACKENDS, "version": st.integers(0, 9), "license": st.just("MIT")}
V4 = st.fixed_dictionaries(
    {
        "general": st.fixed_dictionaries(V4_GENERAL, optional=HUB | CUDA),
        "torch": st.fixed_dictionaries({}, optional=TORCH | BOUNDS | {"stable-abi": VERSIONS}),
    },
    optional={"kernel": OPTIONAL["kernel"]},
)


@st.composite
def texts(draw, config):
    """Lay a config out: each table as a header, an inline table or dotted keys; comments, blank lines and spacing."""
    table = draw(config)
    first, last = [], []
    tables_of = [((name,), value) for name, value in table.items() if name != "kernel"]
    kernels = table.get("kernel", {})
    whole = bool(kernels) and draw(st.booleans()) and draw(st.booleans())
    if whole:
        first.append(f"kernel = {toml.spelled(kernels)}")
    else:
        tables_of += [(("kernel", name), value) for name, value in kernels.items()]
    for path, value in draw(st.permutations(tables_of)):
        style = draw(st.sampled_from(["header", "header", "header", "inline", "dotted"]))
        comment = draw(st.sampled_from(["", "  # why", " #é"]))
        equals = draw(st.sampled_from([" = ", "=", "  =  "]))
        below = {key: entry for key, entry in value.items() if isinstance(entry, dict)}
        if style == "inline":
            first.append(f"{'.'.join(path)}{equals}{toml.spelled(value)}{comment}")
        elif style == "dotted" and value:
            first += [f"{'.'.join((*path, key))}{equals}{toml.spelled(entry)}{comment}" for key, entry in value.items()]
        else:
            last += draw(st.sampled_from([[], [""], ["", f"# about {path[-1]}"], [f"# {path[-1]}", ""]]))
            last.append(f"[{'.'.join(path)}]{comment}")
            last += [f"{key}{equals}{toml.spelled(entry)}{comment}" for key, entry in value.items() if key not in below]
            for key, entry in below.items():
                last += [f"[{'.'.join((*path, key))}]"]
                last += [f"{sub}{equals}{toml.spelled(content)}{comment}" for sub, content in entry.items()]
    return "\n".join([*first, *last]) + draw(st.sampled_from(["", "\n", "\n\n# end\n"]))


@pytest.mark.parametrize(
    "config", [pytest.param(V1, id="1"), pytest.param(V2, id="2"), pytest.param(V3, id="3"), pytest.param(V4, id="4")]
)
def test_the_new_text_means_the_same_has_edition_5_and_is_not_changed_again(config):
    @settings(max_examples=60, deadline=None)
    @given(texts(config))
    def holds(text):
        before = source(text)
        assert_rewritten(before)

    holds()


def assert_rewritten(before):
    refused = refusal_of(read, before, license="MIT")
    if refused is not None:  # for a clash of names, say: both refuse it
        again = refusal_of(update.rewrite, before, license="MIT")
        assert [problem.code for problem in again.problems] == [problem.code for problem in refused.problems]
        return
    after = update.rewrite(before, license="MIT")
    assert toml.loads(after)["general"]["edition"] == 5
    assert read(source(after)).config == read(before, license="MIT").config
    assert update.rewrite(source(after), license="MIT") == after
    assert after.count("#") >= before.text.count("# about")


# --- the license ---


def test_a_missing_license_is_asked_for():
    with pytest.raises(ConfigError, match="--license"):
        update.rewrite(source('[general]\nname = "ab"\nbackends = ["cpu"]\n'))


def test_a_license_that_is_no_spdx_expression_is_refused():
    with pytest.raises(BuilderError, match="'Apache 2' is not an SPDX license expression"):
        update.rewrite(source('[general]\nname = "ab"\nbackends = ["cpu"]\n'), license="Apache 2")


def test_a_license_that_is_there_stays():
    text = '[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n[torch-noarch]\n'
    assert 'license = "MIT"' in update.rewrite(source(text), license="Apache-2.0")


@pytest.mark.parametrize("edition", ["", "edition = 5\n"], ids=["schema 4", "edition 5"])
def test_a_license_that_a_newer_config_lacks_is_supplied(edition):
    text = f'[general]\nname = "ab"\nversion = 1\n{edition}backends = ["cpu"]\n[torch-noarch]\n'
    assert 'license = "MIT"' in update.rewrite(source(text), license="MIT")


# --- the file ---

OLD = '[general]\nname = "ab"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n\n[torch-noarch]\n'
NEW = OLD.replace("version = 1\n", "version = 1\nedition = 5\n")


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "build.toml"
    path.write_text(OLD, encoding="utf-8", newline="")
    return path


def test_the_command_rewrites_the_file_and_then_has_nothing_to_do(config, capsys):
    assert run(["update", str(config.parent)]) == 0
    assert config.read_text(encoding="utf-8") == NEW
    assert "now in edition 5" in capsys.readouterr().err
    before = config.stat()
    assert run(["update", str(config)]) == 0
    assert config.stat() == before
    assert "already" in capsys.readouterr().err


def test_check_writes_nothing_and_exits_with_1_when_the_file_would_change(config):
    assert run(["update", "--check", str(config.parent)]) == 1
    assert config.read_text(encoding="utf-8") == OLD
    config.write_text(NEW, encoding="utf-8")
    assert run(["update", "--check", str(config.parent)]) == 0


def test_diff_writes_nothing_and_shows_the_change(config, capsys):
    assert run(["update", "--diff", str(config.parent)]) == 0
    assert config.read_text(encoding="utf-8") == OLD
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith(("+", "-")) and line[1:2] not in "+-"] == ["+edition = 5"]


def test_check_and_diff_go_together(config, capsys):
    assert run(["update", "--check", "--diff", str(config.parent)]) == 1
    assert "+edition = 5" in capsys.readouterr().out


def test_a_config_that_is_broken_is_not_touched(config, capsys):
    config.write_text(OLD.replace("cpu", "cpus"), encoding="utf-8")
    assert run(["update", str(config.parent)]) == 2
    assert config.read_text(encoding="utf-8") == OLD.replace("cpu", "cpus")
    assert "did you mean 'cpu'?" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755], ids=oct)
def test_the_mode_of_the_file_stays(config, mode):
    config.chmod(mode)
    assert run(["update", str(config)]) == 0
    assert stat.S_IMODE(config.stat().st_mode) == mode


def test_line_ends_and_the_byte_order_mark_stay(config):
    config.write_bytes(b"\xef\xbb\xbf" + OLD.replace("\n", "\r\n").encode())
    assert run(["update", str(config)]) == 0
    assert config.read_bytes() == b"\xef\xbb\xbf" + NEW.replace("\n", "\r\n").encode()


def test_mixed_line_ends_stay_as_they_are(config):
    config.write_bytes(OLD.replace("\n", "\r\n", 2).encode())
    assert run(["update", str(config)]) == 0
    assert config.read_bytes() == NEW.replace("\n", "\r\n", 2).encode()


def test_a_last_line_without_an_end_stays_so(config):
    config.write_text(OLD.removesuffix("\n"), encoding="utf-8")
    assert run(["update", str(config)]) == 0
    assert config.read_text(encoding="utf-8") == NEW.removesuffix("\n")


def test_a_link_stays_a_link_and_its_target_is_rewritten(config, tmp_path):
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    target = config.rename(kernel / "real.toml")
    (kernel / "build.toml").symlink_to("real.toml")
    assert run(["update", str(kernel)]) == 0
    assert (kernel / "build.toml").is_symlink()
    assert target.read_text(encoding="utf-8") == NEW


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(config, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    assert run(["update", str(config)]) == 2
    assert config.read_text(encoding="utf-8") == OLD
    assert list(config.parent.iterdir()) == [config]
    assert "No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("error", [TOMLKitError("x"), LookupError("x"), StopIteration("x")], ids=repr)
def test_a_layout_that_the_editor_cannot_follow_is_refused_with_what_to_do(monkeypatch, error):
    monkeypatch.setattr(toml_edit, "add", Mock(side_effect=error))
    text = '[general]\nname = "relu"\nversion = 1\nlicense = "MIT"\nbackends = ["cpu"]\n\n[torch]\nsrc = ["a.cpp"]\n'
    with pytest.raises(BuilderError, match="cannot be rewritten"):
        update.rewrite(Source(name="build.toml", text=text))
