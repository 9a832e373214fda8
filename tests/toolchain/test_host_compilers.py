"""C++ compilers that are too new for nvcc."""

import re
import shutil
import sysconfig
from pathlib import Path

import pytest

from builder.errors import NotHereError
from builder.toolchain import this_machine
from builder.toolchain.tool import Search

SAID = {
    "Debian 12": "g++ (Debian 12.2.0-14+deb12u1) 12.2.0",
    "Ubuntu": "g++ (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0",
    "Fedora": "g++ (GCC) 15.2.1 20251022 (Red Hat 15.2.1-3)",
    "sid": "g++ (Debian 16.1.0-2) 16.1.0",
    "conda": "x86_64-conda-linux-gnu-c++ (conda-forge gcc 16.1.0-7) 16.1.0",
    "clang": "Debian clang version 21.1.4 (8)",
    "old clang": "clang version 15.0.7",
    "another": "nobody knows",
}
REFUSED = {
    "12.4": set(),
    "13.0": {"sid", "conda", "clang"},
    "13.3": {"sid", "conda"},
    "13.5": set(),
    "14.0": set(),
}


@pytest.fixture
def search(tmp_path):
    def of(said, name="g++"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho '{said}'\n")
        program.chmod(0o755)
        return Search(environ={"PATH": f"{tmp_path}:/bin:/usr/bin", "CXX": str(tmp_path / "g++")}, digest=str)

    return of


@pytest.mark.parametrize("toolkit", REFUSED)
@pytest.mark.parametrize("which", SAID)
def test_a_compiler_is_refused_where_it_is_newer_than_nvcc_takes(search, toolkit, which):
    found = search(SAID[which])
    if which not in REFUSED[toolkit]:
        this_machine.require_for_nvcc(found, toolkit)
        return
    with pytest.raises(NotHereError, match=f"nvcc of CUDA {toolkit} takes .* up to .* is (16|21)\n") as refused:
        this_machine.require_for_nvcc(found, toolkit)
    assert re.search(
        r"set CXX=(g\+\+-15|clang\+\+-20) where that is installed, or pass --toolchain pinned", refused.value.help
    )


def test_that_for_another_system_is_the_one_that_compiles_for_it(search):
    search("aarch64-linux-gnu-g++ (Debian 16.1.0-2) 16.1.0", "aarch64-linux-gnu-g++")
    (Path(search("g++ (Debian 12.2.0-14) 12.2.0").environ["CXX"]).parent / "libc.so.6").touch()
    program = shutil.which("aarch64-linux-gnu-g++", path=search(SAID["sid"]).path)
    text = '#!/bin/sh\ncase $1 in -print*) echo "${0%/*}/libc.so.6";; *) echo "g++ (Debian 16.1.0-2) 16.1.0";; esac\n'
    Path(program).write_text(text)
    with pytest.raises(NotHereError, match=r"aarch64-linux-gnu-g\+\+' is 16") as refused:
        this_machine.require_for_nvcc(search(SAID["Debian 12"]), "13.0", target="aarch64-linux")
    assert "CXX" not in refused.value.help


def headers():
    """Return the header of each CUDA toolkit that is here, by its release."""
    places = [*Path("/usr/local").glob("cuda-*"), *Path(sysconfig.get_paths()["purelib"]).glob("nvidia/cu*")]
    found = {}
    for root in places:
        runtime, config = root / "include/cuda_runtime_api.h", root / "include/crt/host_config.h"
        if runtime.is_file() and config.is_file():
            (number,) = re.findall(r"#define CUDART_VERSION +(\d+)", runtime.read_text(encoding="utf-8"))
            found[f"{int(number) // 1000}.{int(number) % 1000 // 10}"] = config.read_text(encoding="utf-8")
    return found


# The headers are the oracle; the table itself is tested above without them.
@pytest.mark.skipif(not headers(), reason="no CUDA toolkit with its headers is here")
def test_the_table_says_what_the_headers_of_each_toolkit_say():
    for toolkit, text in headers().items():
        limits = this_machine.newest_for_nvcc(toolkit)
        (gcc,) = re.findall(r"#if __GNUC__ > (\d+)", text)
        clang = set(re.findall(r"^#if \(__clang_major__ >= (\d+)\)", text, re.MULTILINE))
        assert (limits["gcc"], {str(limits["clang"] + 1)}) == (int(gcc), clang), toolkit
