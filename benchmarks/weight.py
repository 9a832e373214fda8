"""Print how heavy the program is: its lines, modules and functions, and how many of them run for a command.

It checks nothing: a change is made with these figures in view. Run: python benchmarks/weight.py

A dry run after a build computes the build key, so build first: builder build examples/relu. The store remembers an
environment for the code that made it: after a change of builder's code, the dry run stops before the key.
"""

import ast
import inspect
import io
import json
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CELL = "torch213-cxx11-cpu-x86_64-linux"
DRY_RUN = ["build", "examples/relu", "--variant", CELL, "--dry-run"]
COMMANDS = {
    "matrix": ["matrix", "examples/relu"],
    "build --dry-run, without a store": [*DRY_RUN, "--store", "/nonexistent"],
    "build --dry-run, after a build": DRY_RUN,
    "check": ["check", "examples/relu"],
    "render": ["render", "examples/relu", "--backend", "cpu"],
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    """Print the tables."""
    if len(sys.argv) > 1:
        print(json.dumps(_traced(sys.argv[1:])), file=sys.stderr)
        return
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in _sources("builder")}
    _print_size(trees)
    _print_names(trees)
    _print_tests()
    _print_commands()


def _sources(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "template" not in path.parts)


def _print_size(trees: dict[Path, ast.Module]) -> None:
    kinds = sum((_kinds(path, tree) for path, tree in trees.items()), Counter())
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    lengths = [node.end_lineno - node.lineno + 1 for node in functions]
    print("| builder/ | |\n|---|---|")
    print(f"| modules | {len(trees)} |\n| lines | {sum(kinds.values()):,} |")
    for kind, count in kinds.most_common():
        print(f"| … {kind} | {count:,} |")
    mean, median = statistics.mean(lengths), statistics.median(lengths)
    print(f"| functions | {len(functions):,}, mean {mean:.1f} lines, median {median:.0f} |")
    uses = Uses(trees)
    used = [uses.count(path, name) for path, tree in trees.items() for name in _functions(tree)]
    print(f"| functions of modules, used from one place | {used.count(1):,} of {len(used):,} |")
    importers = Counter(name for tree in trees.values() for name in {module for module, _ in _imports(tree)})
    once = [path for path in trees if importers[_dotted(path)] == 1 and path.name != "__init__.py"]
    print(f"| modules that one other imports | {len(once)} |")


def _kinds(path: Path, tree: ast.Module) -> Counter[str]:
    """Count lines of code, docstrings, comments and blanks."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kind = ["blank" if not line.strip() else "code" for line in lines]
    for node in ast.walk(tree):
        # A text that stands alone documents the module, class, function or value before it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kind[node.lineno - 1 : node.end_lineno] = ["docstring"] * (node.end_lineno - node.lineno + 1)
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
            kind[token.start[0] - 1] = "comment"
    return Counter(kind)


def _functions(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, FUNCTIONS) and not node.decorator_list:
            yield node.name


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each module of `builder` that one imports, or imports a name of, with the name that it gives to it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("builder"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                file = ROOT / inner.replace(".", "/")
                is_module = file.is_dir() or file.with_suffix(".py").is_file()
                yield inner if is_module else node.module, alias.asname or alias.name


class Uses:
    """The places that name a function of a module, in it and in others; imports do not count."""

    def __init__(self, trees: dict[Path, ast.Module]) -> None:
        self._loads = {path: _loads(tree) for path, tree in trees.items()}
        self._aliases: dict[str, list[tuple[Path, str]]] = {}
        for path, tree in trees.items():
            for module, alias in dict.fromkeys(_imports(tree)):
                self._aliases.setdefault(module, []).append((path, alias))

    def count(self, path: Path, name: str) -> int:
        """Return in how many places a function is named."""
        count = self._loads[path][name]
        for other, alias in self._aliases.get(_dotted(path), ()):
            count += self._loads[other][name if alias == name else f"{alias}.{name}"]
        return count


def _loads(tree: ast.Module) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found[f"{node.value.id}.{node.attr}"] += 1
    return found


def _print_names(trees: dict[Path, ast.Module]) -> None:
    classes = Counter(node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef))
    modules = Counter(path.stem for path in trees if not path.stem.startswith("__"))
    for what, names in (("classes", classes), ("modules", modules)):
        several = [f"{name} ({count})" for name, count in names.most_common() if count > 1]
        print(f"| names of several {what} | {len(several)}: {', '.join(several)} |")


def _print_tests() -> None:
    helpers = lines = 0
    given = ("golden", "data")  # kernels and rendered projects, which tests read
    for path in (each for each in _sources("tests") if each.relative_to(ROOT).parts[1] not in given):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lines += len(path.read_text(encoding="utf-8").splitlines())
        for node in ast.walk(tree):
            helpers += isinstance(node, FUNCTIONS) and not node.name.startswith("test") and not node.decorator_list
    print(f"| lines of tests | {lines:,} |\n| helpers in tests | {helpers:,} |\n")


def _print_commands() -> None:
    print("| command | modules whose functions run | functions | modules loaded |\n|---|---|---|---|")
    for name, arguments in COMMANDS.items():
        ended = subprocess.run(
            [sys.executable, __file__, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        modules, functions, loaded = json.loads(ended.stderr.splitlines()[-1])
        print(f"| {name} | {modules} | {functions} | {loaded} |")


def _traced(arguments: list[str]) -> tuple[int, int, int]:
    """Run a command, and count the modules and functions of builder that ran, and the modules that were loaded."""
    import threading  # noqa: PLC0415  only a traced process needs these

    sys.path.insert(0, str(ROOT))
    from builder import cli  # noqa: PLC0415

    ran = set()

    def trace(frame: object, event: str, _: object) -> None:
        code = frame.f_code
        named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and named and code.co_filename.startswith(str(ROOT / "builder")):
            ran.add((code.co_filename, code.co_firstlineno))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        cli.main(arguments)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    loaded = [name for name in sys.modules if name.split(".")[0] == "builder"]
    return len({file for file, _ in ran}), len(ran), len(loaded)


main()
