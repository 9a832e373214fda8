"""A hub on this machine that has kernels, for its own library."""

import http.server
import json
import re
from urllib.parse import unquote, urlsplit

from tests.given import servers


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as fetching kernels needs; a commit is a table of files, which are text or bytes."""

    kernels: dict
    """The commit of version 1 and the files of each repository."""

    def log_message(self, *_arguments):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        path = unquote(urlsplit(self.path).path)
        repository = next((name for name in self.kernels if f"/kernels/{name}/" in path), None)
        commit, files = self.kernels.get(repository, ("", {}))
        contents = {name: each.encode() if isinstance(each, str) else each for name, each in files.items()}
        headers = {}
        if re.fullmatch(rf"/api/kernels/{repository}/revision/(v1|{commit})", path):
            siblings = [{"rfilename": name} for name in contents]
            content = json.dumps({"id": repository, "sha": commit, "siblings": siblings}).encode()
        elif path == f"/api/kernels/{repository}/tree/{commit}":
            tree = [
                {"type": "file", "path": name, "size": len(text), "oid": "a" * 40} for name, text in contents.items()
            ]
            content = json.dumps(tree).encode()
        elif found := re.fullmatch(rf"/kernels/{repository}/resolve/{commit}/(.+)", path):
            content = contents[found[1]]
            headers = {"ETag": f'"{hash(content) % 10**9}"', "X-Repo-Commit": commit}
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound" if repository is None else "RevisionNotFound")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def serving(kernels):
    """Serve kernels, by their repositories, and give the address."""
    return servers.serving(type("Handler", (Hub,), {"kernels": kernels}))
