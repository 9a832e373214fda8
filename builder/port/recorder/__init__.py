"""What runs beside a `setup.py` in its sandbox, in a process of its own, and notes what it asks to be compiled.

It imports nothing of `builder` and nothing that is installed: it is copied into the sandbox under another name.
"""
