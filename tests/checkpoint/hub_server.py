"""A small server that speaks the part of the Hugging Face hub's protocol that downloading a snapshot needs."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMITS = {"main": "a" * 40, "v2": "b" * 40}  # revision -> commit


class Hub:
    """``folders``: commit -> folder of the repository at that commit. ``ranges``: Range headers that came; ``tokens``:
    Authorization headers; ``break_after``: bytes after which a file's next transfer breaks off, once."""

    def __init__(self, repository: str, folders: dict[str, Path]) -> None:
        self.repository, self.folders = repository, folders
        self.ranges: list[str] = []
        self.tokens: set[str | None] = set()
        self.break_after: dict[str, int] = {}
        self.url = ""


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def _commit(self, revision: str) -> str | None:
            commit = COMMITS.get(revision, revision)
            return commit if commit in hub.folders else None

        def _no(self, code: str) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _json(self, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _answer(self, body: bool) -> None:
            hub.tokens.add(self.headers.get("Authorization"))
            path = self.path.split("?")[0]
            head = f"/api/models/{hub.repository}"
            if path.startswith(head):
                parts = path.removeprefix(head).strip("/").split("/")
                commit = self._commit(parts[1] if len(parts) > 1 else "main")
                if commit is None:
                    return self._no("RevisionNotFound")
                files = sorted(p for p in hub.folders[commit].iterdir() if p.is_file())
                if parts[0] == "tree":
                    return self._json([
                        {"type": "file", "path": p.name, "size": p.stat().st_size, "oid": "0" * 40} for p in files
                    ])  # fmt: skip
                return self._json({
                    "id": hub.repository, "modelId": hub.repository, "sha": commit, "private": False, "tags": [],
                    "siblings": [{"rfilename": p.name, "size": p.stat().st_size} for p in files],
                })  # fmt: skip
            if not path.startswith(f"/{hub.repository}/resolve/"):
                return self._no("RepoNotFound")
            revision, name = path.removeprefix(f"/{hub.repository}/resolve/").split("/", 1)
            commit = self._commit(revision)
            if commit is None:
                return self._no("RevisionNotFound")
            file = hub.folders[commit] / name
            if not file.is_file():
                return self._no("EntryNotFound")
            data = file.read_bytes()
            start = 0
            if (asked := self.headers.get("Range")) and body:
                hub.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").split("-")[0])
            self.send_response(206 if start else 200)
            self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
            self.send_header("X-Repo-Commit", commit)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(data) - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            if not body:
                return None
            if (limit := hub.break_after.pop(name, None)) is not None:
                self.wfile.write(data[start : start + limit])
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()
                return None
            self.wfile.write(data[start:])
            return None

        def do_HEAD(self) -> None:
            self._answer(False)

        def do_GET(self) -> None:
            self._answer(True)

    return Handler


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
