"""A web server on this machine that behaves as a test wants, and keeps a record of what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

DATA = bytes(range(256)) * 4000
"""What a file holds: 1,024,000 bytes."""


@dataclass
class Web:
    """What the server has, and how it behaves.

    Attributes:
        files: bytes by path, such as ``/logs/h.xplane.pb``.
        etag, modified: headers of every file; empty for none.
        cuts: connections that are closed after so many bytes of the body, one after the other.
        announced: what HEAD says of the size, by path, where it lies; -1 says nothing.
        chunked: bodies come without a length.
        status: answer to everything, where not 0.
        redirect: where everything leads to.
        login: value of the Authorization header that is wanted.
        asked: method and path of every request so far.
        drips: bodies come a byte at a time, and never end; or where `is_silent`, no answer comes at all.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    etag: str = ""
    modified: str = "Tue, 14 Nov 2023 22:13:20 GMT"
    cuts: list[int] = field(default_factory=list)
    announced: dict[str, int] = field(default_factory=dict)
    chunked: bool = False
    status: int = 0
    redirect: str = ""
    login: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    holds_after: int = -1
    drips: bool = False
    is_silent: bool = False
    url: str = ""

    def downloads(self) -> list[str]:
        """The paths of all requests for the bytes of a profile."""
        return [path for method, path in self.asked if method == "GET" and "xplane.pb" in path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def answer(self, with_body: bool) -> None:
        web = self.web
        path = unquote(urlsplit(self.path).path)
        web.asked.append((self.command, self.path))
        if web.is_silent:
            web.hold.wait(30)
        if web.redirect and not web.redirect.endswith(path):
            self.reply(302, {"Location": web.redirect})
        elif web.login and self.headers.get("Authorization") != web.login:
            self.reply(401)
        elif web.status:
            self.reply(web.status)
        elif path in web.files:
            self.send(path, web.files[path], with_body)
        else:
            self.reply(404)

    def reply(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send(self, path: str, data: bytes, with_body: bool) -> None:
        web = self.web
        self.send_response(200)
        announced = web.announced.get(path, len(data)) if not with_body else len(data)
        if web.chunked and with_body:
            self.send_header("Connection", "close")
            self.close_connection = True
        elif announced >= 0:
            self.send_header("Content-Length", str(announced))
        told = {"ETag": web.etag, "Last-Modified": web.modified, **web.headers}
        for name, value in told.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.body(data)

    def body(self, data: bytes) -> None:
        web = self.web
        cut = web.cuts.pop(0) if web.cuts else -1
        if cut >= 0:
            self.wfile.write(data[:cut])
            self.close_connection = True
        elif web.drips:
            while not web.hold.wait(0.01):
                self.wfile.write(b"<")
                self.wfile.flush()
        elif web.holds_after >= 0:
            self.wfile.write(data[: web.holds_after])
            self.wfile.flush()
            web.hold.wait(30)
            self.wfile.write(data[web.holds_after :])
        else:
            self.wfile.write(data)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:  # the client has had enough
            self.close_connection = True


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    """Serves on a free port of this machine; `web.url` is the address, without a slash at its end."""
    handler = type("Handler", (_Handler,), {"web": web})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        web.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
