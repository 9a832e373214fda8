"""A hub on this machine, for its own library."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
from urllib.parse import unquote, urlsplit

import pytest

from tests.given.servers import serving


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub's API as one commit needs; a repository is a table of branches."""

    branches: dict
    commits: list
    broken: list
    created: list
    proposals: list
    private = False
    token = "hf_not_a_token"

    def log_message(self, *_arguments):
        pass

    def reply(self, value, status=200, headers=()):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        if urlsplit(self.path).path == "/api/whoami-v2":
            known = self.headers.get("Authorization") == f"Bearer {self.token}"
            self.reply({"type": "user", "name": "team"} if known else {"error": "who"}, 200 if known else 401)
            return
        if urlsplit(self.path).path == "/api/kernels/team/relu" and self.branches:
            self.reply({"id": "team/relu", "private": self.private})
            return
        found = re.fullmatch(r"/api/kernels/team/relu/tree/([^/]+)", unquote(urlsplit(self.path).path))
        if found is None or found[1] not in self.branches:
            self.reply(
                {"error": "absent"}, 404, [("X-Error-Code", "RevisionNotFound" if self.branches else "RepoNotFound")]
            )
            return
        files = self.branches[found[1]]
        self.reply(
            [
                {
                    "type": "file",
                    "path": path,
                    "size": len(content),
                    "oid": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
                }
                for path, content in files.items()
            ]
        )

    def do_POST(self):
        path = unquote(urlsplit(self.path).path)
        body = self.body()
        if path == "/api/repos/create":
            self.created.append(json.loads(body))
            self.reply({"url": f"http://{self.headers['Host']}/kernels/team/relu"})
        elif path == "/api/validate-yaml":
            self.reply({"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/kernels/team/relu/branch/(.+)", path):
            self.branches.setdefault(found[1], {})
            self.reply({})
        elif "/preupload/" in path:
            files = json.loads(body)["files"]
            self.reply({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]})
        elif found := re.fullmatch(r"/api/kernels/team/relu/commit/(.+)", path):
            self.commit(found[1], body)
        else:
            self.reply({"error": f"unknown {path}"}, 400)

    def commit(self, branch, body):
        if self.broken:
            self.reply({"error": self.broken.pop()}, 500)
            return
        proposed = "create_pr=1" in urlsplit(self.path).query
        files = dict(self.branches[branch]) if proposed else self.branches[branch]
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            elif line["key"] == "deletedFile":
                del files[line["value"]["path"]]
        at = f"http://{self.headers['Host']}/kernels/team/relu"
        done = {"success": True, "commitOid": "0" * 40, "commitUrl": f"{at}/commit/{'0' * 40}", "hookOutput": ""}
        if proposed:
            self.proposals.append(files)
            done["pullRequestUrl"] = f"{at}/discussions/{len(self.proposals)}"
        else:
            self.commits.append(branch)
        self.reply(done)


@contextlib.contextmanager
def served(monkeypatch, home):
    """Give a hub without any repository, which the library is set up for."""
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_TOKEN", Hub.token)
    state = {"branches": {}, "commits": [], "broken": [], "created": [], "proposals": []}
    handler = type("Handler", (Hub,), state)
    with serving(handler) as handler.address:
        yield handler
