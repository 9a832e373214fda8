"""What the cache of compiled files says of a build that failed."""

import pytest

from builder.compile_cache.session import Session
from builder.engine.compiled_files import ServedJob
from builder.make.job import CompileError
from tests.report.recorded import file


@pytest.fixture
def session():
    return Session(caches=None, origins={"a.o": {"cache": "store", "writer": "ci-7", "saved": 4.0}})


def test_of_a_build_that_failed_each_object_says_where_it_came_from(session):
    error = CompileError("the build failed")
    error.files = (file("a.o", 0, 1), file("b.o", 0, 5))
    assert ServedJob(job=None, session=session).judged(error) is error
    assert error.files == (file("a.o", 0, 1, cache="store", writer="ci-7", saved=4.0), file("b.o", 0, 5))


def test_without_a_cache_an_error_stays_as_it_is():
    error = CompileError("the build failed")
    error.files = (file("a.o", 0, 1),)
    assert ServedJob(job=None).judged(error).files == (file("a.o", 0, 1),)
