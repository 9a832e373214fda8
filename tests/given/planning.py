"""Planners of the cells of a kernel, and machines to plan them for."""

from builder import kernel
from builder.plan.ask import Ask
from builder.plan.planner import Planner
from builder.store import Store
from tests.given.files import program


def planner(root, folder, *, path="/usr/bin:/bin", environ=None, **asked):
    """Return a planner of a kernel that builds into a folder, with a store in it."""
    store = Store(folder / "store")
    store.prepare()
    known = {"PATH": path, "HOME": str(folder), **(environ or {})}
    return Planner(kernel=kernel.load(root), ask=Ask(store=store, output=folder / "dist", environ=known, **asked))


def compilers(folder, *names):
    """Write programs that say of a part where it is, as compilers do, and return their folder, for PATH."""
    (folder / "libc.so.6").parent.mkdir(exist_ok=True)
    (folder / "libc.so.6").touch()
    for name in names:
        program(folder / name, f"#!/bin/sh\necho {folder}/libc.so.6\n")
    return str(folder)
