"""Write a plan for programs: JSON, GitHub and GitLab."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from builder import json_text
from builder.ci.plan import CiJob, CiPlan, RunsOn
from builder.ci.plan.jobs import Runners, runner_data
from builder.config import Framework
from builder.errors import BuilderError
from builder.matrix import Cell

_MOST_BYTES = 1_000_000
"""GitHub refuses job outputs above 1 MiB."""
_LONGEST = 100_000
"""The most characters of a variable: Linux refuses variables above 128 KiB."""
_MARK = "\0"
"""A separator between items while they are encoded."""
_SAFE = re.compile(r"[A-Za-z0-9_./:@ -]*", re.ASCII)


def document(plan: CiPlan, runners: Runners, jobs: Sequence[CiJob] | None) -> str:
    """Return the JSON document that `data/matrix.schema.json` describes; each cell or row is on its own line.

    Raises:
        BuilderError: no runner is known for the system of a cell.
    """
    cells = [_cell(cell, runners.place(cell)) for cell in plan.cells]
    parts: dict[str, Sequence[Mapping[str, Any]]] = {"cells": cells, "skipped": list(_skipped(plan))}
    if jobs is not None:
        parts["jobs"] = [_job(job) for job in jobs]
    lines = [f'  "kernel": {json_text.line(plan.kernel.config.general.name)}']
    lines += [f'  "{name}": {_array(part)}' for name, part in parts.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def several(
    plans: Mapping[str, CiPlan],
    runners: Runners,
    jobs: Sequence[CiJob] | None,
    *,
    left_out: Mapping[str, str],
    errors: Mapping[str, str],
) -> str:
    """Return the JSON document of several plans by folder, with the reasons why other kernels have none.

    Raises:
        BuilderError: no runner is known for the system of a cell.
    """
    inner = ",\n".join(
        f"{json_text.line(folder)}: {document(plan, runners, None).rstrip()}" for folder, plan in plans.items()
    )
    parts = [f'"kernels": {{\n{inner}\n}}' if plans else '"kernels": {}']
    parts += [f'"left-out": {json_text.line(dict(left_out))}', f'"errors": {json_text.line(dict(errors))}']
    if jobs is not None:
        parts.append(f'"jobs": {_array([_job(job) for job in jobs])}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def github(jobs: Iterable[CiJob]) -> str:
    """Return the matrix of a GitHub workflow, on one line; `{"include": []}` if there is nothing to build.

    Raises:
        BuilderError: GitHub would refuse it.
    """
    text = json_text.compact({"include": [_checked(_job(job)) for job in jobs]})
    if len(text) > _MOST_BYTES:
        raise BuilderError(
            f"the matrix has {len(text)} bytes, and GitHub takes {_MOST_BYTES} of a job's output",
            help="plan a part of it: pass --backend or --system",
        )
    return f"{text}\n"


def gitlab(jobs: Iterable[CiJob]) -> str:
    """Return the jobs of a GitLab child pipeline as JSON, which is valid YAML; they extend a template of `builder.ci`.

    Raises:
        BuilderError: a pipeline cannot contain the name or the cells of a job.
    """
    pipeline: dict[str, Any] = {}
    for job in jobs:
        entry = _checked(_job(job))
        pipeline[entry["name"]] = {
            "extends": ".builder-build",
            "tags": [entry["runner"]],
            "image": entry["container"] or runner_data()["gitlab"]["image"][job.system],
            "variables": {
                "BUILDER_VARIANTS": entry["variants"],
                **({"BUILDER_DIRECTORIES": entry["directories"]} if job.kernels else {}),
            },
        }
    # GitLab refuses a pipeline without a job.
    return json_text.document(pipeline or {"nothing-to-build": {"script": ["echo nothing changed"]}})


def _cell(cell: Cell, place: RunsOn) -> dict[str, Any]:
    return {
        "variant": cell.variant,
        "framework": cell.framework.value,
        "backend": cell.backend.value,
        "system": cell.system,
        "torch": None if cell.framework is Framework.CTYPES else str(cell.torch),
        "toolkit": cell.toolkit,
        "stable_abi": None if cell.stable_abi is None else str(cell.stable_abi),
        **({} if cell.python is None else {"python": cell.python}),
        "bundle": cell.bundle,
        "runner": place.runner,
        "container": place.container,
    }


def _skipped(plan: CiPlan) -> Iterator[dict[str, Any]]:
    for decision in plan.skipped:
        line = plan.line(decision.key, decision.row.backend)
        yield {"row": str(decision.row), "rule": decision.rule, "message": decision.message, "line": line}
    for note in plan.notes:
        yield {"row": note.variant, "rule": note.rule, "message": note.message, "line": plan.line(note.key)}


def _array(items: Sequence[Mapping[str, Any]]) -> str:
    """Return a JSON array with an item on each line, encoded in one call for speed."""
    if not items:
        return "[]"
    between = [mark for item in items for mark in (item, _MARK)][:-1]
    # Inside a string, every quote has a backslash before it, so this sequence cannot occur there.
    lines = json_text.line(between)[1:-1].replace(f", {json_text.line(_MARK)}, ", ",\n    ")
    return f"[\n    {lines}\n  ]"


def _job(job: CiJob) -> dict[str, Any]:
    return {
        "name": job.name,
        "backend": job.backend.value,
        "system": job.system,
        "runner": job.place.runner,
        "container": job.place.container or "",
        "variants": job.variants,
        "minutes": job.minutes,
        **({"directories": _words(job.directories)} if job.kernels else {}),
    }


def _words(folders: Sequence[str]) -> str:
    """Quote folders as the words of a command line."""
    for folder in folders:
        if len(folder.split()) != 1:
            raise BuilderError(f"directory {json_text.line(folder)} cannot stand in a workflow", help="rename it")
    return " ".join(folders)


def _checked(entry: dict[str, Any]) -> dict[str, Any]:
    """Refuse text that a workflow could read as an expression, a command or several values."""
    for name, value in entry.items():
        text = str(value)
        if _SAFE.fullmatch(text) is None:
            raise BuilderError(f"{name} {json_text.line(text)} cannot stand in a workflow", help="rename it")
        if len(text) > _LONGEST:
            raise BuilderError(
                f"a job of {len(text.split())} variants is too long for a workflow", help="pass --shards to split it"
            )
    return entry
