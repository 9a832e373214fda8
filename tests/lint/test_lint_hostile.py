"""A hostile kernel makes `check` neither read what is not its own, nor hang, nor fall."""

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import cli
from builder.errors import BuilderError, ConfigError
from builder.kernel import load
from builder.lint import inspect, registration
from builder.lint.findings import to_text
from builder.publish import card

CONFIG = """\
[general]
name = "case"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]

[torch]
src = ["torch-ext/binding.cpp"]

[kernel.case]
backend = "cpu"
depends = ["torch"]
src = ["case.cpp"]
"""
SECRET = "hunter2 = = 1"


@pytest.fixture
def kernel(tmp_path):
    root = tmp_path / "kernel"
    (root / "torch-ext" / "case").mkdir(parents=True)
    for name, content in {"build.toml": CONFIG, "torch-ext/binding.cpp": "", "case.cpp": ""}.items():
        (root / name).write_text(content, encoding="utf-8")
    (root / "torch-ext" / "case" / "__init__.py").write_text("", encoding="utf-8")
    return root


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "__init__.py").write_text(SECRET, encoding="utf-8")
    return folder


def codes(kernel):
    return {located.problem.code for located in inspect(kernel).found}


def test_a_config_that_is_a_link_out_is_refused_and_not_shown(kernel, outside):
    (kernel / "build.toml").unlink()
    (kernel / "build.toml").symlink_to(outside / "__init__.py")
    assert "hunter2" not in to_text(inspect(kernel))
    assert codes(kernel) == {"B001"}
    with pytest.raises(ConfigError, match="symbolic link out of this directory"):
        load(kernel)
    assert cli.run(["update", str(kernel)]) == 2
    assert (outside / "__init__.py").read_text(encoding="utf-8") == SECRET


def test_a_config_that_is_a_link_inside_is_read(kernel):
    (kernel / "build.toml").rename(kernel / "real.toml")
    (kernel / "build.toml").symlink_to("real.toml")
    assert codes(kernel) == set()


def test_a_kernel_that_is_reached_through_a_link_is_read(kernel, tmp_path):
    (tmp_path / "link").symlink_to(kernel, target_is_directory=True)
    assert codes(tmp_path / "link") == set()


def test_a_python_file_that_is_a_link_out_is_refused_and_not_shown(kernel, outside):
    (kernel / "torch-ext" / "case" / "more.py").symlink_to(outside / "__init__.py")
    assert "hunter2" not in to_text(inspect(kernel))
    assert codes(kernel) == {"B031"}


def test_a_package_that_is_a_link_out_is_refused_and_not_shown(kernel, outside):
    (kernel / "torch-ext" / "case" / "__init__.py").unlink()
    (kernel / "torch-ext" / "case").rmdir()
    (kernel / "torch-ext" / "case").symlink_to(outside, target_is_directory=True)
    assert "hunter2" not in to_text(inspect(kernel))
    assert "B031" in codes(kernel)


def test_a_package_beside_a_broken_config_is_not_read_through_a_link(kernel, outside):
    (kernel / "build.toml").write_text("[general", encoding="utf-8")
    (kernel / "torch-ext" / "other").symlink_to(outside, target_is_directory=True)
    assert "hunter2" not in to_text(inspect(kernel))


def test_a_card_that_is_a_link_out_is_not_read(kernel, outside):
    (kernel / "CARD.md").symlink_to(outside / "__init__.py")
    with pytest.raises(BuilderError, match="symbolic link out"):
        card.read(kernel)


def judged(files):
    began = time.process_time()
    parsed = [registration.PythonFile(text=code, file=name, name=name, package=False) for name, code in files.items()]
    found = list(registration.judge(parsed))
    return len(found), time.process_time() - began


@pytest.mark.parametrize("style", ["one name", "a name of each"])
def test_files_that_import_each_other_are_judged_in_linear_time(style):
    names = [f"m{number}" for number in range(46)]
    files = {}
    for name in names:
        others = [other for other in names if other != name]
        bound = ["x" if style == "one name" else f"x_{other}" for other in others]
        imports = "".join(f"from pkg.{other} import x as {new}\n" for other, new in zip(others, bound, strict=True))
        whole = "" if style == "one name" else f"x = {' + '.join(bound)}\n"
        files[f"pkg.{name}"] = f'import torch\n{imports}{whole}torch.library.define(x, "")\n'
    found, seconds = judged(files)
    assert found == len(names)
    assert seconds < 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("binding", "call"),
    [
        ("x = 1", 'torch.library.define(x, "")'),
        ("x = 1\nlib = x", 'lib.define("a::b")'),
        ('def x(): return "a::b"', 'torch.library.define(x(), "")'),
        ("x = 1", 'x("a")'),
        ("for x in (1, 2, 3): pass", 'torch.library.define(x, "")'),
    ],
)
def test_twenty_thousand_bindings_and_calls_are_judged_in_linear_time(binding, call):
    count = 20_000
    _, seconds = judged({"pkg.a": "import torch\n" + f"{binding}\n" * count + f"{call}\n" * count})
    assert seconds < 40  # quadratic, it takes an hour


