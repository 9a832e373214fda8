"""Cells of kernels."""

from builder import kernel, matrix


def cell_of(config, *, sets=None, **wanted):
    """Return the first cell of a config that has these values, among the rows of some sets, or of all."""
    rows = [row for row in matrix.rows() if sets is None or row.set in sets]
    cells = matrix.select(config, rows, unbundled=True)
    return next(cell for cell in cells if all(getattr(cell, name) == value for name, value in wanted.items()))


def cell_in(root, **wanted):
    """Return the same of the kernel in a folder."""
    return cell_of(kernel.load(root).config, **wanted)
