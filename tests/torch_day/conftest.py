"""A release that was recorded, a made-up next one, and the data files, also as a checkout."""

from dataclasses import replace

import pytest

from builder import resources, torch_day
from builder.torch_day.torch_release import from_json, toolkit_parts
from tests.given.repositories import commit
from tests.paths import TESTS

RECORDED = TESTS / "data" / "torch-day" / "2.13.0.json"


@pytest.fixture
def release():
    return from_json(RECORDED.read_text(encoding="utf-8"))


@pytest.fixture
def newer(release):
    """A made-up next torch, with one more function and header, an older standard and a new CUDA."""
    cuda = [build for build in release.builds if build.toolkit == "13.2"]
    builds = tuple(replace(build, toolkit="13.9") for build in cuda)
    shim = {library: (*names, "torch_new_function") for library, names in release.shim.items()}
    headers = (*release.python_headers, "torch/zzz.h")
    pinned = tuple(toolkit_parts("13.9", ("x86_64-linux",)))
    return replace(
        release, version="2.99.0", builds=builds, parts=pinned, shim=shim, python_headers=headers, standard=23
    )


@pytest.fixture(scope="module")
def texts():
    return {name: (resources.DATA / name).read_text(encoding="utf-8") for name in torch_day.READ}


@pytest.fixture
def data(tmp_path, texts):
    commit(tmp_path, texts)
    return tmp_path
