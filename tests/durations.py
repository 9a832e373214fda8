"""Writes tests/DURATIONS.md: the seconds of a core that tests take, with those of the processes that they start.

Run: make durations
"""

import collections
import datetime as dt
import os
from pathlib import Path

import pytest

PAGE = Path(__file__).with_name("DURATIONS.md")
SLOWEST = 30
BEGAN = pytest.StashKey()


def spent():
    """Return the seconds of a core that this process and those that it has waited for took."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    item.stash[BEGAN] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    if call.when == "teardown":
        item.user_properties.append(("seconds of a core", spent() - item.stash[BEGAN]))
    return (yield)


class Totals:
    """Collects what the workers say, in the process that started them."""

    def __init__(self):
        self.seconds = {}

    def pytest_runtest_logreport(self, report):
        for name, value in report.user_properties:
            if name == "seconds of a core":
                self.seconds[report.nodeid] = value

    def pytest_sessionfinish(self, session):
        marks = session.config.getoption("markexpr")
        PAGE.write_text(page(self.seconds, marks=marks, today=dt.datetime.now(tz=dt.timezone.utc).date()))


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Totals())


def page(seconds, *, marks, today):
    """Return the page of the seconds of each test, by its id."""
    folders = collections.defaultdict(list)
    for test, took in seconds.items():
        folders["/".join(test.partition("::")[0].split("/")[:2])].append(took)
    totals = sorted(((sum(took), len(took), name) for name, took in folders.items()), reverse=True)
    slowest = sorted(((took, test) for test, took in seconds.items()), reverse=True)[:SLOWEST]
    lines = [
        "# The time that the tests take",
        "",
        f"Written by `make durations` on {today}, on a machine with {os.cpu_count()} cores. {len(seconds)} tests took",
        f"{sum(seconds.values()):.0f} seconds of a core, with their processes and without collection, for",
        f"`-m {marks!r}`. Seconds of a core change less than those of a clock",
        "while a machine does something else.",
        "",
        *("| seconds | tests | folder |", "| ---: | ---: | --- |"),
        *(f"| {took:.1f} | {count} | {name} |" for took, count, name in totals),
        "",
        f"The slowest {SLOWEST}:",
        "",
        *("| seconds | test |", "| ---: | --- |"),
        *(f"| {took:.1f} | `{test.removeprefix('tests/')}` |" for took, test in slowest),
    ]
    return "".join(f"{line}\n" for line in lines)
