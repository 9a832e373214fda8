"""Run a `setup.py` in its sandbox, in a process of its own, and note the extensions that it asks for.

It imports nothing of `builder` and nothing that is installed: it is copied into the sandbox under another name.
"""
