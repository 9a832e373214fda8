"""A source that takes a compiler minutes, and the compilers that are at it: for tests that interrupt a build."""

from tests.given import processes

_SPIN = """
constexpr unsigned spin(unsigned sum) {
  for (unsigned i = 0; i < 1000; ++i)
    for (unsigned j = 0; j < 1000; ++j) sum = sum * 31 + j;
  return sum;
}
"""


def busy(turns):
    """Return a source that takes a compiler about half a second for each turn."""
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
