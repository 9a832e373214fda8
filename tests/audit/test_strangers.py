"""Wheels whose words were written to break their reader: each is refused in a sentence, by all that read it."""

import json
import os
import stat
import zipfile

import pytest

from builder import cli
from builder.matrix.variant import Variant
from builder.wheel.archive import Bytes, pack
from tests.audit.conftest import demo_wheel
from tests.wheels import make, package

NOARCH = {"label": "torch.cpu", "tag": "py3-none-any", "requires": "torch"}
INFO = "demo-1.0.0+torch.cpu.dist-info"
CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
DEEP = "[" * 900 + "]" * 900


def audited(path, capsys):
    code = cli.run(["audit", "--json", str(path)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return code, [finding["why"] for report in json.loads(shown.out)["wheels"] for finding in report["findings"]]


ARCHS = {"a superscript": ["8.²"], "5,000 digits": ["1" * 5_000], "numbers": [8], "a list": [["8.0"]], "text": "8.0"}


@pytest.mark.parametrize("archs", ARCHS.values(), ids=ARCHS)
def test_what_is_no_architecture_is_a_finding(tmp_path, capsys, archs):
    code, found = audited(demo_wheel(tmp_path, **NOARCH, archs=archs), capsys)
    assert code == 5
    assert "it is not a list of architectures, such as '9.0a' or 'gfx90a'" in found


METADATA = {
    "deep": ({"upstream": json.loads(DEEP)}, "nested deeper than 32 levels"),
    "half a pair": ({"source": "\ud800"}, "half of a surrogate pair"),
    "an id of a page": ({"id": "x" * 5_000}, "is no Python name"),
    "a name in a list": ({"name": [["demo"]]}, "not of type str"),
}


@pytest.mark.parametrize(("values", "why"), METADATA.values(), ids=METADATA)
def test_metadata_json_that_breaks_readers_is_a_finding(tmp_path, capsys, values, why):
    code, found = audited(demo_wheel(tmp_path, **NOARCH, metadata=values), capsys)
    assert code == 5
    assert any(why in each for each in found)


def test_json_that_is_too_deep_for_its_parser_is_a_finding(tmp_path, capsys):
    deep = b'{"name": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    path = demo_wheel(tmp_path, **NOARCH, edit=lambda members: {**members, "demo/metadata.json": Bytes(deep)})
    code, found = audited(path, capsys)
    assert code == 5
    assert any("nested deeper than 32 levels" in each for each in found)


CORE = {
    "5,000 digits": (b"Requires-Dist: torch==2." + b"1" * 5_000, "is not a requirement that can be read"),
    "a version of 5,000 digits": (b"Version: 1." + b"1" * 5_000, "it says '1.1111"),
    "3,000 parentheses": (
        b"Requires-Dist: torch; " + b"(" * 3_000 + b'os_name == "posix"' + b")" * 3_000,
        "is not a requirement that can be read",
    ),
    "400 parentheses": (
        b"Requires-Dist: torch; " + b"(" * 400 + b'os_name == "posix"' + b")" * 400,
        "it says '', the file name",
    ),
    "no UTF-8": (b"Requires-Dist: \xff", "it is not UTF-8"),
    "20,000 fields": (b"Requires-Dist: torch\n" * 20_000, "more than 10000 lines"),
}


@pytest.mark.parametrize(("line", "why"), CORE.values(), ids=CORE)
def test_metadata_that_breaks_readers_is_a_finding(tmp_path, capsys, line, why):
    core = b"Metadata-Version: 2.4\n" + line + b"\nName: demo\n"
    path = demo_wheel(tmp_path, **NOARCH, edit=lambda members: {**members, f"{INFO}/METADATA": Bytes(core)})
    code, found = audited(path, capsys)
    assert code == 5
    assert any(why in each for each in found)


def test_a_record_of_a_million_rows_is_a_finding(tmp_path, capsys):
    path = demo_wheel(tmp_path, **NOARCH)
    with zipfile.ZipFile(path) as archive:
        members = {info: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in members.items():
            archive.writestr(info, b"a,b\n" * 1_000_000 if info.filename.endswith("RECORD") else content)
    code, found = audited(path, capsys)
    assert code == 5
    assert "it has more than the 32768 rows that are read" in found


def test_a_description_of_many_megabytes_is_a_finding(tmp_path, capsys):
    path = demo_wheel(tmp_path, **NOARCH, package={"_ops.py": b"#" * (5 << 20)})
    code, found = audited(path, capsys)
    assert code == 5
    assert any("no more than 4194304 are read" in each for each in found)


@pytest.mark.parametrize("name", ["entry_points.txt", "Entry_Points.TXT"])
def test_commands_and_plugins_do_not_belong_into_a_kernel(tmp_path, capsys, name):
    path = demo_wheel(tmp_path, **NOARCH, outside={f"{INFO}/{name}": b"[console_scripts]\nls = demo:run\n"})
    code, found = audited(path, capsys)
    assert code == 5
    assert any("adds commands or plugins" in each for each in found)


def test_an_index_takes_no_wheel_that_adds_commands(tmp_path, capsys):
    info = "relu-1.0.0+torch213.cxx11.cpu.dist-info"
    make(tmp_path, "relu", CPU, extra={f"{info}/entry_points.txt": Bytes(b"[console_scripts]\nls = relu:run\n")})
    assert cli.run(["index", str(tmp_path), "--output", str(tmp_path / "site")]) == 2
    assert "entry_points.txt" in capsys.readouterr().err


NAMES = {
    "case": (["demo/a.py", "demo/A.py"], "one file on macOS and on Windows"),
    "case of a folder": (["demo/a/x.py", "demo/A/y.py"], "one file on macOS and on Windows"),
    "ways to write a letter": (["demo/\u00e9.py", "demo/e\u0301.py"], "one file on macOS and on Windows"),
    "a sharp s": (["demo/ss.py", "demo/\u00df.py"], "one file on macOS and on Windows"),
    "a file and a folder": (["demo/a", "demo/a/b"], "is a file and a directory"),
    "a folder and a file": (["demo/a/b", "demo/a"], "is a file and a directory"),
    "writing turned around": (["demo/\u202eyp.so"], "turns the direction of writing"),
    "no letter": (["\0"], "unsafe name: ''"),
    "a control character": (["demo/\x1b[2J.py"], "cannot be seen"),
    "an end of line of Unicode": (["demo/a\u2028b.py"], "cannot be seen"),
    "a part that is too long": ([f"demo/{'a' * 256}"], "longer than file systems take"),
    "a path that is too long": ([f"demo{'/a' * 600}"], "longer than file systems take"),
}


@pytest.mark.parametrize("command", ["audit", "bundle"])
@pytest.mark.parametrize(("names", "why"), NAMES.values(), ids=NAMES)
def test_members_with_names_that_mislead_are_refused(tmp_path, capsys, names, why, command):
    path = demo_wheel(tmp_path, **NOARCH, outside=dict.fromkeys(names, b""))
    assert cli.run([command, str(path), *(["--output", str(tmp_path / "out")] if command == "bundle" else [])]) == 2
    shown = capsys.readouterr().err
    assert why in shown
    assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize("tag", ["py3-none-\u202eyna", "py3-none-\x1b[2J"], ids=ascii)
def test_a_wheel_whose_own_name_misleads_is_refused(tmp_path, capsys, tag):
    path = demo_wheel(tmp_path, **NOARCH)
    path = path.rename(tmp_path / path.name.replace("py3-none-any", tag))
    assert cli.run(["audit", str(path)]) == 2
    shown = capsys.readouterr().err
    assert "cannot be seen" in shown
    assert shown.replace("\n", "").isprintable()


def spoiled(path, offset, value):
    """Change one byte in the headers of the first member: in the archive's directory and before the content."""
    content = bytearray(path.read_bytes())
    content[6 + offset] = value
    content[content.index(b"PK\x01\x02") + 8 + offset] = value
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("offset", "value", "why"),
    [pytest.param(0, 1, "is encrypted", id="encrypted"), pytest.param(2, 14, "by method 14", id="LZMA")],
)
@pytest.mark.parametrize("command", ["audit", "bundle"])
def test_members_that_cannot_be_unpacked_are_refused(tmp_path, capsys, *, command, offset, value, why):
    path = spoiled(demo_wheel(tmp_path, **NOARCH), offset, value)
    assert cli.run([command, str(path)]) == 2
    assert why in capsys.readouterr().err


def test_members_that_share_their_bytes_are_refused(tmp_path, capsys):
    path = demo_wheel(tmp_path, **NOARCH)
    content = bytearray(path.read_bytes())
    second = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    content[second + 42 : second + 46] = bytes(4)
    path.write_bytes(content)
    assert cli.run(["audit", str(path)]) == 2
    assert "lies over another member" in capsys.readouterr().err


def test_a_member_that_two_headers_name_differently_is_refused(tmp_path, capsys):
    path = demo_wheel(tmp_path, **NOARCH)
    path.write_bytes(path.read_bytes().replace(b"demo/__init__.py", b"demo/__evil__.py", 1))
    assert cli.run(["audit", str(path)]) == 2
    assert "does not say what the directory of the archive says" in capsys.readouterr().err


def test_a_pipe_in_the_place_of_a_wheel_is_refused_at_once(tmp_path, capsys):
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    os.mkfifo(path, stat.S_IRUSR | stat.S_IWUSR)
    assert cli.run(["audit", str(path)]) == 2
    assert "is not a file" in capsys.readouterr().err


def with_metadata(tmp_path, **values):
    """Write a wheel that is whole, with other values in its metadata.json."""
    files = package("relu", CPU)
    table = json.loads(files["metadata.json"].content) | values
    return make(tmp_path, "relu", CPU, files={**files, "metadata.json": Bytes(json.dumps(table).encode())})


TYPES = {
    "provenance": ([1], "no table"),
    "build": ([1], "no table"),
    "version": ("1)\n```\n# owned", "no whole number"),
    "source": ([1], "no text"),
    "license": (1, "no text"),
}


@pytest.mark.parametrize("command", ["bundle", "attest"])
@pytest.mark.parametrize("key", TYPES)
def test_values_of_another_type_are_refused(tmp_path, capsys, key, command):
    value, why = TYPES[key]
    path = with_metadata(tmp_path, **{key: value})
    output = tmp_path / "out"
    assert cli.run([command, str(path), "--output", str(output), "--commit", "0" * 40]) == 2
    assert f"'{key}' is {why}" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize("command", ["bundle", "attest"])
@pytest.mark.parametrize("value", ["\ud800", json.loads(DEEP)], ids=["half a pair", "deep"])
def test_values_that_cannot_be_written_are_refused(tmp_path, capsys, value, command):
    path = with_metadata(tmp_path, source=value)
    assert cli.run([command, str(path), "--output", str(tmp_path / "out")]) == 2
    assert "cannot be used" in capsys.readouterr().err


def test_a_source_that_is_no_url_is_no_traceback(tmp_path):
    path = with_metadata(tmp_path, source="here")
    assert cli.run(["attest", str(path), "--commit", "0" * 40]) == 0


def test_an_index_shows_a_requirement_that_is_not_ascii(tmp_path):
    make(tmp_path, "relu", CPU, requires=("torch", "caf\u00e9; os_name == 'x'"))
    assert cli.run(["index", str(tmp_path), "--output", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site/kernels/relu/index.html").read_text(encoding="utf-8")
    assert "caf\u00e9" in page


@pytest.mark.parametrize("command", ["bundle", "attest", "index"])
def test_messages_in_one_another_are_not_looked_at(tmp_path, command):
    nested = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(2_000))
    info = "relu-1.0.0+torch213.cxx11.cpu.dist-info"
    core = b"Name: relu\nVersion: 1.0.0+torch213.cxx11.cpu\n" + nested
    path = make(tmp_path, "relu", CPU, extra={f"{info}/METADATA": Bytes(core)})
    place = tmp_path if command == "index" else path
    assert cli.run([command, str(place), "--output", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("module", ["re-lu", "1relu", "relu](x)"])
def test_a_package_that_no_python_imports_is_refused(tmp_path, capsys, module):
    path = make(tmp_path, "relu", CPU)
    with zipfile.ZipFile(path) as archive:
        members = {name: Bytes(archive.read(name)) for name in archive.namelist() if not name.endswith("RECORD")}
    renamed = {name.replace("relu/", f"{module}/", 1) if name.startswith("relu/") else name: member
               for name, member in members.items()}  # fmt: skip
    path.write_bytes(pack(renamed, dist_info="relu-1.0.0+torch213.cxx11.cpu.dist-info"))
    assert cli.run(["bundle", str(path), "--output", str(tmp_path / "out")]) == 2
    assert "cannot be imported by that name" in capsys.readouterr().err
