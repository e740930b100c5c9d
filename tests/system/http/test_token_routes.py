"""Tokens over HTTP: made, listed and revoked by callers whose own token has the role admin."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError
from secateur.server import HttpServer

PATH = "/api/v1/tokens"


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=1, runtime="embedded", member_silence_s=10.0) as running, running.connect() as conn:
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 4")
        conn.execute("INSERT INTO t VALUES (1, 2)")
        conn.execute("CREATE ROLE reader")
        conn.execute("GRANT SELECT ON t TO reader")
        yield running


@pytest.fixture(scope="module")
def own_server(own: Cluster) -> Iterator[HttpServer]:
    with HttpServer(own.address, own.token) as server:
        yield server


def bearer(server: HttpServer, token: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


@pytest.fixture(scope="module")
def admin(own: Cluster, own_server: HttpServer) -> Iterator[httpx.Client]:
    with bearer(own_server, own.tokens.create("admin").token) as client:
        yield client


def test_a_token_is_made_used_listed_and_revoked(own: Cluster, own_server: HttpServer, admin: httpx.Client) -> None:
    body = {"role": ["reader"], "name": "shop", "principal": "bob", "claims": {"tenant": "C2"}, "expires_s": 3600}
    made = admin.post(PATH, json=body)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    new = made.json()
    with bearer(own_server, new["token"]) as http:
        asked = {"sql": "SELECT v, session('tenant') FROM t"}
        assert http.post("/api/v1/statements", json=asked).json()["rows"] == [[2, "C2"]]
        assert http.get(PATH).status_code == 403
    (listed,) = [one for one in admin.get(PATH).json()["items"] if one["id"] == new["id"]]
    assert listed.pop("created") < listed.pop("expires")
    assert listed.pop("revoked") is None
    expected = {"id": new["id"], "name": "shop", "principal": "bob", "role": "reader", "claims": {"tenant": "C2"}}
    assert listed == expected
    assert new["token"] not in admin.get(PATH).text
    gone = admin.delete(f"{PATH}/{new['id']}")
    assert (gone.status_code, gone.json()) == (200, {"id": new["id"]})
    with pytest.raises(AuthenticationError, match="wrong or was revoked"):
        secateur.connect(own.address, new["token"])
    again = admin.delete(f"{PATH}/{new['id']}")
    assert (again.status_code, again.json()["status"]) == (404, 404)


@pytest.mark.parametrize("role", ["read", "write", "reader", "read on t"])
def test_other_roles_do_nothing_with_tokens(own: Cluster, own_server: HttpServer, role: str) -> None:
    kept = own.tokens.create(role)
    with bearer(own_server, kept.token) as http:
        for answer in (http.get(PATH), http.post(PATH, json={"role": "read"}), http.delete(f"{PATH}/{kept.id}")):
            assert (answer.status_code, answer.json()["error"]) == (403, "AuthenticationError")
    assert kept.id in {token.id for token in own.tokens.list()}


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"role": "code"}, 403, "made by a token with that role or a higher one"),
        ({"role": "owner"}, 400, "it is one of"),
        ({"role": ["read"]}, 400, "stands alone"),
        ({"role": "read on nothing"}, 400, "does not exist"),
        ({"role": []}, 422, "role"),
        ({"role": ""}, 422, "role"),
        ({}, 422, "role"),
        ({"role": "read", "expires_s": 0}, 422, "expires_s"),
        ({"role": "read", "expires_s": 1e300}, 400, "in more than a century"),
        ({"role": "read", "claims": {"tenant": ["C1"]}}, 422, "claims.tenant"),
        ({"role": "read", "claims": {"tenant": "x" * 2000}}, 422, "at most 32 claims"),
        ({"role": "read", "expires": 5}, 422, "expires"),
    ],
)
def test_a_wrong_request_makes_nothing_and_says_why(
    own: Cluster, admin: httpx.Client, body: dict[str, object], status: int, why: str
) -> None:
    before = own.tokens.list()
    answer = admin.post(PATH, json=body)
    assert (answer.status_code, why in answer.json()["detail"]) == (status, True), answer.text
    assert own.tokens.list() == before


@pytest.mark.parametrize("field", ['"name": "\\ud800"', '"principal": "\\ud800"', '"claims": {"\\ud800": "x"}'])
def test_half_a_character_is_refused(admin: httpx.Client, field: str) -> None:
    body = f'{{"role": "read", {field}}}'.encode()
    answer = admin.post(PATH, content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
