"""What RECORD, WHEEL and METADATA must say of a wheel."""

import base64
import hashlib

import pytest

from builder.audit import layout
from tests.given.audits import library, subject

INFO = "demo-1.0.0.dist-info"
CONTENT = {
    "demo/__init__.py": b"",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp39-abi3-any\n",
    f"{INFO}/METADATA": b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0.0\nRequires-Dist: torch==2.13.*\n",
}


def row(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def found(*, rows=None, more="", content=CONTENT, tags=("cp39-abi3-any",), libraries=(), signed=(), **facts):
    """Return the findings about a wheel of this content, whose RECORD has a row for each, or these rows, and more."""
    text = "".join(row(*each) for each in content.items()) if rows is None else rows
    texts = content | {f"{INFO}/RECORD": f"{text}{INFO}/RECORD,,\n{more}"} | dict.fromkeys(signed, b"")
    # A library is no member here, so that RECORD may be that of the content alone.
    wheel = subject(texts=texts, libraries=libraries, tags=tags, **facts)
    return [(finding.symbol, finding.why) for finding in layout.check_description(wheel)]


def whys(findings, symbol):
    assert [found for found, _ in findings] == [symbol] * len(findings)
    return " / ".join(why for _, why in findings)


def test_a_right_record_has_no_finding():
    assert found() == []


def test_signatures_of_a_record_need_no_row_and_no_hash():
    assert found(signed=(f"{INFO}/RECORD.jws", f"{INFO}/RECORD.p7s")) == []
    assert found(signed=(f"{INFO}/RECORD.jws",), more=f"{INFO}/RECORD.jws,,\n") == []


def test_an_empty_line_of_a_record_says_nothing():
    assert found(more="\n\n") == []


INIT = "demo/__init__.py"
RIGHT = row(INIT, b"")
REST = "".join(row(name, content) for name, content in CONTENT.items() if name != INIT)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("", "does not list it", id="none"),
        pytest.param(RIGHT * 2, "lists it twice", id="two"),
        pytest.param(f"{INIT},sha256=x\n", "not have the three fields", id="two fields"),
        pytest.param(f"{RIGHT.strip()},x\n", "not have the three fields", id="four fields"),
        pytest.param(RIGHT.replace("sha256=", "sha512="), "not a sha256", id="another algorithm"),
        pytest.param(RIGHT.replace("sha256=", "sha256=A"), "not that of the file", id="another hash"),
        pytest.param(RIGHT.replace(",0", ",1"), "size in RECORD is 1, the file has 0", id="another size"),
        pytest.param(RIGHT.replace(",0", ","), "size in RECORD is , the file has 0", id="no size"),
    ],
)
def test_a_file_has_one_row_with_its_hash_and_its_size(line, why):
    assert why in whys(found(rows=line + REST), INIT)


def test_a_hash_may_be_padded():
    assert found(rows=RIGHT.replace(",0", "=,0") + REST) == []


def test_a_row_of_a_file_that_is_not_there_is_found():
    assert "not in the wheel" in whys(found(more="demo/x.py,sha256=x,0\n"), "demo/x.py")


def test_a_record_of_more_rows_than_are_read_is_no_table():
    assert "more than the 32768 rows" in whys(found(rows="a,b,c\n" * 32768), "RECORD")
    assert "more than" not in str(found(rows="a,b,c\n" * (32768 - 1)))


@pytest.mark.parametrize("name", ["WHEEL", "METADATA"])
def test_a_wheel_that_lacks_what_describes_it_is_found(name):
    path = f"{INFO}/{name}"
    content = {key: value for key, value in CONTENT.items() if key != path}
    assert [symbol for symbol, _ in found(content=content)] == [name]


def tagged(tag, *, pure="false"):
    wheel = f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    return {"content": CONTENT | {f"{INFO}/WHEEL": wheel}, "tags": (tag,)}


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        pytest.param("cp39-abi3-linux_x86_64", None, id="the stable ABI"),
        pytest.param("py3-none-linux_x86_64", None, id="no Python"),
        pytest.param("cp311-cp311-linux_x86_64", None, id="one Python"),
        pytest.param("cp311-cp312-linux_x86_64", "its ABI tag is 'cp312'", id="two Pythons"),
        pytest.param("cp311-none-linux_x86_64", "it is for 'cp311' alone", id="one Python, whose ABI is not used"),
        pytest.param("py3-none-any", "its platform tag is 'any'", id="any platform"),
    ],
)
def test_the_tag_of_a_wheel_with_a_library_fits_it(tag, why):
    findings = found(**tagged(tag), libraries=(library(),))
    assert (why in whys(findings, tag)) if why else findings == []
    assert found(**tagged(tag)) == []


def test_a_wheel_with_a_library_is_not_pure():
    assert "it says true" in whys(found(**tagged("py3-none-l", pure="True"), libraries=(library(),)), "Root-Is-Purelib")
    assert found(**tagged("py3-none-l", pure="True")) == []


def test_a_tag_that_is_in_one_place_alone_is_found():
    findings = found(tags=("py3-none-any",))
    assert findings == [
        ("cp39-abi3-any", "WHEEL has this tag, the file name does not"),
        ("py3-none-any", "the file name has this tag, WHEEL does not"),
    ]


@pytest.mark.parametrize(
    ("version", "right"), [("1.0.0", True), ("1.0", True), ("1.0.1", False), ("x", False), ("1.0" + ".0" * 40, False)]
)
def test_the_version_is_that_of_the_file_name(version, right):
    text = CONTENT[f"{INFO}/METADATA"].replace(b"1.0.0", version.encode())
    assert [symbol for symbol, _ in found(content=CONTENT | {f"{INFO}/METADATA": text})] == (
        [] if right else ["Version"]
    )


@pytest.mark.parametrize(
    ("required", "version", "stable", "right"),
    [
        ("torch==2.13.*", "2.13", False, True),
        ("torch>=2.13,<2.14", "2.13", False, True),
        ("torch>=2.13", "2.13", False, False),
        ("torch>=2.12,<2.14", "2.13", False, False),
        ("torch>=2.13,<2.15", "2.13", False, False),
        ("torch==2.13.1", "2.13", False, True),
        ("torch==2.13.99", "2.13", False, True),
        ("torch==2.12.*", "2.13", False, False),
        ("torch", "2.13", False, False),
        ("numpy", "2.13", False, False),
        ("torch>=2.10", "2.10", True, True),
        ("torch==2.10.*", "2.10", True, False),
        ("torch>=2.9", "2.10", True, False),
        ("torch>=3.0", "3.0", True, True),
        ("torch==3.0.*", "3.0", False, True),
    ],
)
def test_a_wheel_requires_the_torch_that_it_is_for(required, version, stable, right):
    text = CONTENT[f"{INFO}/METADATA"].replace(b"torch==2.13.*", required.encode())
    findings = found(content=CONTENT | {f"{INFO}/METADATA": text}, version=version, stable=stable)
    assert findings == [] if right else "and the wheel is for 'torch" in whys(findings, "Requires-Dist")
