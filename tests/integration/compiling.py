"""A source that takes a compiler minutes, and the compilers that are at it: for tests that interrupt a build."""

from pathlib import Path

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
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"cc1plus") and any(source.encode() in word for word in words):
            found.append(int(path.parent.name))
    return found
