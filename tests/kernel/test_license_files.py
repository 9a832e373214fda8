"""The texts of a license: found in the folder of a kernel, and part of its rendered project and its wheels."""

from builder import kernel
from builder.config import Backend
from builder.kernel.source_set import license_files, source_set
from builder.kernel.tree import Tree
from builder.render import render
from tests.render import small


def test_license_files_of_the_folder_are_found_and_links_and_others_are_not(tmp_path):
    for name in ("LICENSE", "LICENCE.md", "License.txt", "NOTICE", "COPYING-LGPL", "LICENSES", "LICENSE two", "x.md"):
        (tmp_path / name).write_text("")
    (tmp_path / "AUTHORS").mkdir()
    (tmp_path / "COPYRIGHT").symlink_to("LICENSE")
    found = license_files(Tree.of(tmp_path).plain_files(""))
    assert found == ("COPYING-LGPL", "LICENCE.md", "LICENSE", "License.txt", "NOTICE")


def test_a_project_has_them_and_says_so(tmp_path):
    before = render(small.kernel(tmp_path), Backend.CPU)
    assert b"\nwheel.license-files = []\n" in before.files["pyproject.toml"]
    (tmp_path / "LICENSE").write_text("Be kind.\n")
    loaded = kernel.load(tmp_path)
    assert "LICENSE" in source_set(loaded).paths
    project = render(loaded, Backend.CPU)
    assert project.files["LICENSE"] == b"Be kind.\n"
    assert b'\nlicense-files = ["LICENSE"]\n' in project.files["pyproject.toml"]
    assert b"wheel.license-files" not in project.files["pyproject.toml"]
    assert project.digest != before.digest


def test_a_license_without_an_spdx_name_has_its_files_too(tmp_path):
    small.kernel(tmp_path)
    config = tmp_path / "build.toml"
    config.write_text(config.read_text().replace('license = "Apache-2.0"', 'license = "Our own, see the file"'))
    (tmp_path / "LICENSE").write_text("Ours.\n")
    text = render(kernel.load(tmp_path), Backend.CPU).files["pyproject.toml"]
    assert b'\nwheel.license-files = ["LICENSE"]\n' in text
    assert b"\nlicense-files" not in text
