"""A server of the page in a thread, and requests to it as they are, for tests."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from export.web.files import own_files, runtime_files
from export.web.models import open_models
from export.web.server import PageServer


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.body)


class Asker:
    """What asks a server; every request has a connection of its own."""

    def __init__(self, server: PageServer) -> None:
        self.server = server
        self.port: int = server.server_address[1]
        self.url = server.url

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": f"127.0.0.1:{self.port}"} | (headers or {})
            if body is not None:
                given = {"Content-Length": str(len(body))} | given
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.headers.items()), answer.read())
        finally:
            connection.close()

    def post(self, content: Any, path: str = "/api/answer", **headers: str) -> Reply:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.request("POST", path, body, {"Content-Type": "application/json"} | headers)


@contextlib.contextmanager
def serving(paths: Sequence[Path], runtimes: Path | None = None, host: str = "127.0.0.1") -> Iterator[Asker]:
    """The page with these files; `runtimes`: where npm installed the browser's."""
    files, versions = runtime_files(runtimes) if runtimes else ({}, {})
    with PageServer(host, 0, open_models(paths), own_files() | files, versions) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Asker(server)
        finally:
            server.shutdown()
            thread.join()
