"""Foreign sources: what `[sources.<name>]` takes, and which entries name one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.config import read
from builder.config.sources import ForeignSource, SourceName, foreign_path
from builder.config.text import dotted
from builder.errors import ConfigError
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

REV = "0123456789abcdef0123456789abcdef01234567"
SHA256 = REV + "0123456789abcdef01234567"
GIT = f'[sources.cut]\ngit = "https://example.org/a/cut.git"\nrev = "{REV}"\n'
ARCHIVE = f'[sources.fmt]\nurl = "https://example.org/fmt-1.0.tar.gz"\nsha256 = "{SHA256}"\n'


def test_a_commit_and_an_archive_are_read():
    config = five("[torch]\n" + GIT + 'submodules = ["third_party/x"]\nlicense = "MIT"\n' + ARCHIVE)
    assert config.sources == {
        "cut": ForeignSource(
            git="https://example.org/a/cut.git", rev=REV, submodules=("third_party/x",), license="MIT"
        ),
        "fmt": ForeignSource(url="https://example.org/fmt-1.0.tar.gz", sha256=SHA256),
    }


@pytest.mark.parametrize("submodules", ["true", "false", "[]", '["a", "b/c"]'])
def test_a_config_with_sources_is_written_and_read_again(submodules):
    config = five("[torch]\n" + GIT + f"submodules = {submodules}\n" + ARCHIVE)
    assert read(source(dump(config))).config == config


@pytest.mark.parametrize(
    ("old", "new", "key", "code"),
    [
        pytest.param("https://example.org/a/cut.git", "ext::sh -c id", "sources.cut.git", "B051", id="ext"),
        pytest.param("https://example.org/a/cut.git", "--upload-pack=id", "sources.cut.git", "B051", id="option"),
        pytest.param("https://example.org/a/cut.git", "ssh://-oProxyCommand=id/x", "sources.cut.git", "B051", id="ssh"),
        pytest.param("https://example.org", "ssh://git@-oProxyCommand", "sources.cut.git", "B051", id="ssh user"),
        pytest.param("https://example.org", "https://user:secret@example.org", "sources.cut.git", "B051", id="secret"),
        pytest.param("https://example.org", "file:///etc", "sources.cut.git", "B051", id="file"),
        pytest.param("https://example.org/a", "/etc", "sources.cut.git", "B051", id="path"),
        pytest.param("https://example.org", "git://example.org", "sources.cut.git", "B051", id="git protocol"),
        pytest.param("cut.git", "cut.git\\nx", "sources.cut.git", "B051", id="newline"),
        pytest.param("cut.git", "cut.git\\n", "sources.cut.git", "B051", id="newline at the end"),
        pytest.param("cut.git", "cut;x", "sources.cut.git", "B051", id="list of CMake"),
        pytest.param("cut.git", "${CMAKE_COMMAND}", "sources.cut.git", "B051", id="variable of CMake"),
        pytest.param(REV, "main", "sources.cut.rev", "B052", id="branch"),
        pytest.param(REV, REV[:12], "sources.cut.rev", "B052", id="short commit"),
        pytest.param(REV, REV.upper(), "sources.cut.rev", "B052", id="upper case"),
        pytest.param(REV, "--" + REV[2:], "sources.cut.rev", "B052", id="option as commit"),
        pytest.param(REV, REV + "\\n", "sources.cut.rev", "B052", id="commit and newline"),
        pytest.param("[sources.cut]", "[sources.CUT]", "sources.CUT", "B050", id="upper-case name"),
        pytest.param("[sources.cut]", "[sources.c]", "sources.c", "B050", id="one letter"),
        pytest.param("[sources.cut]", '[sources."a b"]', "sources.a b", "B050", id="space"),
        pytest.param("[sources.cut]", '[sources."../x"]', "sources.../x", "B050", id="path as name"),
        pytest.param(
            "[sources.cut]", '[sources.cut]\nurl = "https://x.org/a.zip"', "sources.cut.url", "B015", id="two"
        ),
        pytest.param(f'rev = "{REV}"', "", "sources.cut.git", "B011", id="no commit"),
        pytest.param("rev =", 'submodules = ["../x"]\nrev =', "sources.cut.submodules[0]", "B023", id="submodule"),
        pytest.param("rev =", "submodules = 1\nrev =", "sources.cut.submodules", "B012", id="number"),
    ],
)
def test_a_bad_repository_is_refused_where_it_stands(old, new, key, code):
    problems = problems_of(GENERAL + "[torch]\n" + GIT.replace(old, new))
    first = problems[0] if code != "B011" else next(problem for problem in problems if problem.code == code)
    assert (dotted(first.key).replace("'", ""), first.code) == (key, code)
    assert all(problem.span is not None for problem in problems)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        pytest.param("fmt-1.0.tar.gz", "fmt-1.0.rar", "B051", id="format"),
        pytest.param("fmt-1.0.tar.gz", "fmt.tar.gz?token=1", "B051", id="query"),
        pytest.param("https:", "ftp:", "B051", id="ftp"),
        pytest.param(SHA256, SHA256[1:], "B052", id="short"),
        pytest.param(SHA256, "sha256:" + SHA256, "B052", id="prefix"),
        pytest.param("sha256 =", f'rev = "{REV}"\nsha256 =', "B011", id="commit of an archive"),
    ],
)
def test_a_bad_archive_is_refused(old, new, code):
    (problem,) = problems_of(GENERAL + "[torch]\n" + ARCHIVE.replace(old, new))
    assert problem.code == code


def test_a_table_without_git_and_url_is_one_problem():
    (problem,) = problems_of(GENERAL + "[torch]\n[sources.cut]\n")
    assert problem.message == "one of 'git', 'url' is required in [sources.cut]"


@pytest.mark.parametrize("path", ["", "/etc", "../x", "*.cu", "a/**/b.cu", "[a].cu", "a?.cu"])
def test_a_path_that_a_foreign_tree_cannot_have_is_refused(path):
    (problem,) = problems_of(f"{GENERAL}[torch]\nsrc = ['cut:{path}']\n{GIT}")
    assert (problem.code, dotted(problem.key)) == ("B053", "torch.src[0]")


def test_an_entry_of_an_unknown_source_is_told_the_nearest_one():
    (problem,) = problems_of(GENERAL + "[torch]\nsrc = ['cuts:a.cu']\n" + GIT)
    assert problem.message == "'cuts:a.cu' names the foreign source 'cuts', and there is no [sources.cuts]"
    assert problem.help == "did you mean 'cut'?"


def test_a_colon_is_a_letter_of_a_name_where_no_source_is_declared():
    assert five("[torch]\nsrc = ['cut:a.cpp']\n").torch.src == ("cut:a.cpp",)
    assert foreign_path("cut:a.cpp", ()) is None


@given(st.text(max_size=30), st.text(max_size=50))
def test_any_name_and_path_is_read_or_refused(name, entry):
    quoted = f'"{"".join(c if c.isalnum() and c.isascii() else f"u{ord(c):x}" for c in name)}"'
    text = f"{GENERAL}[torch]\nsrc = [{entry!a}]\n{GIT.replace('cut]', quoted + ']')}"
    try:
        found = read(source(text)).config
    except ConfigError as error:
        assert error.problems  # noqa: PT017  not every example is refused
        return
    assert all(SourceName.matches(each) for each in found.sources)
