"""Whatever the strings of a config are, a rendered project has them as strings."""

import ast
import json
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import toml
from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel import load
from builder.render import quoting, render
from tests.given.files import write
from tests.render.small import kernel

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
HOSTILE = st.one_of(
    TEXT,
    st.sampled_from(
        [
            '"',
            "')",
            "${HOME}",
            "$ENV{HOME}",
            "@X@",
            "#[[",
            "]]",
            '"""',
            "\\",
            "{{ x }}",
            "{% x %}",
            ")\nfoo(",
            "x" * 5000,
        ]
    ),
    st.lists(st.sampled_from(list("\"'$;)(\n[]{}@#\\<>%` x")), min_size=1, max_size=20).map("".join),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=HOSTILE, flag=HOSTILE)
def test_no_string_of_a_key_of_ours_becomes_syntax(tmp_path, value, flag):
    lines = f"defines = {{ X = {toml.spelled(value)} }}\nfile-flags = {{ 'one.cpp' = [{toml.spelled(flag)}] }}\n"
    try:
        project = render(kernel(tmp_path, component=lines), Backend.CPU, unique_id="x", allow_unsafe_flags=True)
    except ConfigError as error:
        assert all(problem.span is not None for problem in error.problems)  # noqa: PT017  not every example is refused
        return
    plain = kernel(tmp_path / "plain", component="defines = { X = 'V' }\nfile-flags = { 'one.cpp' = ['F'] }")
    expected = render(plain, Backend.CPU, unique_id="x")["CMakeLists.txt"]
    values = {"-DX=V": quoting.cmake(f"-DX={value}"), "F": quoting.cmake(flag)}
    found = re.sub(r"(?<=^    )(?:-DX=V|F)$", lambda one: values[one[0]], expected, flags=re.MULTILINE)
    assert project["CMakeLists.txt"] == found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(license_=HOSTILE, flag=HOSTILE, include=HOSTILE, hub=HOSTILE, revision=HOSTILE)
def test_no_string_of_a_config_becomes_syntax(tmp_path, license_, flag, include, hub, revision):  # noqa: PLR0917
    general = f"kernel-depends = [{{ repo-id = {toml.spelled(hub)}, revision = {toml.spelled(revision)} }}]\n"
    component = f"cxx-flags = [{toml.spelled(flag)}]\ninclude = [{toml.spelled(include)}]\n"
    try:
        kernel(tmp_path, general=general, component=component)
        config = (tmp_path / "build.toml").read_text(encoding="utf-8")
        config = config.replace('license = "Apache-2.0"', f"license = {toml.spelled(license_)}", 1)
        loaded = load(write(tmp_path, {"build.toml": config}))
        project = render(loaded, Backend.CPU, unique_id="x", allow_unsafe_flags=True)
    except ConfigError as error:
        assert all(problem.span is not None for problem in error.problems)  # noqa: PT017  not every example is refused
        return
    table = toml.loads(project["pyproject.toml"])
    found = table["project"]["license"]
    assert found == {"text": license_} or (
        isinstance(found, str) and found.lower() == " ".join(license_.split()).lower()
    )
    assert table["tool"]["scikit-build"]["wheel"]["py-api"] == "py3"
    metadata = json.loads(project["torch-ext/tiny/metadata.json"])
    assert metadata["license"] == license_
    assert metadata["kernel-depends"] == [{"repo-id": hub, "revision": revision}]
    ast.parse(project["torch-ext/tiny/_ops.py"])
    lists = project["CMakeLists.txt"]
    plain = render(
        kernel(tmp_path / "plain", component='cxx-flags = ["F"]\ninclude = ["I"]'), Backend.CPU, unique_id="x"
    )
    values = {"F": quoting.cmake(flag), "I": quoting.cmake(include)}  # both at once: one may be the other's name
    expected = re.sub(r"(?<=^    )[FI]$", lambda found: values[found[0]], plain["CMakeLists.txt"], flags=re.MULTILINE)
    assert lists == expected
