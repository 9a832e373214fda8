"""Build a cell: a rendered project becomes a finished, audited and loaded wheel."""
