"""The CPU wheels of the examples, built for real: the audit agrees with auditwheel and abi3audit on each."""

import os
from pathlib import Path

import pytest

from builder import audit
from builder.audit.reading import read
from builder.binary.policies import lowest_policy
from builder.wheel.archive import Wheel
from tests.given.audits import by_auditwheel
from tests.given.processes import command, output

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.slow]


@pytest.fixture(scope="module", params=["relu", "rmsnorm-stable"])
def wheel(request, store, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    example = ROOT / "examples" / request.param
    environ = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)}
    output(*command("build", example, "--backend", "cpu", "--no-isolation", "--output", place / "dist"), env=environ)
    return Wheel.read(next((place / "dist").glob("*.whl")))


def test_it_has_no_finding(wheel):
    assert audit.run(wheel).findings == ()


def test_it_has_the_policy_of_auditwheel(wheel):
    libraries = read(wheel, plan=audit.AuditPromise()).libraries
    assert len(libraries) == 1
    theirs = by_auditwheel({"": wheel.path})[""]
    lowest = lowest_policy([library.extension for library in libraries], libraries[0].extension.machine)
    assert f"{lowest.name}_{libraries[0].extension.machine}" == theirs


def test_its_library_uses_nothing_of_python(wheel):
    assert all((tag.interpreter, tag.abi) == ("py3", "none") for tag in wheel.tags)
    (library,) = read(wheel, plan=audit.AuditPromise()).libraries
    assert [symbol.name for symbol in library.extension.undefined if symbol.name.startswith(("Py", "_Py"))] == []
    assert library.extension.modules == ()
