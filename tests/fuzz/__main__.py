"""Fuzz the readers of strangers' bytes for as long as is asked: python -m tests.fuzz [--seconds N] [TARGET...].

It prints for each target the inputs that were read, how many of them were refused, the slowest, and the peak of memory
of the whole process; it ends with the input that breaks a reader, made as small as possible.
"""

import argparse
import resource
import sys
import time

from hypothesis import HealthCheck, given, settings

from tests.fuzz.targets import TARGETS, Target

_TURN = 2_000


def fuzz(target: Target, *, seconds: float) -> None:
    """Read inputs until the time is over."""
    search = settings(max_examples=_TURN, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        search(given(target.inputs)(target.check))()


def show(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print a line for each target."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each target; %(default)s without it")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of: {', '.join(TARGETS)}; all without it")
    asked = parser.parse_args()
    show(f"{'':16} {'inputs':>8} {'refused':>8} {'slowest s':>10} {'peak MiB':>9}")
    for name in asked.targets or TARGETS:
        target = TARGETS[name]
        fuzz(target, seconds=asked.seconds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        show(f"{name:16} {target.runs:8} {target.refused:8} {target.slowest:10.3f} {peak:9}")


if __name__ == "__main__":
    main()
