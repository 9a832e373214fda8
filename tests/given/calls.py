"""Functions that stand in for others."""


def raising(error):
    """Return a function that raises, whatever it is given."""

    def fail(*_, **__):
        raise error

    return fail


def noting(function, asked):
    """Return a function that does what another does, and appends its first argument to `asked`."""

    def noted(first, *others, **named):
        asked.append(first)
        return function(first, *others, **named)

    return noted
