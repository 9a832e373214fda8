"""Which kernels a command line names."""

from pathlib import Path

import pytest

from builder.cli import selecting
from builder.errors import BuilderError, NothingToDoError
from builder.plan.kernels import Refusal, SameNameError, load
from tests.cli.folders import write


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        write(tmp_path / "kernels", name)
    (tmp_path / "kernels/README.md").touch()
    (tmp_path / "kernels/scripts").mkdir()
    return tmp_path


def found(*names):
    return [str(folder) for folder in selecting.find([Path(name) for name in names]).folders]


@pytest.mark.usefixtures("root")
def test_a_pattern_picks_the_folders_with_a_config_by_name():
    assert found("kernels/*") == ["kernels/one", "kernels/two"]
    assert found("kernels/t*") == ["kernels/two"]
    assert found("kernels/[o]ne") == ["kernels/one"]
    assert found("kernels/*/build.toml") == ["kernels/one", "kernels/two"]


@pytest.mark.usefixtures("root")
def test_one_folder_is_one_kernel_and_anything_else_several():
    assert not selecting.find([Path("kernels/one")]).several
    assert selecting.find([Path("kernels/on*")]).several
    assert selecting.find([Path("kernels/one"), Path("kernels/one")]).several


def test_a_folder_that_two_names_stand_for_counts_once(root):
    (root / "kernels/link").symlink_to("one")
    assert found("kernels/one", "kernels/one/", "./kernels/one", str(root / "kernels/one")) == ["kernels/one"]
    assert found("kernels/two", "kernels/*") == ["kernels/two", "kernels/link"]
    assert found("kernels/one/build.toml", "kernels/link") == ["kernels/one"]


def test_a_folder_whose_name_looks_like_a_pattern_is_that_folder(root):
    write(root / "kernels", "odd", folder="o*[1]")
    assert found("kernels/o*[1]") == ["kernels/o*[1]"]


def test_a_pattern_leaves_hidden_folders_out(root):
    write(root / "kernels", "hidden", folder=".hidden")
    assert found("kernels/*") == ["kernels/one", "kernels/two"]


def test_a_kernel_inside_another_is_a_kernel_of_its_own(root):
    write(root / "kernels/one", "inner")
    assert found("kernels/*", "kernels/*/*") == ["kernels/one", "kernels/two", "kernels/one/inner"]


@pytest.mark.usefixtures("root")
def test_a_pattern_that_picks_nothing_says_so():
    with pytest.raises(NothingToDoError, match=r"^'kernels/x\*' picks no folder with a build.toml"):
        found("kernels/x*")


@pytest.mark.usefixtures("root")
def test_a_folder_of_kernels_is_no_kernel_and_the_error_names_the_pattern():
    with pytest.raises(BuilderError) as raised:
        found("kernels")
    assert str(raised.value) == (
        "'kernels' has no build.toml, but 2 of its folders have one: one, two\n"
        "  help: name them all by a pattern: 'kernels/*'"
    )


@pytest.mark.usefixtures("root")
def test_a_pattern_names_each_level():
    with pytest.raises(BuilderError, match=r"^'\*\*' in 'kernels/\*\*': a pattern names each level of folders"):
        found("kernels/**")


def test_no_pattern_follows_a_link_out_of_its_folder(root):
    write(root / "elsewhere", "three")
    (root / "kernels/three").symlink_to(root / "elsewhere/three")
    with pytest.raises(BuilderError, match="'kernels/three' is a symbolic link out of"):
        found("kernels/*")
    assert found("kernels/three") == ["kernels/three"]


@pytest.mark.usefixtures("root")
def test_every_name_that_is_wrong_is_told_and_the_worst_code_counts():
    with pytest.raises(NothingToDoError) as raised:
        found("kernels/x*", "kernels", "a/**")
    assert str(raised.value).count("error: ") == 2
    assert raised.value.exit_code == 3


def test_loading_goes_on_after_a_config_that_is_wrong(root):
    (root / "kernels/one/build.toml").write_text("[general", encoding="utf-8")
    loaded, refusals = load(selecting.find([Path("kernels/*"), Path("kernels/README.md"), Path("nowhere")]).folders)
    assert [kernel.config.general.name for kernel in loaded] == ["two"]
    assert [str(refusal.folder) for refusal in refusals] == ["kernels/one", "kernels/README.md", "nowhere"]
    assert "kernels/one/build.toml" in str(refusals[0].error)


@pytest.mark.usefixtures("root")
def test_names_that_are_no_kernels_say_how_to_pick_only_kernels():
    _, refusals = load(selecting.find([Path("kernels/README.md"), Path("kernels/scripts"), Path("nowhere")]).folders)
    assert [refusal.error.message for refusal in refusals] == [
        "'kernels/README.md' is not a folder",
        "'kernels/scripts' has no build.toml",
        "'nowhere' is not there",
    ]
    assert {refusal.error.help for refusal in refusals} == {
        "name folders of kernels, or a pattern in quotes, as 'kernels/*', which picks only these"
    }


def test_two_kernels_of_one_name_are_refused(root):
    write(root / "more", "one")
    loaded, refusals = load(selecting.find([Path("kernels/*"), Path("more/*")]).folders)
    assert [str(kernel.root) for kernel in loaded] == ["kernels/one", "kernels/two"]
    (clash,) = refusals
    assert isinstance(clash.error, SameNameError)
    assert str(clash.error).startswith("'kernels/one' and 'more/one' are both kernel 'one'\n")


def test_what_several_kernels_have_in_common_is_said_once(capsys):
    same = BuilderError("no commit 'x' in this repository")
    refusals = [Refusal(folder=Path(name), error=same) for name in ("a", "b")]
    assert selecting.say([*refusals, Refusal(folder=Path("c"), error=NothingToDoError("nothing"))]) == 3
    assert capsys.readouterr().err == (
        "error: no commit 'x' in this repository\n  of 2 kernels: a, b\nerror: nothing\n"
    )
    assert selecting.say([]) == 0
