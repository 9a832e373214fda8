"""What a build is to be: one value, which comes back from JSON as it was."""

import base64
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import kernel, matrix
from builder.config import LoadTestRule
from builder.config.v5 import KernelDependency
from builder.errors import BuilderError
from builder.make.job import InstalledPackages, PinnedPackages, Spec
from builder.make.kernel_lock import LockedCommit, LockedTree, LockError, read_trees, write_trees
from builder.pins import PinnedWheel, PinSet
from builder.wheel.options import BuildOptions
from tests.paths import ROOT

CELLS = [
    cell
    for name in ("relu", "rmsnorm-stable", "silu-and-mul")
    for cell in matrix.select(kernel.load(ROOT / "examples" / name).config, matrix.rows(), unbundled=True)
]
PATHS = st.text("/abc ", min_size=1).map(Path)
TEXTS = st.none() | st.text()
OPTIONS = st.builds(
    BuildOptions,
    version=TEXTS,
    label=st.booleans(),
    policy=st.text(),
    only=st.just(()) | st.just(("8.0", "9.0a")),
    unique_id=TEXTS,
    allow_unsafe_flags=st.booleans(),
    epoch=st.integers(min_value=0, max_value=1 << 32),
    load_test=st.none() | st.sampled_from(LoadTestRule),
    without=st.just(()) | st.just(("strip", "fixed-zip")),
    variables=st.dictionaries(st.text(), st.text(), max_size=2),
)
WHEELS = st.builds(PinnedWheel, file=st.text(), name=st.text(), version=st.text(), sha256=st.text(), index=TEXTS)
PINS = st.builds(PinSet, st.just("cp311"), st.just("x86_64-linux"), st.lists(WHEELS, max_size=3).map(tuple))
PINNED = st.builds(PinnedPackages, path=PATHS, pins=PINS)
REPOSITORIES = st.sampled_from(("team/base", "team/other"))
DEPENDENCIES = st.builds(KernelDependency, repo_id=REPOSITORIES, version=st.integers(0, 9)) | st.builds(
    KernelDependency, repo_id=REPOSITORIES, revision=st.text()
)
HASHES = st.binary(min_size=32, max_size=32).map(lambda raw: "sha256-" + base64.b64encode(raw).decode())
LOCKED = st.builds(LockedCommit, commit=st.sampled_from(("a" * 40, "b" * 64)), hash=HASHES)
TREES = st.builds(LockedTree, locked=LOCKED, folder=PATHS)


@given(
    st.builds(
        Spec,
        kernel=PATHS,
        cell=st.sampled_from(CELLS),
        environment=PINNED | st.builds(InstalledPackages, python=PATHS, site_packages=PATHS),
        test_environment=st.none() | PINNED,
        headers=st.dictionaries(st.text(), PATHS, max_size=2),
        kernels=st.none() | st.dictionaries(DEPENDENCIES, TREES, max_size=3),
        options=OPTIONS,
    )
)
def test_a_spec_comes_back_from_json(spec):
    assert Spec.from_json(spec.to_json()) == spec
    assert Spec.from_json(spec.to_json()).to_json() == spec.to_json()


def test_options_that_are_the_default_are_not_spelled():
    assert BuildOptions().to_json() == {}
    assert BuildOptions.from_json({}) == BuildOptions()
    assert BuildOptions(label=False).to_json() == {"label": False}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        pytest.param(
            {"lable": False}, "'lable' is not an option of a build\n  help: did you mean 'label'?", id="misspelt"
        ),
        pytest.param(
            {"x": 1}, "'x' is not an option of a build\n  help: there are 'wheel-version', 'label'", id="unknown"
        ),
        pytest.param({"label": "no"}, "the option 'label' is \"no\", not true or false", id="no boolean"),
        pytest.param({"policy": 2}, "the option 'policy' is 2, not a text", id="no text"),
        pytest.param({"archs": "9.0"}, "the option 'archs' is \"9.0\", not a list of texts", id="no list"),
        pytest.param({"archs": [9.0]}, "the option 'archs' is [9.0], not a list of texts", id="a list of numbers"),
        pytest.param({"archs": ["sm_90"]}, "'sm_90' is not an architecture of a GPU", id="no architecture"),
        pytest.param({"archs": ["9.0", "gfx942"]}, "are not for one build", id="two backends"),
        pytest.param({"variables": {"A": 1}}, "the option 'variables' is {\"A\": 1}, not a table", id="no texts"),
        pytest.param({"load-test": "maybe"}, "the option 'load-test' is \"maybe\"", id="no rule"),
    ],
)
def test_an_option_that_a_build_cannot_have_is_refused(table, said):
    with pytest.raises(BuilderError) as raised:
        BuildOptions.from_json(table)
    assert said in str(raised.value)


def test_locked_kernels_of_a_spec_that_are_none_of_a_lock_are_refused():
    tree = LockedTree(locked=LockedCommit(commit="a" * 40, hash=f"sha256-{'A' * 43}="), folder=Path("t"))
    (entry,) = write_trees({KernelDependency(repo_id="team/base", version=1): tree})
    assert read_trees([entry]) == {KernelDependency(repo_id="team/base", version=1): tree}
    for wrong, said in (
        ([entry, entry], "'team/base' (version 1) is there twice"),
        ([{**entry, "more": 1}], "an entry has not the keys"),
        ([{**entry, "dependency": {"repo-id": "team/base"}}], "a dependency has not the keys"),
    ):
        with pytest.raises(LockError, match=re.escape(said)):
            read_trees(wrong)


def test_without_isolation_there_are_no_pins():
    spec = Spec(
        kernel=Path("k"), cell=CELLS[0], environment=InstalledPackages(python=Path("p"), site_packages=Path("s"))
    )
    assert spec.pins == ""
    assert json.loads(spec.to_json())["environment"] == {"python": "p", "site-packages": "s"}
