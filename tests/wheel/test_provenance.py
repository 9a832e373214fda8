import hashlib
import json
import os
import subprocess
import sys

import pytest

from builder.cli import run
from builder.config import parse
from builder.config.text import Source
from builder.matrix import rows, select
from builder.matrix.variant import Variant
from builder.metadata import RebuildInputs
from builder.wheel import kernel_wheel, sbom
from builder.wheel.archive import Bytes
from builder.wheel.statement import Origin, statement
from tests.wheels import make

TORCH = """
[general]
name = "some-kernel"
version = 3
edition = 5
license = "Apache-2.0 OR MIT"
backends = ["cpu", "cuda", "xpu", "metal", "rocm"]
upstream = "git@example.org:team/kernel.git"
source = "https://example.org/team/kernel"
python-depends = ["einops"]
kernel-depends = [{ repo-id = "team/base", version = 2 }]
[general.cuda]
python-depends = ["nvidia-cutlass-dsl"]
[torch]
src = ["a.cpp"]
[kernel.cpu]
backend = "cpu"
depends = ["torch"]
src = ["a.cpp"]
[kernel.cuda]
backend = "cuda"
depends = ["torch", "cutlass_4_5"]
src = ["a.cu"]
[kernel.rocm]
backend = "rocm"
depends = ["torch"]
src = ["a.cu"]
[kernel.metal]
backend = "metal"
depends = ["torch", "metal-cpp"]
src = ["a.metal"]
[kernel.xpu]
backend = "xpu"
depends = ["torch", "sycl_tla"]
src = ["a.cpp"]
"""
REV, SHA256 = "1" * 40, "2" * 64
FOREIGN = (
    TORCH.replace('["a.cpp"]\n[kernel.cuda]', '["a.cpp", "cut:b.cpp"]\ninclude = ["fmt:."]\n[kernel.cuda]')
    + f"""
[sources.cut]
git = "https://example.org/cut.git"
rev = "{REV}"
license = "bsd-3-clause"
[sources.fmt]
url = "https://example.org/fmt-1.0.tar.gz"
sha256 = "{SHA256}"
[sources.unused]
url = "https://example.org/unused-1.0.tar.gz"
sha256 = "{SHA256}"
"""
)
TVM_FFI = """
[general]
name = "some-kernel"
version = 3
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]
[tvm-ffi]
src = ["a.cpp"]
[kernel.cpu]
backend = "cpu"
depends = []
src = ["a.cpp"]
"""
NOARCH = """
[general]
name = "some-kernel"
version = 3
edition = 5
license = "house license"
backends = ["cuda", "tpu"]
[torch-noarch]
"""
PACKAGE = {"__init__.py": Bytes(b"x = 1\n"), "a.so": Bytes(b"\x7fELF"), "metadata.json": Bytes(b"{}")}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def bills(text):
    config = parse(Source(name="build.toml", text=text))
    for cell in select(config, rows(), unbundled=True):
        version = f"3.0.0+{cell.name.label}"
        content = sbom.bill(
            config=config,
            cell=cell,
            version=version,
            framework_version="2.13.0+cpu",
            package=PACKAGE,
            toolchain={"cxx-version": "g++ 12.2.0"},
        )
        yield cell, content


@pytest.mark.parametrize("text", [TORCH, TVM_FFI, NOARCH, FOREIGN], ids=["torch", "tvm-ffi", "noarch", "foreign"])
def test_every_bill_is_valid_cyclonedx_with_valid_package_urls(text):
    pytest.importorskip("cyclonedx")
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415  the oracles
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    checked = 0
    for cell, content in {cell.backend: (cell, content) for cell, content in bills(text)}.values():
        assert validator.validate_str(content.decode()) is None, cell
        table = json.loads(content)
        references = {part["bom-ref"] for part in table["components"]} | {table["metadata"]["component"]["bom-ref"]}
        for edge in table["dependencies"]:
            assert {edge["ref"], *edge.get("dependsOn", ())} <= references
        for part in table["components"]:
            if "purl" in part:
                assert PackageURL.from_string(part["purl"]).to_string() == part["purl"]
        checked += 1
    assert checked >= 2


def parts(text, variant):
    found = next(content for cell, content in bills(text) if cell.variant == variant)
    return {part["name"]: part for part in json.loads(found)["components"]}


def test_a_cuda_bill_names_torch_toolkit_and_header_only_code():
    found = parts(TORCH, "torch213-cxx11-cu130-x86_64-linux")
    assert found["torch"]["version"] == "2.13.0+cpu"
    assert found["cuda-toolkit"]["version"] == "13.0"
    assert found["cutlass"]["purl"] == "pkg:github/nvidia/cutlass@v4.5.2"
    assert found["team/base"]["version"] == "v2"
    assert {"einops", "nvidia-cutlass-dsl"} <= found.keys()
    assert not {"sycl-tla", "metal-cpp", "rocm", "oneapi"} & found.keys()


def test_a_cpu_bill_names_nothing_of_other_backends():
    found = parts(TORCH, "torch213-cxx11-cpu-x86_64-linux")
    assert {name for name, part in found.items() if part["type"] == "library"} == {"torch", "einops", "team/base"}


