"""Build a cell: turn a rendered project into a finished, audited and load-tested wheel."""
