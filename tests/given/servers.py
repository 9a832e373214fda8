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


def answering(answer):
    """Serve what `answer(path)` gives, a status and a body, and give the address."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, body = answer(self.path)
            self.send_response(status)
            kind = "application/octet-stream" if self.path.endswith(".whl") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  the name that the server calls
        log_message = Folder.log_message

    return serving(Answer)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