def test_what_the_wheel_requires_by_name_is_in_the_bill_once():
    text = TORCH + '[wheel]\nrequires = ["Some_Thing[x]>=1 ; python_version < \'3.13\'", "einops>=0.8"]\n'
    found = parts(text, "torch213-cxx11-cpu-x86_64-linux")
    assert found["some-thing"]["purl"] == "pkg:pypi/some-thing"
    assert {name for name, part in found.items() if part["type"] == "library"} == {
        "torch", "einops", "team/base", "some-thing",
    }  # fmt: skip


def test_foreign_sources_have_their_hashes_and_licenses():
    found = parts(FOREIGN, "torch213-cxx11-cpu-x86_64-linux")
    assert found["cut"]["version"] == REV
    assert found["cut"]["licenses"] == [{"expression": "BSD-3-Clause"}]
    assert found["fmt"]["hashes"] == [{"alg": "SHA-256", "content": SHA256}]
    assert "unused" not in found
    assert "cut" not in parts(FOREIGN, "torch213-cxx11-cu130-x86_64-linux")


@pytest.mark.parametrize(
    ("variant", "version"),
    [("torch212-cxx11-xpu20253-x86_64-linux", "0.8"), ("torch213-cxx11-xpu20260-x86_64-linux", "0.9.2")],
)
def test_sycl_tla_follows_the_toolkit(variant, version):
    assert parts(TORCH, variant)["sycl-tla"]["version"] == version


def test_files_have_their_hashes_and_metadata_is_left_out():
    found = parts(NOARCH, "torch-cuda")
    assert found["a.so"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"\x7fELF").hexdigest()}]
    assert "metadata.json" not in found
    assert "version" not in found["torch"]


SHOW = """
import sys
sys.path[:0] = sys.argv[1:]
from tests.wheel.test_provenance import TORCH, bills
sys.stdout.buffer.write(b"".join(content for _, content in bills(TORCH)))
"""


def test_two_processes_write_the_same_bill(tmp_path):
    outputs = set()
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C", "HOME": str(tmp_path)}
        command = [sys.executable, "-c", SHOW, os.getcwd()]  # noqa: PTH109  as the parent was started
        outputs.add(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    assert len(outputs) == 1
    assert all(outputs)


def test_another_content_has_another_number():
    numbers = [json.loads(content)["serialNumber"] for _, content in bills(TORCH)]
    assert len(set(numbers)) == len(numbers) > 10


def test_the_statement_of_a_wheel_is_valid_and_names_its_digest(tmp_path, capsys):
    pytest.importorskip("in_toto_attestation")
    from google.protobuf import json_format  # noqa: PLC0415  the oracles
    from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance  # noqa: PLC0415
    from in_toto_attestation.v1.statement_pb2 import Statement  # noqa: PLC0415

    wheel = make(tmp_path, "relu", Variant.parse("torch213-cxx11-cpu-x86_64-linux"))
    arguments = ["attest", str(wheel), "--commit", COMMIT, "--output", str(tmp_path / "out")]
    assert run([*arguments, "--invocation", "https://ci.example.org/run/1"]) == 0
    (path,) = (tmp_path / "out").iterdir()
    assert capsys.readouterr().out.strip() == str(path)
    table = json.loads(path.read_text())
    statement = json_format.Parse(path.read_text(), Statement())
    assert statement.predicate_type == "https://slsa.dev/provenance/v1"
    predicate = json_format.ParseDict(json_format.MessageToDict(statement.predicate), Provenance())
    assert predicate.run_details.builder.id.startswith("pkg:pypi/kernel-wheel-builder@")
    assert table["subject"] == [
        {"name": wheel.name, "digest": {"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}}
    ]
    definition = table["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["variant"] == "torch213-cxx11-cpu-x86_64-linux"
    assert {"name": "kernel", "digest": {"gitCommit": COMMIT}} in definition["resolvedDependencies"]
    assert table["predicate"]["runDetails"]["metadata"] == {"invocationId": "https://ci.example.org/run/1"}


def test_a_statement_says_what_the_metadata_knows(tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", Variant.parse("torch213-cxx11-cpu-x86_64-linux"))])
    wheel.metadata.table["source"] = "git@example.org:team/kernel.git"
    inputs = RebuildInputs(project="ab" * 32, framework="2.13.0+cpu", toolchain={"cxx-version": "g++"})
    wheel.metadata.table["build"] = inputs.to_dict()
    origin = Origin(commit=COMMIT, dirty=True)
    definition = json.loads(statement(wheel, origin))["predicate"]["buildDefinition"]
    assert definition["resolvedDependencies"] == [
        {
            "name": "kernel",
            "uri": "git+ssh://git@example.org/team/kernel.git",
            "digest": {"gitCommit": COMMIT},
            "annotations": {"dirty": True},
        },
        {"name": "rendered project", "digest": {"sha256": "ab" * 32}},
        {"name": "torch", "uri": "pkg:pypi/torch@2.13.0%2Bcpu"},
    ]
    assert definition["internalParameters"]["toolchain"] == {"cxx-version": "g++"}
    assert statement(wheel, origin) == statement(wheel, origin)
