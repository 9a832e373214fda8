import signal
import sys
import threading
import time

import pytest

from builder.errors import ToolError
from builder.run import Processes, run


def python(script, **options):
    return run([sys.executable, "-c", script], **options)


def test_both_streams_come_back_in_order():
    done = python("import sys\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)\nprint('three')")
    assert done.output == "one\ntwo\nthree\n"


def test_the_exit_code_comes_back():
    assert python("raise SystemExit(3)").returncode == 3


def test_lines_go_to_the_listener_and_the_log(tmp_path):
    heard = []
    python("print('a')\nprint('b')", on_line=heard.append, log=tmp_path / "log")
    assert heard == ["a", "b"]
    assert (tmp_path / "log").read_text() == "a\nb\n"


def test_bytes_that_are_no_text_do_not_stop_it():
    assert "�" in python("import os\nos.write(1, b'\\xff\\n')").output


def test_a_program_that_is_not_there_is_a_tool_error():
    with pytest.raises(ToolError, match="cannot start 'no-such-program'"):
        run(["no-such-program"])


def test_cancelling_ends_a_tool_that_is_stopped():
    processes = Processes()
    script = "import os, signal\nprint('stopping', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)"
    done = python(script, processes=processes, on_line=lambda _: threading.Timer(0.2, processes.cancel).start())
    assert done.returncode == -signal.SIGTERM


def test_cancelling_ends_a_tool_and_what_it_started():
    processes = Processes()
    started = threading.Event()
    inner = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    script = f"import subprocess, sys\nprint('up', flush=True)\nsubprocess.run({inner})"
    results = []
    thread = threading.Thread(
        target=lambda: results.append(python(script, processes=processes, on_line=lambda _: started.set()))
    )
    began = time.monotonic()
    thread.start()
    started.wait(30)
    processes.cancel()
    thread.join(30)
    assert not thread.is_alive()
    assert results[0].returncode != 0
    assert time.monotonic() - began < 50


def test_a_tool_that_starts_after_the_cancel_is_ended_too():
    processes = Processes()
    processes.cancel()
    assert python("import time; time.sleep(60)", processes=processes).returncode != 0


def test_the_memory_of_the_largest_process_is_measured():
    inner = "[sys.executable, '-c', 'x = bytearray(200_000_000)']"
    # Measured by a process of its own: what a child had before it became another program counts, too.
    measured = f"""
import sys
from builder.run import Processes, run
code = "import subprocess, sys; subprocess.run({inner})"
print(run((sys.executable, "-c", code), env={{}}, processes=Processes()).peak)
"""
    done = python(measured)
    assert 200_000_000 < int(done.output) < 400_000_000
