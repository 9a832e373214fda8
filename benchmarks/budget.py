"""Several cells in one `builder build` under one budget, against a build for each with a number of jobs chosen by hand.

By hand there are two ways: one after the other, each with all cores, and all at once, each with all cores. Neither
knows how much memory the compilers take. Peak memory is the most that all processes have at one time.

usage: python benchmarks/budget.py [MEMORY] [RUNS] [KERNEL]        such as 2G 3 examples/rmsnorm-stable
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import paired

ROOT = Path(__file__).resolve().parent.parent
PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The most memory that all descendants of this process have at one time."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.peaks: dict[str, list[int]] = {}
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            total, label = descendants(os.getpid())
            if label is not None:
                self.peaks.setdefault(label, []).append(total)

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()


def descendants(root: int) -> tuple[int, str | None]:
    """Return the resident bytes of all descendants, and the label of the command: the variable it was started with."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)], resident[int(path.parent.name)] = int(fields[1]), int(fields[21]) * PAGE
    total, label, waiting = 0, None, [root]
    while waiting:
        parent = waiting.pop()
        children = [pid for pid, above in parents.items() if above == parent]
        total += sum(resident[pid] for pid in children)
        waiting += children
        if parent == root and children:
            label = labelled(children[0])
    return total, label


def labelled(pid: int) -> str | None:
    """Return the name after `--` of a command."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return None
    return words[words.index("label") + 1] if "label" in words else None


def main() -> None:
    """Print the table."""
    memory = sys.argv[1] if sys.argv[1:] else "2G"
    runs = int(sys.argv[2]) if sys.argv[2:] else 3
    kernel = sys.argv[3] if sys.argv[3:] else str(ROOT / "examples/rmsnorm-stable")
    with tempfile.TemporaryDirectory() as name:
        env = {**os.environ, "CCACHE_DISABLE": "1"}
        build = [sys.executable, "-m", "builder", "build", kernel, "--quiet", "--output", name]
        # The first build makes the environments, which are no part of the figures, and finds what can be built here.
        first = subprocess.run([*build, "--json"], check=False, env=env, stdout=subprocess.PIPE).stdout
        cells = [result["variant"] for result in json.loads(first) if result["status"] in {"built", "hit"}]
        chosen = [word for cell in cells for word in ("--variant", cell)]
        one = [*build, *chosen, "--rebuild", "--memory", memory]
        each = [shlex.join([*build, "--rebuild", "--memory", "999G", "--variant", cell]) for cell in cells]
        commands = {
            f"one budget, --memory {memory}": shlex.join(one),
            "by hand, one after the other": " && ".join(each),
            "by hand, all at once": " & ".join(each) + " & wait",
        }
        print(f"{paired.machine()}; load {os.getloadavg()[0]:.1f}; {len(cells)} cells: {', '.join(cells)}")
        watch = Watch()
        labelled_commands = {key: ["sh", "-c", text, "label", key] for key, text in commands.items()}
        figures = paired.run(labelled_commands, runs=runs, warmups=0, env=env)
        watch.end()
        paired.table(figures, peer=next(iter(commands)))
        for key in commands:
            seen = watch.peaks.get(key, [0])
            print(f"{key:36} peak {max(seen) / 2**20:6.0f} MiB, median {statistics.median(seen) / 2**20:6.0f} MiB")


if __name__ == "__main__":
    main()
