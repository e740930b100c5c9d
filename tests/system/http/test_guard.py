"""Who is let in over HTTP, under which names, and with what."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import socket
import time

import httpx
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError, InterfaceError, NotSupportedError, UnreachableError
from secateur.server import HttpServer, ServerLimits

PATHS = ["/api/v1/members", "/openapi.json", "/docs", "/no/such/path", "/api/v1/statements"]


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"any:{password}".encode()).decode()}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer"}, basic("wrong"), {"Authorization": "Basic ?"}],
)
def test_nothing_is_told_without_the_token(server: HttpServer, path: str, headers: dict[str, str]) -> None:
    answer = httpx.get(server.url + path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"


def test_health_needs_no_token(server: HttpServer) -> None:
    answer = httpx.get(server.url + "/healthz", headers={"Host": "probe.example"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "cluster": "reachable"})


def test_browsers_may_read_with_basic(cluster: Cluster, server: HttpServer) -> None:
    assert httpx.get(server.url + "/docs", headers=basic(cluster.token or "")).status_code == 200


@pytest.mark.parametrize(
    ("origin", "site", "expected"),
    [
        pytest.param("{url}", "same-origin", 200, id="a page of this server"),
        pytest.param("{url}", None, 200, id="a browser that says no site"),
        pytest.param(None, None, 401, id="no page"),
        pytest.param("https://evil.example", "cross-site", 403, id="another site"),
        pytest.param("https://evil.example", None, 403, id="another site, which is not said"),
        pytest.param("http://127.0.0.1:1", "same-site", 403, id="another port"),
        pytest.param("{url}", "same-site", 403, id="another origin in a forged header"),
        pytest.param("{url}.evil.example", "same-origin", 403, id="a longer name"),
        pytest.param("null", "cross-site", 403, id="a page without an origin"),
    ],
)
def test_browsers_write_with_basic_from_pages_of_this_server(
    cluster: Cluster, server: HttpServer, origin: str | None, site: str | None, expected: int
) -> None:
    said = {"Origin": origin and origin.format(url=server.url), "Sec-Fetch-Site": site}
    headers = basic(cluster.token or "") | {name: value for name, value in said.items() if value}
    body = {"sql": "SELECT 1"}
    assert httpx.post(server.url + "/api/v1/statements", json=body, headers=headers).status_code == expected
    gone = httpx.delete(server.url + "/api/v1/statements/none", headers=headers)
    assert gone.status_code == (404 if expected == 200 else expected)
    with_token = {**headers, "Authorization": f"Bearer {cluster.token}"}
    answer = httpx.post(server.url + "/api/v1/statements", json=body, headers=with_token)
    assert answer.status_code == (403 if expected == 403 else 200)


def test_a_browser_is_asked_for_a_password_in_a_header_of_its_own(server: HttpServer) -> None:
    answer = httpx.get(server.url + "/")
    assert answer.headers.get_list("www-authenticate") == ['Bearer realm="secateur"', 'Basic realm="secateur"']


def test_a_page_runs_no_script_but_its_own(http: httpx.Client) -> None:
    page = http.get("/")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for name, kind in (
        ("dashboard.js", "text/javascript"),
        ("dashboard.css", "text/css"),
        ("icon.svg", "image/svg+xml"),
    ):
        assert f"/static/{name}" in page.text
        assert http.get(f"/static/{name}").headers["content-type"].startswith(kind)
    assert http.get("/static/../guard.py").status_code == http.get("/static/none.js").status_code == 404
    assert "<script>" not in page.text
    assert " style=" not in page.text
    again = http.get("/tables", headers={"If-None-Match": http.get("/tables").headers["etag"]})
    assert again.status_code in (200, 304)  # the numbers at its top may have changed


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
def test_another_name_is_refused(http: httpx.Client, host: str) -> None:
    assert http.get("/api/v1/members", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]", socket.gethostname()]
)
def test_its_own_names_are_not(http: httpx.Client, host: str) -> None:
    assert http.get("/api/v1/settings", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_of_another_site_is_refused(http: httpx.Client, kind: str) -> None:
    answer = http.post("/api/v1/statements", content=b'{"sql": "SELECT 1"}', headers={"Content-Type": kind})
    assert answer.status_code == 415


def test_no_other_site_is_allowed_to_ask(http: httpx.Client) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = http.options("/api/v1/statements", headers=asked)
    assert answer.status_code == 405
    read = http.get("/api/v1/settings", headers={"Origin": "https://evil.example"})
    for found in (answer, read):
        assert not [name for name in found.headers if name.startswith("access-control")]
    assert read.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in read.headers["content-security-policy"]


def test_a_body_has_a_bound(http: httpx.Client) -> None:
    large = b'{"sql": "' + b" " * (9 << 20) + b'"}'
    headers = {"Content-Type": "application/json"}
    assert http.post("/api/v1/statements", content=large, headers=headers).status_code == 413
    in_parts = http.post("/api/v1/statements", content=iter([large[:100], large[100:]]), headers=headers)
    assert in_parts.status_code == 413


def test_a_wrong_token_is_found_at_the_start(cluster: Cluster) -> None:
    with pytest.raises(AuthenticationError):
        HttpServer(cluster.address, "wrong")


def test_no_cluster_is_found_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(UnreachableError):
        HttpServer(f"secateur://127.0.0.1:{port}", "x", port=0)


def test_a_taken_port_is_named(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InterfaceError, match=str(port)):
            HttpServer(cluster.address, port=port)


def test_without_a_token_it_stays_on_this_machine() -> None:
    with secateur.start(members=1, runtime="embedded", token="") as cluster:
        for host in ("0.0.0.0", "::", "192.0.2.1"):
            with pytest.raises(NotSupportedError, match="without a token"):
                HttpServer(cluster.address, host=host)
        with HttpServer(cluster.address) as server:
            assert httpx.get(server.url + "/api/v1/members").status_code == 200


def test_health_says_when_the_cluster_is_gone() -> None:
    with secateur.start(members=1, runtime="embedded") as cluster:
        server = HttpServer(cluster.address).start()
    try:
        answer = httpx.get(server.url + "/healthz", timeout=60)
        assert (answer.status_code, answer.json()["cluster"]) == (503, "unreachable")
    finally:
        server.stop()


def test_an_answer_is_sent_at_once(http: httpx.Client) -> None:
    """Without TCP_NODELAY, the end of every answer waits 40 ms for the acknowledgement of its beginning."""

    def elapsed_s() -> float:
        begun_s = time.perf_counter()
        http.get("/healthz")
        return time.perf_counter() - begun_s

    assert min(elapsed_s() for _ in range(30)) < 0.03


def _ends_after_s(opened: socket.socket) -> float:
    begun_s = time.perf_counter()
    opened.settimeout(60)
    with contextlib.suppress(ConnectionResetError):
        while opened.recv(65_536):
            pass
    return time.perf_counter() - begun_s


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


def test_a_connection_that_does_not_ask_ends(cluster: Cluster) -> None:
    with HttpServer(cluster.address, limits=ServerLimits(request_s_max=0.3)) as server:
        place = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        for before, sent in ((b"", b""), (b"", HEALTH + b"X-Slow: "), (HEALTH + b"\r\n", HEALTH)):
            with socket.create_connection(place) as opened:
                if before:
                    opened.sendall(before)
                    assert opened.recv(65_536).startswith(b"HTTP/1.1 200 ")
                opened.sendall(sent)
                assert _ends_after_s(opened) < 25  # uvicorn's own bound between two requests is 30
        body = (
            "POST /api/v1/statements HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {cluster.token}\r\nContent-Length: 100\r\n\r\n{{"
        )
        with socket.create_connection(place) as opened:
            opened.sendall(body.encode())
            opened.settimeout(60)
            assert opened.recv(65_536).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", marks=pytest.mark.slow, id="nothing"),
        pytest.param(HEALTH + b"X-Slow: ", id="half"),
        pytest.param(HEALTH + b"\r\n", marks=pytest.mark.slow, id="idle"),
    ],
)
def test_connections_that_ask_for_nothing_keep_nobody_out(cluster: Cluster, sent: bytes) -> None:
    """Strangers need no token to open them. One whose request is under way stays, however old it is."""
    with HttpServer(cluster.address) as server, contextlib.ExitStack() as stack:
        place = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 4"
        body = json.dumps({"sql": endless, "wait": 2}).encode()
        asking = stack.enter_context(socket.create_connection(place))
        head = (
            "POST /api/v1/statements HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {cluster.token}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        asking.sendall(head.encode() + body)
        for number in range(600):
            opened = stack.enter_context(socket.create_connection(place))
            opened.sendall(sent)
            if number % 50 == 0:  # the server gets to accept them
                assert httpx.get(server.url + "/healthz").status_code == 200
        for _ in range(5):
            assert httpx.get(server.url + "/healthz").status_code == 200
        asking.settimeout(60)
        answer = asking.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 202 ")
        place_of_statement = re.search(rb"(?i)\r\nlocation: (\S+)\r\n", answer)
        assert place_of_statement is not None
        headers = {"Authorization": f"Bearer {cluster.token}"}
        ended = httpx.delete(server.url + place_of_statement[1].decode(), headers=headers, timeout=60)
        assert ended.json()["state"] == "cancelled"
