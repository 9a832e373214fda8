"""The released tools judge the same files: auditwheel the symbol versions, abi3audit the limited API."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder import audit
from builder.audit.reading import read
from builder.binary.policies import lowest_policy
from builder.wheel.archive import Wheel
from tests.audit.conftest import demo_wheel
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


def by_abi3audit(*paths):
    """Symbol → `private` or the version that made it stable, for the files of each wheel."""
    command = [sys.executable, "-m", "abi3audit", "--report", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {}
    for path, entry in json.loads(done.stdout)["specs"].items():
        objects = [entry] if "result" in entry else entry["wheel"]
        symbols = found.setdefault(Path(path).resolve(), {})
        for item in objects:
            symbols.update(dict.fromkeys(item["result"]["non_abi3_symbols"], "private"))
            symbols.update(item["result"]["future_abi3_objects"])
    return found


def by_builder(path):
    subject = read(Wheel.read(path), plan=audit.AuditPromise())
    assert subject.libraries
    assert not subject.refused
    lowest = lowest_policy((library.extension for library in subject.libraries), "x86_64")
    return subject, f"{lowest.name}_x86_64"


@pytest.fixture(scope="module")
def built(compiler, tmp_path_factory):
    """Make a wheel with the library of each code; their paths."""
    root = tmp_path_factory.mktemp("built")
    made = {}
    for number, (name, code) in enumerate(CODE.items()):
        (root / str(number)).mkdir()
        made[name] = demo_wheel(root / str(number), library=compiler.library(code))
    return made


@pytest.mark.cmake
def test_a_built_library_gets_the_policy_of_auditwheel(built):
    assert {name: by_builder(path)[1] for name, path in built.items()} == by_auditwheel(built)


@pytest.mark.cmake
def test_a_built_library_gets_the_findings_of_abi3audit(built):
    ours = {
        path: {finding.symbol for finding in audit.run(Wheel.read(path)).findings if finding.rule == "abi3"}
        for path in built.values()
    }
    theirs = by_abi3audit(*built.values())
    assert ours == {path: theirs[path.resolve()].keys() for path in ours}


@pytest.fixture(scope="module", params=PUBLIC)
def public(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(place), request.param], check=True, capture_output=True)
    return next(place.glob("*.whl"))


@pytest.mark.network
@pytest.mark.slow
def test_a_public_wheel_gets_the_policy_of_auditwheel(public):
    assert by_builder(public)[1] == by_auditwheel({"": public})[""]


@pytest.mark.network
@pytest.mark.slow
def test_a_public_wheel_gets_the_findings_of_abi3audit(public):
    subject, _ = by_builder(public)
    ours = {finding.symbol for finding in audit.judge(subject) if finding.rule == "abi3"}
    if "abi3" in public.name:
        assert ours == by_abi3audit(public)[public.resolve()].keys()
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
