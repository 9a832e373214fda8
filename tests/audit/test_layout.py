import base64
import json
import zipfile

import pytest

from builder import audit
from builder.metadata import is_digested
from builder.wheel.archive import Bytes, Wheel, pack
from tests.given.audits import findings
from tests.wheels import rewritten

NOARCH = {"label": "torch.cpu", "tag": "py3-none-any", "requires": "torch"}
INFO = "demo-1.0.0+torch.cpu.dist-info"
RECORD, WHEEL, METADATA = f"{INFO}/RECORD", f"{INFO}/WHEEL", f"{INFO}/METADATA"
INIT = "demo/__init__.py"


def test_a_right_wheel_has_no_finding(make_wheel):
    assert not findings(make_wheel(**NOARCH))


@pytest.mark.parametrize(
    ("change", "symbols"),
    [
        pytest.param(lambda files: files.update({INIT: b"import os\n"}), {INIT, "__init__.py"}, id="a file changed"),
        pytest.param(lambda files: files.pop(INIT), {INIT, "__init__.py"}, id="a file removed"),
        pytest.param(lambda files: files.update({"demo/more.py": b""}), {"demo/more.py", "more.py"}, id="a file added"),
        pytest.param(lambda files: files.pop(RECORD), {"RECORD"}, id="no RECORD"),
        pytest.param(
            lambda files: files.update({RECORD: files[RECORD] + files[RECORD].splitlines(keepends=True)[0]}),
            {INIT},
            id="listed twice",
        ),
        pytest.param(
            lambda files: files.update({RECORD: files[RECORD].replace(b"_ops.py,sha256=", b"_ops.py,md5=")}),
            {"demo/_ops.py"},
            id="not a sha256",
        ),
        pytest.param(lambda files: files.update({RECORD: b'"demo/__init__.py'}), {"RECORD"}, id="RECORD is no table"),
        pytest.param(
            lambda files: files.update({WHEEL: files[WHEEL].replace(b"py3-none-any", b"py2-none-any")}),
            {"py2-none-any", "py3-none-any", WHEEL},
            id="tag",
        ),
        pytest.param(
            lambda files: files.update(
                {METADATA: files[METADATA].replace(b"Name: demo", b"Name: a").replace(b"n: 1.0.0", b"n: 2.0.0")}
            ),
            {"Name", "Version", METADATA},
            id="name and version",
        ),
    ],
)
def test_what_describes_a_wheel_fits_it(make_wheel, change, symbols):
    path = rewritten(make_wheel(**NOARCH), change)
    assert {symbol for _, symbol in findings(path)} == symbols


@pytest.mark.parametrize(
    ("changes", "symbol"),
    [
        pytest.param({"package": {"a.pyc": b""}}, "a.pyc", id="bytecode"),
        pytest.param({"package": {"__pycache__/a.pyc": b""}}, "a.pyc", id="a cache"),
        pytest.param({"outside": {"other/a.py": b""}}, "other", id="another package"),
        pytest.param({"outside": {"a.py": b""}}, "a.py", id="a file at the top"),
        pytest.param({"package": {"a.o": b""}}, "a.o", id="an object"),
        pytest.param({"package": {".DS_Store": b""}}, ".DS_Store", id="a hidden file"),
        pytest.param({"package": {"CMakeCache.txt": b""}}, "CMakeCache.txt", id="a build's left-over"),
        pytest.param({"package": {"demo/a.py": b""}}, "demo/a.py", id="the package in itself"),
        pytest.param({"metadata": {"name": "other"}}, "name", id="another name"),
        pytest.param({"metadata": {"version": 2}}, "version", id="another version"),
        pytest.param({"metadata": {"version": "1"}}, "version", id="version of another type"),
        pytest.param({"metadata": {"version": True}}, "version", id="version true"),
        pytest.param({"metadata": {"id": "a b"}}, "id", id="an id that is no name"),
        pytest.param({"metadata": {"backend": {"type": "cuda"}}}, "backend.type", id="another backend"),
        pytest.param(
            {"metadata": {"backend": {"type": "cpu", "archs": ["10.0", "9.0"]}}}, "backend.archs", id="archs unsorted"
        ),
        pytest.param({"metadata": {"backend": {"type": "cpu", "archs": 9}}}, "backend.archs", id="archs no list"),
        pytest.param({"metadata": {"upstream": "x"}}, "python-depends", id="keys out of order"),
        pytest.param({"metadata": {"digest": {"algorithm": "md5"}}}, "digest", id="a digest of md5"),
        pytest.param({"requires": "torch", "label": "torch.cuda"}, "backend.type", id="a label of another backend"),
    ],
)
def test_only_layout_finds(make_wheel, changes, symbol):
    assert findings(make_wheel(**(NOARCH | changes))) == {("layout", symbol)}


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000], ids=range(5))
def test_metadata_that_is_no_object_is_found(make_wheel, content):
    path = make_wheel(**NOARCH, edit=lambda members: members | {"demo/metadata.json": Bytes(content)})
    assert findings(path) == {("layout", "metadata.json")}


