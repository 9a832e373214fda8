"""Functions that stand in for others."""

import os


def raising(error):
    """Return a function that raises, whatever it is given."""

    def fail(*_, **__):
        raise error

    return fail


def failing(code):
    """Return a function that fails as the system does with this code."""
    return raising(OSError(code, os.strerror(code)))


def noting(function, asked):
    """Return a function that does what another does, and appends its first argument to `asked`."""

    def noted(first, *others, **named):
        asked.append(first)
        return function(first, *others, **named)

    return noted
