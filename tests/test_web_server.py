"""The server of the page: what it answers, what it refuses, and that it goes on after it."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from tiny_exports import exported
from web_pages import serving

from albert_tf.errors import InputError
from export.runtime import TFLiteRunner
from export.web.files import own_files
from export.web.models import open_models
from export.web.server import MOST_TEXT_BYTES, POLICY, PageServer, is_own_host

HTML = "<script>alert(1)</script><img src=x onerror=alert(2)> the mill"


@pytest.fixture(scope="module")
def asker():
    with serving([exported(), exported("all", "dynamic_int8")]) as found:
        yield found


def error_of(reply, status):
    """The one line that a refused request gets."""
    assert reply.status == status
    assert reply.json.keys() == {"error"}
    assert "\n" not in reply.json["error"] and "Traceback" not in reply.json["error"]
    return reply.json["error"]


# === what it answers ===


@pytest.mark.parametrize("path", ["/", "/?a=b", *own_files()])
def test_own_files(asker, path):
    reply = asker.request("GET", path)
    assert reply.status == 200
    assert reply.body == own_files()[path.partition("?")[0]].path.read_bytes()
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    head = asker.request("HEAD", path)
    assert head.body == b"" and head.headers["Content-Length"] == str(len(reply.body))


def test_policy(asker):
    for path in own_files().keys() | {"/api/state", "/nothing"}:
        policy = asker.request("GET", path).headers["Content-Security-Policy"]
        if path == "/static/tokenizer_worker.js":
            assert policy.startswith("default-src 'none'")
            assert "connect-src 'self'" in policy
        else:
            assert policy == POLICY
    assert "default-src 'self'" in POLICY and "connect-src 'self'" in POLICY and "'wasm-unsafe-eval'" in POLICY
    assert "'unsafe-inline'" not in POLICY and "'unsafe-eval'" not in POLICY


def test_the_page_asks_for_nothing_of_other_machines_and_has_no_script_inside():
    for path, file in own_files().items():
        content = file.path.read_text(encoding="utf-8")
        assert set(re.findall(r"https?://[\w./]+", content)) <= {"http://www.w3.org/2000/svg"}, path
        assert "innerHTML" not in content and "insertAdjacentHTML" not in content, path
    page = own_files()["/"].path.read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]*>[^<]|\son\w+=|<style|\sstyle=", page)


def test_state(asker):
    state = asker.request("GET", "/api/state").json
    assert [model["id"] for model in state["models"]] == ["1", "2"]
    first = state["models"][0]
    assert (first["name"], first["task"], first["recipe"]) == (exported().name, "classification", "float32")
    assert first["bytes"] == exported().stat().st_size
    assert first["runtime"] is None and "open size" in first["why_not_in_browser"]
    assert state["runtimes"] == {} and state["install"].startswith("npm install --prefix .web @")
    assert str(exported().parent) not in json.dumps(state)


@pytest.mark.parametrize(
    "text", ["the old mill", HTML, "12,000 people", "😀 שלום 가나다", "the mill " * 300, "x" * 5000]
)
def test_answers_are_those_of_the_file(asker, text):
    for name, path in (("1", exported()), ("2", exported("all", "dynamic_int8"))):
        reply = asker.post({"file": name, "text": text})
        (expected,) = TFLiteRunner(path)([text])
        assert reply.status == 200
        assert reply.json["answer"] == {
            "label": expected.label,
            "scores": [[label, score] for label, score in expected.probabilities.items()],
        }
        ids, _ = TFLiteRunner(path).tokenizer.encode(text)
        assert reply.json["tokens"]["rows"] == [TFLiteRunner(path).tokenizer.pieces(ids)]
        assert reply.json["milliseconds"] > 0 and "server" in reply.json["runtime"]


def test_tokens_alone(asker):
    asked = {"file": "1", "text": "the old mill", "pair": "a river"}
    assert asker.post(asked, "/api/tokens").json == asker.post(asked).json["tokens"]


def test_a_file_and_its_vocabulary(asker):
    reply = asker.request("GET", "/models/1.tflite")
    assert reply.body == exported().read_bytes()
    assert asker.request("GET", "/models/2.spm").body == asker.request("GET", "/models/1.spm").body != b""
    tokenizer = TFLiteRunner(exported()).tokenizer
    pieces = asker.request("GET", "/models/1.pieces").json
    assert pieces == tokenizer.pieces(range(tokenizer.vocabulary.size)) and pieces[0] == "<pad>"


def test_several_requests_on_one_connection(asker):
    body = json.dumps({"file": "1", "text": "a"}).encode()
    head = f"POST /api/answer HTTP/1.1\r\nHost: localhost:{asker.port}\r\nContent-Type: application/json\r\n"
    once = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", asker.port), timeout=30) as connection:
        connection.sendall(once * 3)
        connection.shutdown(socket.SHUT_WR)
        assert connection.makefile("rb").read().count(b"HTTP/1.1 200 OK") == 3


# === what it refuses ===


@pytest.mark.parametrize("text", ["", "  \n\t", None, 3, ["a"], {}])
def test_no_text(asker, text):
    assert error_of(asker.post({"file": "1", "text": text}), 400).startswith("text: expected a text, got ")
    assert error_of(asker.post({"file": "1"}), 400) == "text: expected a text, got none; type one"


def test_texts_of_another_task(asker):
    message = error_of(asker.post({"file": "1", "text": "a", "question": "b"}), 400)
    assert message == "question: not for this task; it takes text, pair"


def test_a_megabyte_is_answered_and_more_is_not(asker):
    text = "the old mill " * (MOST_TEXT_BYTES // 13 + 1)
    reply = asker.post({"file": "1", "text": text[:MOST_TEXT_BYTES]})
    assert reply.status == 200 and reply.json["tokens"]["count"] == 24
    message = error_of(asker.post({"file": "1", "text": text[: MOST_TEXT_BYTES + 1]}), 413)
    assert message == "expected texts of at most 1,048,576 bytes, got 1,048,577; send a part of them"
    error_of(asker.post({"file": "1", "text": "가" * (MOST_TEXT_BYTES // 3 + 1)}), 413)
    error_of(asker.post(b'{"file": "1", "text": "' + b"a" * (8 << 20) + b'"}'), 413)
    error_of(
        asker.request("POST", "/api/answer", b"", {"Content-Type": "application/json", "Content-Length": "9" * 15}), 413
    )
    assert asker.post({"file": "1", "text": "a"}).status == 200


@pytest.mark.parametrize("name", ["3", "0", "", None, 1, "../1", ["1"], "1.tflite", "x" * 9000, "\n"])
def test_unknown_model(asker, name):
    message = error_of(asker.post({"file": name, "text": "a"}), 404)
    assert message.startswith("file: expected one of 1, 2; got ") and len(message) < 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "a"])
def test_wrong_content_type(asker, kind):
    message = error_of(asker.post({"file": "1", "text": "a"}, **{"Content-Type": kind}), 415)
    assert message.startswith("Content-Type: expected application/json, got ")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'"a"', b"\xff\xfe", b"[" * 100000, b"1e999"],
)
def test_what_is_no_json_object(asker, body):
    assert error_of(asker.post(body), 400).startswith("expected a JSON object, got ")


@pytest.mark.parametrize("half", [r"\ud800", r"\udfff", r"\ude00\ud83d"])
def test_half_a_character(asker, half):
    for asked in ('{"file": "1", "text": "the %s mill"}', '{"file": "1", "text": "a", "pair": "%s"}'):
        message = error_of(asker.post((asked % half).encode()), 400)
        assert message == f'expected texts of whole characters, got half of one, "{half[:6]}"; leave it out'


def test_no_length(asker):
    reply = asker.request("POST", "/api/answer", None, {"Content-Type": "application/json"})
    assert error_of(reply, 411).startswith("Content-Length: ")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/..",
        "/../../etc/passwd",
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2f..%2fmodels.py",
        "/static//style.css",
        "/static/style.css/",
        "/static/",
        "/static",
        "/runtime/@litertjs/core/dist/index.js",
        "/runtime/../package.json",
        "/models/",
        "/models/1",
        "/models/1.txt",
        "/models/3.tflite",
        "/models/3.pieces",
        "/models/../1.tflite",
        "/models//etc/passwd.tflite",
        "/models/%2fetc%2fpasswd.tflite",
        "/etc/passwd",
        "/static/style.css\x00",
        "http://127.0.0.1/static/style.css",
        "http://[",
        "//[",
        "*",
    ],
)
def test_only_listed_files(asker, path):
    raw = path.encode("latin-1")
    with socket.create_connection(("127.0.0.1", asker.port), timeout=30) as connection:
        connection.sendall(b"GET " + raw + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = connection.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert re.match(rb"HTTP/1.1 4\d\d ", head), head
    assert json.loads(body).keys() == {"error"} and b"root:" not in body


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/api/answer", 405, "POST"),
        ("POST", "/", 405, "GET, HEAD"),
        ("PUT", "/", 405, "GET, HEAD, POST"),
        ("DELETE", "/models/1.tflite", 405, "GET, HEAD, POST"),
        ("OPTIONS", "/api/answer", 405, "GET, HEAD, POST"),
        ("POST", "/nothing", 404, None),
    ],
)
def test_other_methods(asker, method, path, status, allowed):
    reply = asker.request(method, path, b"{}", {"Content-Type": "application/json"})
    error_of(reply, status)
    assert reply.headers.get("Allow") == allowed


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "localhost.evil.example", "", "127.0.0.1@evil.example"]
)
def test_names_that_lead_here_from_elsewhere(asker, host):
    for reply in (
        asker.request("GET", "/", headers={"Host": host}),
        asker.post({"file": "1", "text": "a"}, Host=host),
    ):
        assert error_of(reply, 403).startswith("Host: expected 127.0.0.1")


def test_pages_elsewhere_may_not_ask(asker):
    assert error_of(asker.post({"file": "1", "text": "a"}, Origin="http://evil.example"), 403).startswith("Origin: ")
    assert error_of(asker.post({"file": "1", "text": "a"}, Origin="null"), 403)
    assert asker.post({"file": "1", "text": "a"}, Origin=f"http://127.0.0.1:{asker.port}").status == 200


@pytest.mark.parametrize(
    ("header", "host", "own"),
    [
        ("127.0.0.1:80", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("LOCALHOST:1", "127.0.0.1", True),
        ("[::1]:80", "::1", True),
        ("192.168.1.5:80", "0.0.0.0", True),
        ("mill.local:80", "mill.local", True),
        ("mill.local", "127.0.0.1", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("[::1", "127.0.0.1", False),
        ("localhost:x", "127.0.0.1", False),
        ("localhost/evil", "127.0.0.1", False),
    ],
)
def test_own_hosts(header, host, own):
    assert is_own_host(header, host) is own


@pytest.mark.parametrize(
    "sent",
    [b"\r\n\r\n", b"GET\r\n\r\n", b"NOTHING\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01", b"A" * 70000],
)
def test_what_is_no_request(asker, sent, capsys):
    with socket.create_connection(("127.0.0.1", asker.port), timeout=30) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").read()
    assert b"Traceback" not in answer and b"<html" not in answer.lower()
    assert sent.startswith(b"\r") or list(json.loads(answer.rpartition(b"\r\n\r\n")[2])) == ["error"]
    assert capsys.readouterr().err == ""
    assert asker.post({"file": "1", "text": "a"}).status == 200


def test_statistics_are_dropped(asker):
    reply = asker.request("POST", "/api/dropped", b"\x00\x01", {"Content-Type": "application/x-protobuf"})
    assert (reply.status, reply.body) == (200, b"")


def test_fifty_at_once(asker):
    texts = [f"the old mill {number}" for number in range(50)]
    expected = [answer.probabilities for answer in TFLiteRunner(exported())(texts)]
    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(lambda text: asker.post({"file": "1", "text": text}), texts))
    assert [reply.status for reply in replies] == [200] * 50
    assert [dict(reply.json["answer"]["scores"]) for reply in replies] == expected


# === where it listens ===


def test_it_listens_on_this_machine_alone(asker):
    assert asker.server.server_address[0] == "127.0.0.1"
    assert asker.url == f"http://127.0.0.1:{asker.port}/"


@pytest.mark.parametrize(
    ("host", "port"), [("no-such-name.invalid", 0), ("256.0.0.1", 0), ("127.0.0.1", None), ("\ud800", 0)]
)
def test_addresses_that_cannot_be_had(asker, host, port):
    with pytest.raises(InputError, match="cannot listen at "):
        PageServer(host, asker.port if port is None else port, {}, {}, {})


def test_a_model_that_fails(tmp_path, capsys):
    path = tmp_path / "m.tflite"
    path.write_bytes(exported().read_bytes())
    with serving([path]) as asker:
        path.unlink()
        assert "FileNotFoundError" in error_of(asker.request("GET", "/models/1.tflite"), 500)
        assert asker.post({"file": "1", "text": "a"}).status == 200  # what is open stays so
    assert "Traceback" in capsys.readouterr().err


def test_the_same_file_twice():
    with pytest.raises(InputError, match="is given twice"):
        open_models([exported(), exported()])