@pytest.mark.parametrize("name", ["a.pyc", "a.pyo"])
def test_a_digest_leaves_out_what_the_builder_leaves_out(make_wheel, name):
    assert not is_digested(name)
    found = audit.run(Wheel.read(make_wheel(**NOARCH, package={name: b""}))).findings
    assert [each.why for each in found if each.symbol == name and "digest" in each.why] == []


def test_a_digest_of_another_file_is_found(make_wheel):
    right = base64.b64encode(bytes(32)).decode()
    digest = {"algorithm": "sha256", "files": {"__init__.py": right, "gone.py": right, "_ops.py": 3}}
    found = findings(make_wheel(**NOARCH, metadata={"digest": digest}))
    assert found == {("layout", "__init__.py"), ("layout", "gone.py"), ("layout", "_ops.py")}


def test_the_plan_is_believed_before_the_wheel(make_wheel):
    assert findings(make_wheel(**NOARCH), ops="_demo_cpu_7654321") >= {("layout", "id")}


def test_a_wheel_without_label_is_judged_by_its_contents(make_wheel):
    assert not findings(make_wheel(**(NOARCH | {"label": None})))


def test_a_library_in_a_noarch_wheel_is_found(make_wheel):
    found = findings(make_wheel(**NOARCH, library=b"\x7fELF"))
    assert ("format", "demo/_demo_cpu_0000001.so") in found


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        pytest.param("a.so", b"", "is empty", id="zero length"),
        pytest.param("a.so.1", b"text", "is not a shared library", id="text"),
        pytest.param("weights.bin", b"\x7fELF\x01\x01\x01" + bytes(60), "32-bit", id="32-bit under another name"),
        pytest.param("notes.txt", b"\xcf\xfa\xed\xfe" + bytes(60), "Mach-O", id="Mach-O under another name"),
        pytest.param("a.pyd", b"MZ" + bytes(60), "PE", id="PE"),
    ],
)
def test_no_library_passes_unread(make_wheel, name, content, why):
    report = audit.run(Wheel.read(make_wheel(**NOARCH, package={name: content})))
    (finding,) = (finding for finding in report.findings if finding.rule == "format")
    assert finding.file == f"demo/{name}"
    assert why in finding.why
    assert not report.ok


def test_the_digest_is_the_one_of_the_client(make_wheel, tmp_path):
    rust = pytest.importorskip("kernels._rust")
    odd = {"layers/metadata.json": b"{}", "layers/metadata.json.sigstore": b"", "data.json": b"{}"}
    path = make_wheel(**NOARCH, package=odd)
    assert not findings(path)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "site")
        stated = json.loads(archive.read("demo/metadata.json"))["digest"]
    theirs = rust.Digest.hash_variant(rust.DigestAlgorithm.SHA256, tmp_path / "site" / "demo")
    assert dict(theirs.files) == stated["files"]


def test_pack_makes_a_record_that_the_audit_accepts(tmp_path):
    path = tmp_path / "demo-1.0.0-py3-none-any.whl"
    path.write_bytes(pack({"demo/a,b.py": Bytes(b"")}, dist_info="demo-1.0.0.dist-info"))
    assert not any("RECORD" in finding.why for finding in audit.run(Wheel.read(path)).findings)
