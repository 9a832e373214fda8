"""The files of a release, asked of folders that are indexes."""

import os
import zipfile

import pytest

from builder.environment import indexes
from builder.environment.resolve import NoReleaseError, UnresolvedError, released

PYTHONS = ("cp310", "cp311", "cp312")


@pytest.fixture
def index(tmp_path):
    """Make an index of a package `demo`: version → Pythons with a wheel, and what they require of Python."""

    def make(name, releases):
        folder = tmp_path / name / "demo"
        folder.mkdir(parents=True)
        for version, (pythons, requires) in releases.items():
            for python in pythons:
                path = folder / f"demo-{version}-{python}-{python}-manylinux_2_28_x86_64.whl"
                with zipfile.ZipFile(path, "w") as wheel:
                    info = f"demo-{version}.dist-info"
                    metadata = f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\nRequires-Python: {requires}\n"
                    wheel.writestr(f"{info}/METADATA", metadata)
                    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n")
                    wheel.writestr(f"{info}/RECORD", "")
        links = "".join(
            f'<a href="{path.name}#sha256={"0" * 64}" data-requires-python="{releases[path.name.split("-")[1]][1]}">'
            f"{path.name}</a>"
            for path in sorted(folder.glob("*.whl"))
        ).replace(">=", "&gt;=")
        (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
        return (tmp_path / name).as_uri()

    return make


@pytest.fixture
def ask(tmp_path):
    def released_there(requirement, **env):
        own = indexes.read({"PATH": os.environ["PATH"]}, files=()).env
        env = {**own, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_INDEX_STRATEGY": "unsafe-best-match", **env}
        return released(requirement, pythons=PYTHONS, index=None, env=env)

    return released_there


def test_every_file_of_the_newest_release_is_named_where_it_lies(index, ask):
    default = index("default", {"1.0": (PYTHONS, ">=3.10"), "2.0": (PYTHONS[1:], ">=3.11")})
    files = ask("demo", UV_DEFAULT_INDEX=default)
    assert [file.file.split("-")[1:3] for file in files] == [["2.0", "cp311"], ["2.0", "cp312"]]
    assert all(file.place.endswith(f"/default/demo/{file.file}") and "://" not in file.place for file in files)
    assert {file.sha256 for file in files} == {"0" * 64}


def test_another_index_with_one_of_the_files_hides_none_of_the_default_one(index, ask):
    default = index("default", {"1.0": (PYTHONS, ">=3.10")})
    other = index("other", {"1.0": (PYTHONS[:1], ">=3.10")})
    files = ask("demo==1.0", UV_DEFAULT_INDEX=default, UV_EXTRA_INDEX_URL=other)
    assert [file.file.split("-")[2] for file in files] == list(PYTHONS)


def test_what_the_default_index_lacks_is_asked_of_the_others(index, ask):
    default = index("default", {"1.0": (PYTHONS, ">=3.10")})
    other = index("other", {"2.0": (PYTHONS, ">=3.10")})
    assert len(ask("demo==2.0", UV_DEFAULT_INDEX=default, UV_EXTRA_INDEX_URL=other)) == len(PYTHONS)


@pytest.mark.parametrize(
    "requirement",
    ["demo==3.0", *(pytest.param(each, marks=pytest.mark.slow) for each in ("demo==3.*", "absent==1.0"))],
)
def test_an_index_that_lacks_a_release_says_so(index, ask, requirement):
    with pytest.raises(NoReleaseError):
        ask(requirement, UV_DEFAULT_INDEX=index("default", {"1.0": (PYTHONS, ">=3.10")}))


def test_an_index_that_is_away_is_another_error(ask):
    with pytest.raises(UnresolvedError) as caught:
        ask("demo", UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", UV_HTTP_TIMEOUT="1", UV_HTTP_RETRIES="0")
    assert not isinstance(caught.value, NoReleaseError)
