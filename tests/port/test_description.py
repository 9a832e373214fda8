"""The readme of a ported project, and the Pythons that it is for."""

import pytest

from tests.port.projects import SIMPLE, ported

TEXT = "# Scale\n\nScales.\n"


@pytest.mark.parametrize("text", ["open('README.rst').read()", "open('README.rst').read().strip()"])
def test_the_file_that_setup_py_reads_is_the_readme(tmp_path, text):
    files = {"README.md": "other", "README.rst": TEXT}
    found = ported(tmp_path, SIMPLE.replace("setup(", f"setup(long_description={text}, "), files=files)
    assert found.config.wheel.readme == "README.rst"
    assert not any("README" in line for line in found.remaining)


def test_a_readme_that_nobody_names_is_none(tmp_path):
    assert ported(tmp_path, SIMPLE, files={"README.md": TEXT}).config.wheel.readme is None


@pytest.mark.parametrize("value", ['"docs/about.md"', '{ file = "docs/./about.md", content-type = "text/markdown" }'])
def test_the_readme_of_pyproject_toml_is_taken(tmp_path, value):
    files = {"pyproject.toml": f"[project]\nname = 'scale'\nreadme = {value}\n", "docs/about.md": TEXT}
    assert ported(tmp_path, SIMPLE, files=files).config.wheel.readme == "docs/about.md"


@pytest.mark.parametrize("value", ["1", '"../about.md"', '"missing.md"', '{ text = "a" }', '"docs"'])
def test_another_value_of_pyproject_toml_is_left_out(tmp_path, value):
    files = {"pyproject.toml": f"[project]\nname = 'scale'\nreadme = {value}\n", "docs/a": ""}
    assert ported(tmp_path, SIMPLE, files=files).config.wheel.readme is None


def test_a_description_that_is_no_file_remains(tmp_path):
    found = ported(tmp_path, SIMPLE.replace("setup(", "setup(long_description='Made up.', "), files={"README.md": TEXT})
    assert found.config.wheel.readme is None
    (line,) = (line for line in found.remaining if "wheel.readme" in line)
    assert line.startswith("setup.py:")


@pytest.mark.parametrize(
    ("range_", "lost"),
    [
        (">=3.8", None),
        (">=3.10.2", None),
        (">=3.11", "'3.10'"),
        ("<3.14,>=3.9", "'3.14'"),
    ],
)
def test_pythons_that_the_project_refuses_are_told_to_a_person(tmp_path, range_, lost):
    found = ported(tmp_path, SIMPLE.replace("setup(", f"setup(python_requires='{range_}', "))
    assert ([] if lost is None else [lost]) == [
        line.partition("wheels are for ")[2].partition(",")[0] for line in found.remaining if "for Python" in line
    ]


def test_pythons_of_pyproject_toml_count_too_and_nonsense_is_told(tmp_path):
    files = {"pyproject.toml": "[project]\nname = 'scale'\nrequires-python = '>=3.11'\n"}
    assert "'3.10'" in "".join(ported(tmp_path / "one", SIMPLE, files=files).remaining)
    other = ported(tmp_path / "two", SIMPLE.replace("setup(", "setup(python_requires='new', "))
    assert "no range of Pythons" in "".join(other.remaining)


def test_what_a_wheel_cannot_have_is_told_to_a_person(tmp_path):
    options = (
        "entry_points={'console_scripts': ['scale=scale_it:main']}, project_urls={}, extras_require={'dev': ['x']}, "
    )
    files = {"pyproject.toml": "[project]\nname = 'scale'\nscripts = { scale = 'x:y' }\noptional-dependencies = {}\n"}
    made = ported(tmp_path, SIMPLE.replace("setup(", f"setup({options}"), files=files)
    found = [line for line in made.remaining if "of which no key" in line]
    assert [line.partition(": ")[2] for line in found] == [
        "the wheel has nothing of 'entry_points', 'extras_require', of which no key says anything",
        "the wheel has nothing of 'project.scripts', of which no key says anything",
    ]
    assert [line.partition(":")[0] for line in found] == ["setup.py", "pyproject.toml"]
    assert "of which no key" not in "".join(ported(tmp_path / "plain", SIMPLE).remaining)
