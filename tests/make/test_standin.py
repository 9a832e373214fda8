import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from builder.make import standin
from tests import needs

pytestmark = [pytest.mark.cmake, needs.only_with("gcc")]

USER = "void plain(void);\nvoid versioned(void);\nvoid user(void) { plain(); versioned(); }\n"
GIVER = "void plain(void) {}\nvoid versioned(void) {}\n"


@pytest.fixture
def user(tmp_path):
    """A library whose only dependency has gone."""
    (tmp_path / "giver.c").write_text(GIVER)
    (tmp_path / "map").write_text("GIVER_1 { global: versioned; };\n")
    gcc(
        tmp_path / "giver.c",
        tmp_path / "libgiver.so.1",
        "-Wl,-soname,libgiver.so.1",
        f"-Wl,--version-script,{tmp_path}/map",
    )
    (tmp_path / "user.c").write_text(USER)
    gcc(tmp_path / "user.c", tmp_path / "libuser.so", str(tmp_path / "libgiver.so.1"))
    (tmp_path / "libgiver.so.1").unlink()
    return tmp_path / "libuser.so"


def gcc(source, output, *flags):
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", output, source, *flags], check=True)


def test_what_is_missing_is_named_with_its_versions(user):
    wanted = {"libgiver.so.1": {"GIVER_1": {"versioned"}, "": {"plain"}}}
    assert standin.missing([user], search=()) == wanted


def test_nothing_is_missing_where_the_library_is(user, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    (tmp_path / "giver.c").write_text(GIVER)
    gcc(tmp_path / "giver.c", folder / "libgiver.so.1", "-Wl,-soname,libgiver.so.1")
    assert standin.missing([user], search=(folder,)) == {}


def test_a_library_loads_with_its_stand_in(user, tmp_path):
    with pytest.raises(OSError, match=r"libgiver\.so\.1"):
        ctypes.CDLL(str(user))
    folder = tmp_path / "stand-ins"
    standin.make(standin.missing([user], search=()), folder, cc=Path(shutil.which("gcc")))
    script = f"import ctypes; ctypes.CDLL({str(user)!r}, mode=2); print('loaded')"
    done = subprocess.run(
        ["python3", "-c", script],
        env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        check=False,
    )
    assert done.stdout.strip() == b"loaded", done.stderr
