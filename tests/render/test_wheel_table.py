"""The package, the files and the requirements that a config gives to the wheel, in a rendered project."""

import pytest

from builder import kernel, render, toml
from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel.source_set import source_set
from builder.lint import inspect
from tests.given.files import write
from tests.render import small

CONFIG = """
[general]
name = "my-scale"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]
python-depends = ["einops"]
[torch]
src = ["python/scale/csrc/binding.cpp", "python/scale/csrc/scale.h"]
[kernel.scale]
backend = "cpu"
depends = ["torch"]
src = ["python/scale/csrc/scale.cpp"]
[wheel]
package = "python//scale/"
requires = ["tokenizers>=0.20", "einops"]
data = ["python/scale/**/*.json", "python/scale/csrc/scale.h"]
"""
FILES = {
    "python/scale/__init__.py": "from ._ops import ops\n",
    "python/scale/deep/more.py": "",
    "python/scale/tuned/a100.json": "{}",
    "python/scale/note.txt": "",
    "python/scale/csrc/binding.cpp": '#include "scale.h"\n',
    "python/scale/csrc/scale.h": "#pragma once\n",
    "python/scale/csrc/scale.cpp": "",
    "python/other/__init__.py": "",
}
PACKAGE = "torch-ext/my_scale"


@pytest.fixture
def scale(tmp_path):
    """Write the kernel, with what is given changed, and read it."""

    return lambda config=CONFIG, **files: kernel.load(write(tmp_path, {**FILES, **files, "build.toml": config}))


def problems(made):
    with pytest.raises(ConfigError) as raised:
        source_set(made)
    return [(problem.code, problem.key) for problem in raised.value.problems]


def test_the_package_has_its_usual_place_in_the_project_and_only_what_ships(scale):
    project = render.render(scale(), Backend.CPU)
    inside = {path.removeprefix(f"{PACKAGE}/") for path in project.files if path.startswith(f"{PACKAGE}/")}
    assert inside == {
        "__init__.py", "_ops.py", "metadata.json", "deep/more.py", "tuned/a100.json", "csrc/scale.h",
    }  # fmt: skip
    assert {path for path in project.files if path.startswith("python/")} == {
        f"python/scale/csrc/{name}" for name in ("binding.cpp", "scale.h", "scale.cpp")
    }
    assert f"install(DIRECTORY {PACKAGE} DESTINATION .)" in project["CMakeLists.txt"]
    assert "python/scale/csrc/scale.cpp" in project["CMakeLists.txt"]


def test_a_backend_without_code_has_the_package_alone(scale):
    project = render.render(scale(), Backend.CUDA)
    assert f'wheel.packages = ["{PACKAGE}"]' in project["pyproject.toml"]
    assert not [path for path in project.files if path.startswith("python/")]
    assert f"{PACKAGE}/tuned/a100.json" in project.files


def test_requirements_stand_after_those_of_python_depends_each_once(scale):
    for backend in (Backend.CPU, Backend.CUDA):
        found = toml.loads(render.render(scale(), backend)["pyproject.toml"])["project"]["dependencies"]
        assert [name for name in found if name != "torch"] == ["einops", "tokenizers>=0.20"]


def test_data_of_a_package_in_its_usual_place_ships(scale):
    config = CONFIG.partition("[wheel]")[0] + f'[wheel]\ndata = ["{PACKAGE}/*.json"]\n'
    made = scale(config, **{f"{PACKAGE}/__init__.py": "", f"{PACKAGE}/a.json": "{}", f"{PACKAGE}/b.txt": ""})
    files = render.render(made, Backend.CPU).files
    assert f"{PACKAGE}/a.json" in files
    assert f"{PACKAGE}/b.txt" not in files


