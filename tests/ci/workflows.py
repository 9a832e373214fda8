"""The CI files of this project, and their scripts."""

import pytest

from tests.paths import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ACTION = ROOT / ".github" / "actions" / "build" / "action.yml"
BUILD_ACTION = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
KERNEL = yaml.safe_load((ROOT / ".github" / "workflows" / "kernel.yml").read_text(encoding="utf-8"))


def steps(document):
    """Yield every step of a workflow or an action, with a name for messages."""
    if "runs" in document:
        yield from (("action", step) for step in document["runs"]["steps"])
    for name, job in document.get("jobs", {}).items():
        yield from ((name, step) for step in job.get("steps", ()))


def script(job, name, document=KERNEL):
    return next(step["run"] for where, step in steps(document) if where == job and step.get("name") == name)
