"""How many small changes of the core modules the fast tests notice; `mutants.toml` says which tests concern a module.

It changes the modules in place, so `make mutants` runs it in a checkout that nothing else uses.
Run: python benchmarks/mutants.py [PART OF A MODULE'S PATH ...]
"""

import ast
import random
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome

from builder import toml

SAMPLE, SEED = 10, 1
"""How many changes of each module are tried, and where the choice begins."""


def drawn(module: Path, choice: random.Random) -> list[MutationSpec]:
    """Draw places, and one change at each; an annotation needs no test, and `/`, which joins paths, fails at once."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    types = [each for node in nodes for name in ("annotation", "returns") if (each := getattr(node, name, None))]
    places = defaultdict(list)
    with use_db(":memory:") as session:
        init([module], session, {})
        for change in sorted((item.mutations[0] for item in session.work_items), key=lambda each: each.operator_name):
            line, at = change.start_pos
            typed = any(each.lineno == line and each.col_offset <= at <= each.end_col_offset for each in types)
            if not typed and "_Div_" not in change.operator_name:
                places[line, at, change.operator_name.split("_")[0]].append(change)
    return [choice.choice(places[place]) for place in choice.sample(sorted(places), min(SAMPLE, len(places)))]


parts = sys.argv[1:] or [""]
fast = "-x -q -n0 -p no:cacheprovider -m 'not (cuda or rocm or nix or gpu or network or slow)'"
fast += f" --basetemp {tempfile.mkdtemp()}/tests"  # one place, for a change may fill it
counts = defaultdict(Counter)
table = toml.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
for module, tests in table["tests"].items():
    if any(part in module for part in parts):
        command = f"{sys.executable} -m pytest {fast} {' '.join(tests)} tests/test_values.py"
        if run_tests(command, 60)[0] is not TestOutcome.SURVIVED:
            sys.exit(f"the tests of {module} fail without a change")
        for change in drawn(Path(module), random.Random(f"{SEED} {module}")):
            result = mutate_and_test([change], command, 60)
            known = {line[:1] + line[1:].strip() for line in result.diff.splitlines()} & table["equivalent"].keys()
            missed = "equivalent" if known else "missed"
            counts[Path(module).parent]["noticed" if result.test_outcome is not TestOutcome.SURVIVED else missed] += 1
            if result.test_outcome is TestOutcome.SURVIVED:
                print(*known or [result.diff], flush=True)
print("| package | tried | noticed | equivalent | missed |\n|---|---|---|---|---|")
for package, count in counts.items():
    print(f"| {package} | {sum(count.values())} | {count['noticed']} | {count['equivalent']} | {count['missed']} |")
