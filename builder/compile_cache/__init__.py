"""The cache of compiled files: ccache decides what an object depends on, this package keeps and shares the entries."""
