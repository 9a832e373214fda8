"""What an error shows, and the exit code that says which kind it was."""

import pytest

from builder import errors
from builder.loadtest.load_outcome import LoadError
from builder.store import StoreError
from builder.store.locks import StoppedError


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.DifferenceError, 1),
        (StoppedError, 1),
        (errors.BuilderError, 2),
        (errors.NothingToDoError, 3),
        (errors.ToolError, 4),
        (errors.NotHereError, 4),
        (errors.WrongHashError, 4),
        (errors.DiskFullError, 4),
        (StoreError, 4),
        (errors.AuditError, 5),
        (LoadError, 5),
        (errors.PublishError, 6),
    ],
)
def test_every_kind_of_error_has_the_exit_code_that_the_guide_gives(kind, code):
    assert kind("x").exit_code == code


def test_an_error_shows_its_message_and_then_its_remedy():
    assert str(errors.BuilderError("a file is missing")) == "a file is missing"
    assert str(errors.BuilderError("a file is missing", help="write it")) == "a file is missing\n  help: write it"


def test_an_error_of_a_config_keeps_its_problems_and_has_the_code_of_configs():
    problem = errors.Problem(code="B001", severity="error", message="m")
    error = errors.ConfigError(file="build.toml", problems=[problem], rendered="shown")
    assert (str(error), error.file, error.problems, error.exit_code) == ("shown", "build.toml", (problem,), 2)
