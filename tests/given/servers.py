"""Servers on loopback."""

import contextlib
import functools
import http.server
import socket
import threading


class Folder(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler):
    """Serve with a handler, and give the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def serving_folder(folder, handler=Folder):
    """Serve a folder, and give the address."""
    return serving(functools.partial(handler, directory=str(folder)))


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
