"""The released tools judge the same files: auditwheel the symbol versions, abi3audit the limited API."""

import json
import subprocess
import sys
import zipfile

import pytest

from builder import audit
from builder.audit.reading import read
from builder.binary.policies import lowest_policy
from builder.wheel.archive import Wheel
from tests.given.audits import by_auditwheel, calls

USE = '\n__attribute__((visibility("default"))) void *used[] = {'
PUBLIC = ("cryptography", "markupsafe", "numpy", "psutil", "pyzmq")


CODE = {
    "nothing": "",
    "memfd_create (2.27)": calls("memfd_create"),
    "pthread_getcpuclockid (2.34)": calls("pthread_getcpuclockid"),
    "arc4random (2.36)": calls("arc4random"),
    "an exception": "int f(int x) { if (x) throw x; return 0; }",
    "a stream": "#include <iostream>\nvoid f() { std::cout << 1; }",
    "a private function of CPython": calls("_PyDict_NewPresized", "PyDict_New"),
    "functions of 3.10 to 3.13": calls("PyType_GetName", "PyUnicode_AsUTF8AndSize", "PyDict_GetItemRef"),
}


def by_abi3audit(path):
    """Symbol → `private` or the version that made it stable, for each file."""
    command = [sys.executable, "-m", "abi3audit", "--report", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (entry,) = json.loads(done.stdout)["specs"].values()
    objects = [entry] if "result" in entry else entry["wheel"]
    found = {}
    for item in objects:
        found.update(dict.fromkeys(item["result"]["non_abi3_symbols"], "private"))
        found.update(item["result"]["future_abi3_objects"])
    return found


def by_builder(path):
    subject = read(Wheel.read(path), plan=audit.AuditPromise())
    assert subject.libraries
    assert not subject.refused
    lowest = lowest_policy((library.extension for library in subject.libraries), "x86_64")
    return subject, f"{lowest.name}_x86_64"


@pytest.mark.cmake
@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_a_built_library_gets_the_policy_of_auditwheel(compiler, make_wheel, code):
    path = make_wheel(library=compiler.library(code))
    assert by_builder(path)[1] == by_auditwheel(path)


@pytest.mark.cmake
@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_a_built_library_gets_the_findings_of_abi3audit(compiler, make_wheel, code):
    path = make_wheel(library=compiler.library(code))
    ours = {finding.symbol for finding in audit.run(Wheel.read(path)).findings if finding.rule == "abi3"}
    assert ours == by_abi3audit(path).keys()


@pytest.fixture(scope="module", params=PUBLIC)
def public(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(place), request.param], check=True, capture_output=True)
    return next(place.glob("*.whl"))


@pytest.mark.network
@pytest.mark.slow
def test_a_public_wheel_gets_the_policy_of_auditwheel(public):
    assert by_builder(public)[1] == by_auditwheel(public)


@pytest.mark.network
@pytest.mark.slow
def test_a_public_wheel_gets_the_findings_of_abi3audit(public):
    subject, _ = by_builder(public)
    ours = {finding.symbol for finding in audit.judge(subject) if finding.rule == "abi3"}
    if "abi3" in public.name:
        assert ours == by_abi3audit(public).keys()
    else:
        assert not ours, "a library for one CPython may use all of its API"


@pytest.mark.network
@pytest.mark.slow
def test_a_public_wheel_has_a_right_record(public):
    """Installers accept these RECORD files, so the audit must."""
    findings = audit.run(Wheel.read(public)).findings
    assert not [finding for finding in findings if "RECORD" in finding.why]
    with zipfile.ZipFile(public) as archive:
        assert archive.testzip() is None
