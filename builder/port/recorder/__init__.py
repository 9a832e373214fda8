"""Run a `setup.py` in a sandbox, in a separate process, and note the extensions that it creates.

This package is copied into the sandbox under another name, so it imports neither `builder` nor installed packages.
"""