def test_what_changes_in_a_data_file_changes_the_project(scale):
    before = render.render(scale(), Backend.CPU).digest
    after = render.render(scale(**{"python/scale/tuned/a100.json": "[]"}), Backend.CPU).digest
    other = render.render(scale(**{"python/scale/note.txt": "more"}), Backend.CPU).digest
    assert before == other != after


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        pytest.param("python/other/__init__.py", "B055", id="of another package"),
        pytest.param("build.toml", "B055", id="outside of the package"),
        pytest.param("python/scale/missing.json", "B030", id="missing"),
        pytest.param("python/scale/*.yaml", "B034", id="a glob of nothing"),
        pytest.param("python/scale/tuned", "B030", id="a folder"),
        pytest.param("python/scale/lib.so", "B055", id="a library"),
        pytest.param("python/scale/metadata.json", "B055", id="a file that the build writes"),
        pytest.param("python/scale/../other/__init__.py", "B055", id="a way out"),
    ],
)
def test_data_that_the_wheel_cannot_have_is_refused_at_its_place(scale, entry, code):
    config = CONFIG.replace('data = ["python/scale/**/*.json", "python/scale/csrc/scale.h"]', f'data = ["{entry}"]')
    made = scale(config, **{"python/scale/lib.so": "", "python/scale/metadata.json": "{}"})
    assert problems(made) == [(code, ("wheel", "data", 0))]


def test_data_behind_a_link_out_of_the_project_is_refused(scale, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.json"
    outside.write_text("{}", encoding="utf-8")
    made = scale()
    (made.root / "python/scale/linked.json").symlink_to(outside)
    assert problems(made) == [("B031", ("wheel", "data", 0))]


@pytest.mark.parametrize(
    ("package", "code"),
    [
        pytest.param("python/missing", "B032", id="missing"),
        pytest.param(".", "B032", id="the project itself"),
        pytest.param("python/other/../scale", "B032", id="a detour"),
        pytest.param("python/scale/note.txt", "B032", id="a file"),
    ],
)
def test_a_folder_that_is_no_package_is_refused_at_its_place(scale, package, code):
    made = scale(
        CONFIG.replace("python//scale/", package).replace(
            'data = ["python/scale/**/*.json", "python/scale/csrc/scale.h"]', ""
        )
    )
    assert problems(made) == [(code, ("wheel", "package"))]


def test_a_second_package_is_refused(scale):
    made = scale(**{f"{PACKAGE}/__init__.py": ""})
    assert ("B056", ("wheel", "package")) in problems(made)


def test_check_reads_the_package_where_it_is(scale):
    made = scale(**{"python/scale/deep/more.py": "import torch\ntorch.library.define('a::b', '() -> ()')\n"})
    codes = {located.problem.code: located.file for located in inspect(made.root).found}
    assert codes["B120"].endswith("python/scale/deep/more.py")
    assert "B130" in codes


def test_a_rendered_project_has_the_version_of_the_wheel(tmp_path):
    found = render.render(small.kernel(tmp_path / "whole", extra='[wheel]\nversion = "3.1.4"\n'), Backend.CPU)
    plain = render.render(small.kernel(tmp_path / "plain"), Backend.CPU)
    assert 'version = "3.1.4"\n' in found["pyproject.toml"]
    assert 'version = "3.0.0"\n' in plain["pyproject.toml"]


def test_a_rendered_project_has_the_readme_and_another_digest_with_each_text(tmp_path):
    extra = '[wheel]\nreadme = "docs/../docs/About me.md"\n'
    texts = {name: {"docs/About me.md": f"# {name}\n"} for name in ("One", "Two")}
    found, other = (small.rendered(tmp_path / name, extra=extra, files=files) for name, files in texts.items())
    assert toml.loads(found["pyproject.toml"])["project"]["readme"] == {
        "file": "docs/About me.md", "content-type": "text/markdown",
    }  # fmt: skip
    assert found["docs/About me.md"] == "# One\n"
    assert found.digest != other.digest
    assert "readme" not in render.render(small.kernel(tmp_path / "none"), Backend.CPU)["pyproject.toml"]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        pytest.param("ABOUT.md", "B030", id="missing"),
        pytest.param("python", "B030", id="a folder"),
        pytest.param("latin.txt", "B030", id="not UTF-8"),
        pytest.param("linked.md", "B031", id="a link out of the project"),
    ],
)
def test_a_readme_that_is_no_text_of_the_project_is_refused_at_its_place(scale, tmp_path_factory, entry, code):
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("", encoding="utf-8")
    made = scale(f'{CONFIG}readme = "{entry}"\n')
    (made.root / "latin.txt").write_bytes(b"caf\xe9\n")
    (made.root / "linked.md").symlink_to(outside)
    assert problems(made) == [(code, ("wheel", "readme"))]
