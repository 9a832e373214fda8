"""Run a script that writes sources, in a folder that has its inputs alone."""  # noqa: INP001  CMake runs it as a script

import os
import shutil
import subprocess
import sys
from pathlib import Path

_KEPT = ("PATH", "LD_LIBRARY_PATH", "SOURCE_DATE_EPOCH", "SYSTEMROOT")
_SHOWN = 16


def main() -> int:
    """Run the step that the file in a folder describes: a word on each line, behind what it is."""
    folder = Path(sys.argv[1])
    step: dict[str, list[str]] = {}
    for line in (folder / "step.txt").read_text(encoding="utf-8").split("\n"):
        key, _, value = line.partition("=")
        step.setdefault(key, []).append(value)
    (source,), (made,), (script,) = step["source"], step["made"], step["script"]
    outputs = step["output"]
    work = folder / "work"
    for name in ("work", "home"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    before = {}
    for root, names in ((source, [script, *step.get("input", [])]), (made, step.get("generated", []))):
        for name in names:
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(root) / name, work / name)
            before[name] = (work / name).read_bytes()
    for name in outputs:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
    done = _run([script, *step.get("argument", [])], folder / "home", work)
    if done.returncode != 0:
        lines = done.stdout.decode("utf-8", "replace").rstrip().splitlines() or ["nothing"]
        return _fail(script, f"the script ended with exit code {done.returncode}, and said", *lines[-_SHOWN:])
    sys.stdout.buffer.write(done.stdout)
    problems = _problems(work, before, outputs)
    if problems:
        return _fail(script, *problems)
    for name in outputs:
        _take_over(work / name, Path(made) / name)
    return 0


def _run(words: "list[str]", home: Path, work: Path) -> "subprocess.CompletedProcess[bytes]":
    """Run the script with variables that are the same everywhere."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {"HOME": str(home), "TMPDIR": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    env |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def _problems(work: Path, before: "dict[str, bytes]", outputs: "list[str]") -> "list[str]":
    """Return what the script did that it does not say, or said that it does not do."""
    there = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_symlink() or not path.is_dir()}
    plain = {name for name in there if (work / name).is_file() and not (work / name).is_symlink()}
    found = [f"it did not write its output '{name}'" for name in outputs if name not in there]
    found += [
        f"it wrote '{name}', which is not among its outputs" for name in sorted(there - set(outputs) - set(before))
    ]
    found += [f"its output '{name}' is not a file" for name in outputs if name in there - plain]
    changed = (name for name, content in before.items() if name not in plain or (work / name).read_bytes() != content)
    return [*found, *(f"it changed its input '{name}'" for name in changed)]


def _take_over(source: Path, target: Path) -> None:
    """Bring an output to its place; one that is the same stays, so that nothing is compiled again."""
    content = source.read_bytes()
    if target.is_file() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f"{target.name}.part")
    aside.write_bytes(content)
    aside.replace(target)


def _fail(script: str, *lines: str) -> int:
    """Say what is wrong as a compiler does."""
    first, *others = lines
    text = "\n".join([f"{script}: error: {first}", *(f"  {line}" for line in others)])
    sys.stderr.write(f"{text}\n  a script of [[generate]] sees its inputs alone, and writes its outputs alone\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
