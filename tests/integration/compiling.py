"""A source that takes a compiler minutes, and the compilers that are at it: for tests that interrupt a build."""

import signal
import subprocess

from tests.given import processes
from tests.given.files import names

_SPIN = """
constexpr unsigned spin(unsigned sum) {
  for (unsigned i = 0; i < 1000; ++i)
    for (unsigned j = 0; j < 1000; ++j) sum = sum * 31 + j;
  return sum;
}
"""


def busy(turns):
    """Return a source that takes a compiler some seconds for each turn."""
    return _SPIN + "".join(f"static_assert(spin({seed}) != 1);\n" for seed in range(turns))


SLOW_TO_COMPILE = busy(100)


def compilers_of(source):
    """Return the ids of the compilers that run for a source file."""
    running = processes.running().items()
    return [
        int(path.name)
        for path, words in running
        if words and words[0].endswith("cc1plus") and any(source in word for word in words)
    ]


def stopped(sign, holds, *arguments, **options):
    """Run `builder`, give it a signal once something holds, and return its exit code and what it said of errors."""
    process = subprocess.Popen(
        processes.command(*arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
        **options,
    )
    try:
        processes.until(lambda: process.poll() is not None or holds(), seconds=120)
        assert process.poll() is None, process.stderr.read()
        process.send_signal(sign)
        said = process.communicate(timeout=60)[1]
        return process.returncode, said
    finally:
        process.kill()
        process.communicate()


def interrupted(source, *arguments, folder):
    """Interrupt `builder` while it compiles a source in a folder; nothing is left, and what it said is returned."""
    env = processes.variables(folder / "store")
    code, said = stopped(
        signal.SIGINT, lambda: compilers_of(source), *arguments, env=env, cwd=folder, start_new_session=True
    )
    assert code == 130, said
    assert not compilers_of(source)
    assert not names(folder / "dist")
    assert not names(folder / "store/scratch")
    return said
