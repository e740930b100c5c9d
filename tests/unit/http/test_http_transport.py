"""The connections of a client of the HTTP server."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from secateur.http import HttpTransport


class Port(BaseHTTPRequestHandler):
    """Answers with the port from which the client has connected."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        said = str(self.client_address[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_forked_process_has_connections_of_its_own(url: str) -> None:
    transport = HttpTransport(url, "", None, connect_timeout_s=10, silence_s=10)
    port = transport.read("GET", "/", int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads
        child = os.fork()
    if not child:
        code = 2
        try:
            found = {transport.read("GET", "/", int) for _ in range(2)}
            code = int(len(found) != 1 or port in found)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert transport.read("GET", "/", int) == port, "the parent goes on with its own"
    transport.close()
