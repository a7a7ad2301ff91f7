"""Serves the page: fixed files, what is known of the models, and answers; on this machine, with the standard library."""

import ipaddress
import json
import socket
import socketserver
import sys
import traceback
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from albert_tf.errors import InputError
from export.web.answers import Json
from export.web.examples import example_texts
from export.web.files import DEFAULT_FOLDER, DROPPED, TOKENIZER_WORKER, WebFile, install_command
from export.web.models import ServedModel

MOST_TEXT_BYTES = 1 << 20  # of all texts of a request, in UTF-8
# A text in JSON may be longer than the text: \u0041 for a letter.
_MOST_BODY_BYTES = 6 * MOST_TEXT_BYTES + (1 << 16)
# What is read past that, so that a browser gets the refusal: it answers a connection closed too early with none.
_MOST_READ_BYTES = 64 << 20
_SECONDS = 60  # for a client to say what it wants
_QUOTED = 80
# No script or style but the page's files, no request beyond this server: MediaPipe's web build posts statistics otherwise.
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The tokenizer's package makes functions of strings: allowed in its worker alone, which has no page and gets text only.
WORKER_POLICY = "default-src 'none'; script-src 'self' 'unsafe-eval' 'wasm-unsafe-eval'; connect-src 'self'"
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class RefusedError(Exception):
    """A request that gets an error as its answer."""

    def __init__(self, status: HTTPStatus, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class PageServer(ThreadingHTTPServer):
    """The server of one set of files.

    Args:
        host: the name or address to listen at.
        port: the port; 0 for any free one.
        models: the files that can be asked, by the page's name for them.
        files: what is served as it is, by path.
        versions: of the browser's runtimes; none where they are not installed.

    Raises:
        InputError: the address cannot be listened at.
    """

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(
        self,
        host: str,
        port: int,
        models: Mapping[str, ServedModel],
        files: Mapping[str, WebFile],
        versions: Mapping[str, str],
    ) -> None:
        self.host, self.models, self.files, self.versions = host, models, files, versions
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = family
            super().__init__(address[:2], Handler)  # type: ignore[arg-type]
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot listen at {host}, port {port}: {reason}; give another --host, or another --port (0: any free one)"
            ) from error

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_address[1]}/"

    def server_bind(self) -> None:
        """Without the look-up of the machine's name that the standard server makes, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the server."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def page_state(self) -> Json:
        """What the page needs before anything is asked."""
        return {
            "models": [model.description() for model in self.models.values()],
            "runtimes": dict(self.versions),
            "install": None if self.versions else install_command(DEFAULT_FOLDER),
            "most_text_bytes": MOST_TEXT_BYTES,
            "examples": example_texts(),
        }


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    path = ""  # until there is a request line that has one

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def __getattr__(self, name: str) -> Any:
        """Any other method is refused in the same words."""
        if name.startswith("do_"):
            return lambda: self._answer(self._other)
        raise AttributeError(name)

    def version_string(self) -> str:
        return "albert-tf"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: what is typed stays here."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard server refuses by itself, such as a request line that is none."""
        self.close_connection = True
        self._send_json({"error": message or HTTPStatus(code).phrase}, HTTPStatus(code))

    def _answer(self, make: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._check_host()
            content, kind = make()
        except RefusedError as refused:
            self._drop_body(self._body_length())
            self._send_json({"error": str(refused)}, refused.status, refused.headers)
        except InputError as error:
            self._send_json({"error": " ".join(str(error).split())}, HTTPStatus.BAD_REQUEST)
        except (ConnectionError, TimeoutError):
            raise  # the client's
        except Exception as error:
            traceback.print_exc()  # in the terminal; the page gets a line
            self._drop_body(self._body_length())
            reason = f"the server failed ({type(error).__name__}); its terminal says where"
            self._send_json({"error": reason}, HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self._send(content, kind)

    # === what is asked ===

    def _check_host(self) -> None:
        """A page elsewhere cannot reach this server through a name of its own that leads here (DNS rebinding)."""
        if not is_own_host(self.headers.get("Host", ""), self.server.host):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"Host: expected {self.server.host} or an address of this machine")
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{self.headers['Host']}":
            raise RefusedError(HTTPStatus.FORBIDDEN, "Origin: only the page of this server may ask")

    def _own_path(self) -> str:
        """What is asked for, without the query; nothing where it is no path here."""
        return self.path.partition("?")[0] if self.path.startswith("/") else ""

    def _get(self) -> tuple[bytes, str]:
        path = self._own_path()
        if path in self.server.files:
            file = self.server.files[path]
            return file.read(), file.type
        if path == "/api/state":
            return _json(self.server.page_state()), "application/json"
        if path in _POSTS:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path}: expected POST", Allow="POST")
        if path.startswith("/models/"):
            name, _, kind = path.removeprefix("/models/").rpartition(".")
            if kind == "tflite":
                return self._model(name).path.read_bytes(), "application/octet-stream"
            if kind == "spm":
                return self._model(name).device_vocabulary(), "application/octet-stream"
            if kind == "pieces":
                return _json(self._model(name).pieces()), "application/json"
        raise RefusedError(HTTPStatus.NOT_FOUND, f"no such page: {_quoted(path or self.path)}")

    def _post(self) -> tuple[bytes, str]:
        path = self._own_path()
        if path == DROPPED:
            self._drop_body(self._body_length())
            return b"", "text/plain"
        if path not in _POSTS:
            if path in self.server.files or path == "/api/state":
                raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"{path}: expected GET", Allow="GET, HEAD")
            raise RefusedError(HTTPStatus.NOT_FOUND, f"no such page: {_quoted(path or self.path)}")
        asked = self._asked()
        return _json(_POSTS[path](self._model(asked.get("file")), asked)), "application/json"

    def _other(self) -> tuple[bytes, str]:
        raise RefusedError(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"{_quoted(self.command)}: expected GET, HEAD or POST",
            Allow="GET, HEAD, POST",
        )

    def _model(self, name: Any) -> ServedModel:
        if not isinstance(name, str) or name not in self.server.models:
            known = ", ".join(self.server.models)
            raise RefusedError(HTTPStatus.NOT_FOUND, f"file: expected one of {known}; got {_quoted(name)}")
        return self.server.models[name]

    def _asked(self) -> Json:
        """The JSON object of a request."""
        kind = self.headers.get_content_type()
        if kind != "application/json":
            raise RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type: expected application/json, got {_quoted(kind)}"
            )
        length = self._body_length()
        if length is None:
            raise RefusedError(
                HTTPStatus.LENGTH_REQUIRED, "Content-Length: expected the number of bytes of the request"
            )
        if length > _MOST_BODY_BYTES:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_long(length))
        body = self.rfile.read(length)
        self._read = True
        try:
            asked = json.loads(body)
            own = {name: value for name, value in asked.items() if name != "file"} if isinstance(asked, dict) else asked
            size = _text_bytes(own)
        except UnicodeEncodeError as error:
            half = json.dumps(error.object[error.start])
            raise RefusedError(
                HTTPStatus.BAD_REQUEST, f"expected texts of whole characters, got half of one, {half}; leave it out"
            ) from error
        except (ValueError, RecursionError) as error:
            raise RefusedError(
                HTTPStatus.BAD_REQUEST, f"expected a JSON object, got something else ({error})"
            ) from error
        if not isinstance(asked, dict):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"expected a JSON object, got {type(asked).__name__}")
        if size > MOST_TEXT_BYTES:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_long(size))
        return asked

    _read = False  # whether this request's body was

    def _body_length(self) -> int | None:
        """The bytes of the request's body; None where they are not told."""
        text = self.headers.get("Content-Length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None

    def _drop_body(self, length: int | None) -> None:
        """Reads what a refused request still sends, within reason; the connection ends."""
        self.close_connection = True
        left = 0 if self._read or length is None or length > _MOST_READ_BYTES else length
        while left > 0 and (chunk := self.rfile.read(min(left, 1 << 16))):
            left -= len(chunk)

    # === what is answered ===

    def _send_json(self, content: Json, status: HTTPStatus, headers: Mapping[str, str] | None = None) -> None:
        self._send(_json(content), "application/json", status, headers or {})

    def _send(
        self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
    ) -> None:
        self._read = False  # of the next request on this connection
        self.send_response(status)
        all_headers = {"Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-cache"}
        if self._own_path() == TOKENIZER_WORKER:
            all_headers["Content-Security-Policy"] = WORKER_POLICY
        for name, value in (_HEADERS | all_headers | dict(headers or {})).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


_POSTS: dict[str, Callable[[ServedModel, Json], Json]] = {
    "/api/answer": lambda model, asked: model.answer(asked),
    "/api/tokens": lambda model, asked: model.tokens(asked),
}


def is_own_host(header: str, host: str) -> bool:
    """Whether a Host header names this server: by the name that it listens at, as localhost, or by an address."""
    try:
        name = urlsplit(f"//{header}").hostname or ""
        _ = urlsplit(f"//{header}").port
    except ValueError:
        return False
    if any(sign in header for sign in "/@?#\\ ,"):
        return False
    if name in (host.lower(), "localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def too_long(size: int) -> str:
    """What is wrong with texts of so many bytes."""
    return f"expected texts of at most {MOST_TEXT_BYTES:,} bytes, got {size:,}; send a part of them"


def _text_bytes(value: Any) -> int:
    """The bytes of all strings in a request, which has lists of one depth."""
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    if isinstance(value, dict):
        return sum(map(_text_bytes, value.values()))
    return 0


def _json(content: Json | list[str]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode()


def _quoted(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
