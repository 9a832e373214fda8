"""A plain library: functions of C, and no framework."""

import ctypes

from ._library import load


def scale(values, factor):
    """Return each value times a factor."""
    floats = ctypes.c_float * len(values)
    out = floats()
    load().plain_scale(out, floats(*values), ctypes.c_float(factor), ctypes.c_long(len(values)))
    return list(out)


def answer():
    """Return what the library answers."""
    return load().answer()