def test_a_loop_over_many_names_for_many_targets_is_read_in_linear_time():
    targets, elements = ",".join(f"x{number}" for number in range(5_000)), ",".join("1" * 5_000)
    _, seconds = judged({"pkg.a": f"import torch\nfor {targets} in ({elements}): pass\n"})
    assert seconds < 15


def test_a_name_that_stands_for_too_much_cannot_be_told():
    names = "".join(f'x = add_op_namespace_prefix("a{number}")\n' for number in range(300))
    code = f'import torch\nfrom ._ops import add_op_namespace_prefix\n{names}torch.library.define(x, "")\n'
    parsed = registration.PythonFile(text=code, file="a", name="pkg.a", package=False)
    assert [located.problem.code for located in registration.judge([parsed])] == ["B121"]


@pytest.mark.parametrize("place", ["include", "torch-ext/case"])
def test_levels_of_links_are_a_finding_and_take_no_time(kernel, place):
    folder = kernel / place
    folder.mkdir(parents=True, exist_ok=True)
    if place == "include":
        config = CONFIG + 'include = ["include"]\n'
        (kernel / "build.toml").write_text(config, encoding="utf-8")
    for level in range(30):
        (folder / f"d{level}").mkdir()
    for level in range(29):
        for way in "ab":
            (folder / f"d{level}" / way).symlink_to(f"../d{level + 1}", target_is_directory=True)
    (folder / "d29" / "case.h").write_text("", encoding="utf-8")
    began = time.monotonic()
    assert "B035" in codes(kernel)
    assert time.monotonic() - began < 50  # exponential, it has no end


def test_a_package_with_too_much_python_is_a_finding(kernel):
    for number in range(10):
        path = kernel / "torch-ext" / "case" / f"m{number}.py"
        path.write_text("#" * (1 << 20), encoding="utf-8")
    assert codes(kernel) == {"B122"}


@pytest.mark.parametrize("coding", ["hex", "no-such-coding", "rot13", "undefined", "idna"])
def test_a_coding_that_is_none_is_a_finding(kernel, coding):
    (kernel / "torch-ext" / "case" / "__init__.py").write_text(f"# coding: {coding}\nx = 1\n", encoding="utf-8")
    assert codes(kernel) <= {"B122"}


LONG = "a" * 5000


@pytest.mark.parametrize(
    "config",
    [
        CONFIG.replace('"case.cpp"', f'"{LONG}.cpp"'),
        CONFIG.replace('"case.cpp"', f'"{LONG}/*.cpp"'),
        CONFIG.replace('"case.cpp"', f'"*{LONG}*"'),
        CONFIG.replace('"case.cpp"', f'"{"a/" * 3000}x.cpp"'),
        CONFIG + f'include = ["{LONG}"]\n',
        CONFIG.replace('name = "case"', f'name = "{LONG}"'),
    ],
    ids=["file", "glob", "wildcard", "deep", "include", "name"],
)
def test_names_longer_than_a_file_system_takes_are_findings(kernel, config):
    (kernel / "build.toml").write_text(config, encoding="utf-8")
    assert codes(kernel)
    assert cli.run(["check", str(kernel)]) in (0, 2)
    assert cli.run(["render", str(kernel), "--backend", "cpu"]) == 2 or config.endswith(f'include = ["{LONG}"]\n')


@pytest.mark.parametrize("name", [b"caf\xe9.cpp", b"a\tb.cpp", b"a\nb.cpp", b"a\x1bb.cpp"], ids=repr)
def test_a_file_whose_name_no_tool_takes_is_a_finding(kernel, name):
    (kernel / "more").mkdir()
    (kernel / "more" / os.fsdecode(name)).write_text("", encoding="utf-8")
    (kernel / "build.toml").write_text(CONFIG.replace('"case.cpp"', '"case.cpp", "more/*"'), encoding="utf-8")
    assert "B030" in codes(kernel)
    assert cli.run(["check", str(kernel)]) == 2
    assert cli.run(["render", str(kernel), "--backend", "cpu"]) == 2


CONTENT = st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda code: code.encode("utf-8", "replace")))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(content=CONTENT)
def test_no_python_file_makes_check_fall(kernel, content):
    (kernel / "torch-ext" / "case" / "__init__.py").write_bytes(content)
    assert codes(kernel) <= {"B120", "B121", "B122"}
