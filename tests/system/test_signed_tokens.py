"""JWTs of an issuer of one's own, at every door of a cluster: what they open, and what becomes of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from eventually import eventually
from issuers import AUDIENCE, ISSUER, Issuer, write_keys
from raw_frames import RawConnection
from typer.testing import CliRunner

import secateur
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError, PolicyError, ProgrammingError
from secateur.protocol import CONTROLLER_OPERATIONS, MEMBER_OPERATIONS, Operation, Role, TokenRole
from secateur.server import HttpServer

OWN = Issuer("RS256", "first")
TABLE = (
    "CREATE TABLE orders (tenant VARCHAR, id BIGINT, v BIGINT, PRIMARY KEY (tenant, id)) PARTITION BY HASH (tenant)"
    " PARTITIONS 8"
)
ALL, ONE = "SELECT tenant, id FROM orders ORDER BY ALL", "SELECT v FROM orders WHERE tenant = 'C2' AND id = 1"

Connect = Callable[..., secateur.Connection]


def jwt_of(keys: Path, **more: Any) -> secateur.Jwt:
    return secateur.Jwt(
        keys=keys, issuer=ISSUER, audience=AUDIENCE, **{"claims": {"tenant": "tenant_id"}, "leeway_s": 0} | more
    )


def fill(conn: secateur.Connection) -> None:
    conn.execute(TABLE)
    conn.execute("INSERT INTO orders VALUES ('C1', 1, 10), ('C1', 2, 20), ('C2', 1, 30)")
    conn.execute("CREATE ROLE reader")
    conn.execute("GRANT SELECT ON orders TO reader")
    conn.execute("CREATE ROLE clerk")
    conn.execute("GRANT SELECT, INSERT ON orders TO clerk")
    conn.execute("CREATE POLICY own_rows ON orders USING (tenant = session('tenant'))")
    conn.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_keys(tmp_path_factory.mktemp("issuer") / "jwks.json", OWN)


@pytest.fixture(scope="module")
def own(keys: Path) -> Iterator[Cluster]:
    with (
        secateur.start(members=2, runtime="embedded", member_silence_s=10.0, jwt=jwt_of(keys)) as running,
        running.connect() as conn,
    ):
        fill(conn)
        yield running


@pytest.fixture
def bearer(own: Cluster) -> Iterator[Connect]:
    """Connects with a JWT of some claims."""
    with ExitStack() as stack:
        yield lambda **claims: stack.enter_context(secateur.connect(own.address, OWN.token(**claims)))


@pytest.mark.smoke
def test_a_bearer_has_the_roles_and_claims_that_its_issuer_says(bearer: Connect) -> None:
    for tenant, rows in {"C1": [("C1", 1), ("C1", 2)], "C2": [("C2", 1)], "C3": []}.items():
        conn = bearer(roles=["Reader"], tenant_id=tenant)
        assert conn.execute(ALL).fetchall() == rows
        assert conn.execute(ONE).fetchall() == ([(30,)] if tenant == "C2" else [])
        with pytest.raises(AuthenticationError, match="insert on orders"):
            conn.execute(f"INSERT INTO orders VALUES ('{tenant}', 9, 9)")
    conn = bearer(roles=["reader", "clerk"], tenant_id="C4")
    with pytest.raises(PolicyError, match="own_rows"):
        conn.execute("INSERT INTO orders VALUES ('C1', 9, 9)")
    conn.execute("INSERT INTO orders VALUES ('C4', 1, 40)")
    assert conn.execute(ALL).fetchall() == [("C4", 1)]


def test_without_a_claim_there_are_no_rows(bearer: Connect) -> None:
    assert bearer(roles=["reader"]).execute(ALL).fetchall() == []


@pytest.mark.parametrize("roles", [None, [], ["none"], ["admin", "code", "write", "read"], ["public"]])
def test_without_a_role_that_there_is_nothing_is_seen_or_done(bearer: Connect, roles: list[str] | None) -> None:
    conn = bearer(roles=roles, tenant_id="C1")
    for sql in (
        ALL,
        ONE,
        "INSERT INTO orders VALUES ('C1', 9, 9)",
        "UPDATE orders SET v = 0",
        "DELETE FROM orders",
        "CREATE TABLE x (id BIGINT PRIMARY KEY)",
        "GRANT SELECT ON orders TO reader",
        "DROP POLICY own_rows ON orders",
        "SET GLOBAL pruning = off",
        "SELECT * FROM secateur.tables",
        "SELECT * FROM secateur.tokens",
        "SHOW TABLES",
    ):
        with pytest.raises(AuthenticationError):
            conn.execute(sql)
    with pytest.raises(AuthenticationError):
        conn.table("orders").get({"tenant": "C1", "id": 1})
    with pytest.raises(AuthenticationError):
        conn.tokens.create("read")
    with pytest.raises(AuthenticationError):
        conn.submit(secateur.Pipeline().read_table("orders").write_to(secateur.connectors.collect())).result()


def test_roles_beside_unknown_ones_count(bearer: Connect) -> None:
    assert bearer(roles=["none", "reader", "admin"], tenant_id="C2").execute(ALL).fetchall() == [("C2", 1)]


def test_every_request_of_a_higher_role_is_refused_where_it_is_served(own: Cluster) -> None:
    """Past every client of ours, at the controller and at a member."""
    token = OWN.token(roles=["admin", "code"])
    for address, served in ((own.address, CONTROLLER_OPERATIONS), (own.members()[0].address, MEMBER_OPERATIONS)):
        for operation in Operation:
            if (
                Role.CLIENT not in operation.callers
                or operation.code not in served
                or operation.role <= TokenRole.WRITE
            ):
                continue
            with (
                RawConnection(own, address, token=token) as connection,
                pytest.raises(AuthenticationError, match="needs a token with the role"),
            ):
                connection.ask(operation, b"\x80")


def test_forged_foreign_and_old_tokens_open_no_door(own: Cluster) -> None:
    forged = Issuer("RS256", "first")
    for token, why in {
        forged.token(roles=["reader"]): "Signature verification failed",
        OWN.token(iss="https://other"): "Invalid issuer",
        OWN.token(aud="other"): "Audience",
        OWN.token(exp=time.time() - 1): "has expired",
    }.items():
        for address in (own.address, *(member.address for member in own.members())):
            with pytest.raises(AuthenticationError, match=why):
                RawConnection(own, address, token=token)


def test_a_connection_ends_with_its_token_and_no_other_is_opened(own: Cluster) -> None:
    token = OWN.token(roles=["reader"], tenant_id="C2", exp=int(time.time()) + 3)
    with secateur.connect(own.address, token) as conn:
        assert conn.execute(ONE).fetchall() == [(30,)]

        def refusal() -> str:
            try:
                conn.execute(ONE).fetchall()
            except AuthenticationError as error:
                return error.message
            return ""

        eventually(lambda: "has expired" in refusal())
    for address in (own.address, *(member.address for member in own.members())):
        with pytest.raises(AuthenticationError, match="has expired"):
            RawConnection(own, address, token=token)


def test_an_open_connection_obeys_what_roles_are_granted_since(own: Cluster, bearer: Connect) -> None:
    with own.connect() as admin:
        admin.execute("CREATE ROLE later")
        conn = bearer(roles=["later"], tenant_id="C2")
        with pytest.raises(AuthenticationError):
            conn.execute(ALL)
        admin.execute("GRANT SELECT ON orders TO later")
        assert conn.execute(ALL).fetchall() == [("C2", 1)]
        admin.execute("DROP ROLE later")
        with pytest.raises(AuthenticationError):
            conn.execute(ALL)


def refusals(own: Cluster, token: str) -> list[str]:
    """Why each process refuses a token; empty for one that lets it in."""
    found = []
    for address in (own.address, *(member.address for member in own.members())):
        try:
            RawConnection(own, address, token=token).__exit__()
        except AuthenticationError as error:
            found.append(error.message)
        else:
            found.append("")
    return found


def test_a_token_is_revoked_alone_and_its_connections_end(own: Cluster, bearer: Connect) -> None:
    claims = {"roles": ["reader"], "tenant_id": "C2"}
    numbered, plain, other = OWN.token(jti="n1", **claims), OWN.token(iat=1, **claims), OWN.token(jti="n2", **claims)
    stays = secateur.connect(own.address, other)
    for number, token in enumerate((numbered, plain)):
        conn = secateur.connect(own.address, token)
        assert conn.execute(ONE).fetchall() == [(30,)]
        gone = own.tokens.revoke(token)
        assert (gone.principal, gone.digest) == ("ada", b"")
        with pytest.raises(AuthenticationError, match="was revoked"):
            conn.execute(ONE)
        assert all("wrong or was revoked" in refusal for refusal in refusals(own, token))
        with pytest.raises(ProgrammingError, match="there is no token"):
            own.tokens.revoke(token)
        listed = [one for one in own.tokens.list() if one.is_signed]
        assert len(listed) == number + 1
        assert listed[-1].revoked is not None
        assert abs(listed[-1].revoked - time.time()) < 60
        assert token not in repr(listed)
    again = OWN.token(jti="n1", iat=2, **claims)
    assert all("wrong or was revoked" in refusal for refusal in refusals(own, again)), "its number is what counts"
    assert refusals(own, other) == [""] * 3
    assert stays.execute(ONE).fetchall() == [(30,)]
    stays.close()
    with own.connect() as admin:
        sql = "SELECT id, principal, roles, claims['tenant'], created, revoked < expires FROM secateur.tokens"
        found = admin.execute(f"{sql} WHERE revoked IS NOT NULL ORDER BY revoked").fetchall()
    assert found == [
        ("jwt:n1", "ada", ["reader"], "C2", None, True),
        (listed[-1].id, "ada", ["reader"], "C2", None, True),
    ]


def test_what_is_no_valid_token_is_not_revoked(own: Cluster, bearer: Connect) -> None:
    before = own.tokens.list()
    for given, why in {
        OWN.token(exp=time.time() - 1): "nothing to revoke: .*has expired",
        Issuer("RS256", "first").token(): "nothing to revoke: .*Signature verification failed",
        "jwt:n2": "there is no token 'jwt:n2'",
    }.items():
        with pytest.raises(ProgrammingError, match=why):
            own.tokens.revoke(given)
    with pytest.raises(AuthenticationError, match="role 'admin'"):
        bearer(roles=["reader", "clerk"]).tokens.revoke(OWN.token(jti="n3"))
    assert own.tokens.list() == before


def test_a_token_that_was_made_here_is_revoked_by_itself_as_well(own: Cluster) -> None:
    made = own.tokens.create("read")
    assert own.tokens.revoke(made.token).id == made.id
    assert all("wrong or was revoked" in refusal for refusal in refusals(own, made.token))


def test_revoked_tokens_outlive_controllers_and_cold_starts_and_are_forgotten_with_their_end(
    keys: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "members": 2,
        "runtime": "embedded",
        "member_silence_s": 3.0,
        "jwt": jwt_of(keys),
        "token": "secret",
        "data_directory": tmp_path,
    }
    kept, other = OWN.token(jti="kept", exp=time.time() + 600), OWN.token(exp=time.time() + 600)
    with secateur.start(**settings) as own:
        own.tokens.revoke(kept)
        own.tokens.revoke(OWN.token(jti="short", exp=int(time.time()) + 3))
        own.kill_controller()
        own.scale(3)
        assert all("wrong or was revoked" in refusal for refusal in refusals(own, kept))
        assert refusals(own, other) == [""] * 4
        eventually(lambda: [token.id for token in own.tokens.list()] == ["jwt:kept"])
    with secateur.start(**settings | {"members": 3}) as own:
        assert all("wrong or was revoked" in refusal for refusal in refusals(own, kept))
        assert [token.id for token in own.tokens.list()] == ["jwt:kept"]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert kept.encode() not in written


def test_keys_are_rotated_while_the_cluster_runs(tmp_path: Path) -> None:
    old, new = Issuer("ES256", "2026"), Issuer("ES256", "2027")
    path = write_keys(tmp_path / "jwks.json", old)
    with secateur.start(members=1, runtime="embedded", jwt=jwt_of(path)) as own, own.connect() as admin:
        fill(admin)
        said = {"roles": ["reader"], "tenant_id": "C2"}
        with secateur.connect(own.address, old.token(**said)) as before:
            assert before.execute(ALL).fetchall() == [("C2", 1)]
            with pytest.raises(AuthenticationError, match="no key of the issuer"):
                secateur.connect(own.address, new.token(**said))
            write_keys(path, old, new)
            for issuer in (old, new):
                with secateur.connect(own.address, issuer.token(**said)) as conn:
                    assert conn.execute(ALL).fetchall() == [("C2", 1)]
            write_keys(path, new)
            with pytest.raises(AuthenticationError, match="no key of the issuer"):
                secateur.connect(own.address, old.token(**said))
            assert before.execute(ALL).fetchall() == [("C2", 1)], "it is open until its token ends"


def test_clusters_of_one_process_do_not_mix(own: Cluster, tmp_path: Path) -> None:
    other = Issuer("RS256", "first")
    settings = jwt_of(write_keys(tmp_path / "jwks.json", other))
    with (
        secateur.start(members=1, runtime="embedded", jwt=settings) as second,
        secateur.start(members=1, runtime="embedded") as third,
    ):
        secateur.connect(second.address, other.token()).close()
        with pytest.raises(AuthenticationError, match="Signature"):
            secateur.connect(second.address, OWN.token())
        with pytest.raises(AuthenticationError, match="Signature"):
            secateur.connect(own.address, other.token())
        for issuer in (OWN, other):
            with pytest.raises(AuthenticationError, match="wrong or was revoked"):
                secateur.connect(third.address, issuer.token())


def test_controllers_and_members_that_come_later_know_the_keys(keys: Path) -> None:
    with secateur.start(members=2, runtime="embedded", member_silence_s=3.0, jwt=jwt_of(keys)) as own:
        with own.connect() as admin:
            fill(admin)
        token = OWN.token(roles=["reader"], tenant_id="C2")
        own.kill_controller()
        own.scale(3)
        with secateur.connect(own.address, token) as conn:
            assert conn.execute(ALL).fetchall() == [("C2", 1)]
        for member in own.members():
            RawConnection(own, member.address, token=token).__exit__()


def test_a_setting_that_cannot_hold_is_refused_at_the_start(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="lets everybody in, so a JWT would keep nobody out"):
        secateur.start(members=1, runtime="embedded", token="", jwt=jwt_of(keys))
    with pytest.raises(ProgrammingError, match=r"the keys '.*none' of jwt= cannot be used"):
        secateur.start(members=1, runtime="embedded", jwt=jwt_of(tmp_path / "none"))


def test_settings_show_whom_a_cluster_trusts(own: Cluster) -> None:
    with own.connect() as conn:
        ((value,),) = conn.execute("SELECT value FROM secateur.settings WHERE name = 'jwt'").fetchall()
    assert ISSUER in value


@pytest.fixture(scope="module")
def server(own: Cluster) -> Iterator[HttpServer]:
    with HttpServer(own.address, own.token) as running:
        yield running


def over_http(server: HttpServer, token: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def test_http_passes_a_token_on(server: HttpServer) -> None:
    with over_http(server, OWN.token(roles=["reader"], tenant_id="C2")) as http:
        answer = http.post("/api/v1/statements", json={"sql": ALL})
        assert (answer.status_code, answer.json()["rows"]) == (200, [["C2", 1]])
        for path in ("/metrics", "/members", "/api/v1/tokens", "/api/v1/jobs"):
            assert http.get(path).status_code == 403, path
        refused = http.post("/api/v1/statements", json={"sql": "DELETE FROM orders"})
        assert (refused.status_code, refused.json()["error"]) == (403, "AuthenticationError")
    with over_http(server, OWN.token(tenant_id="C2")) as http:
        assert http.post("/api/v1/statements", json={"sql": ALL}).status_code == 403
    for token in (Issuer("RS256", "first").token(), OWN.token(exp=time.time() - 1), OWN.token(aud="other")):
        with over_http(server, token) as http:
            assert http.post("/api/v1/statements", json={"sql": ALL}).status_code == 401


def test_http_serves_nothing_of_what_it_keeps_once_a_token_has_ended(server: HttpServer) -> None:
    ends = int(time.time()) + 3
    with over_http(server, OWN.token(roles=["reader"], tenant_id="C2", exp=ends)) as http:
        made = http.post("/api/v1/statements", json={"sql": ALL})
        assert made.status_code == 200
        place = f"{made.headers['Location']}/result"

        def status() -> int:
            began = time.time()
            found = http.get(place).status_code
            # Within two seconds the server takes a token as it was, and here it may not.
            assert found == 401 or began <= ends + 0.1
            return found

        assert status() == 200
        eventually(lambda: status() == 401)
        assert http.post("/api/v1/statements", json={"sql": ALL}).status_code == 401


def test_http_and_the_command_revoke_a_token(own: Cluster, server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (OWN.token(roles=["reader"], tenant_id="C2", jti=f"http {n}", filler="x" * 5000) for n in range(2))
    monkeypatch.setenv("SECATEUR_ADDRESS", own.address)
    monkeypatch.setenv("SECATEUR_TOKEN", own.token or "")
    with over_http(server, first) as one, over_http(server, second) as two, over_http(server, own.token or "") as admin:
        for http in (one, two):
            assert http.post("/api/v1/statements", json={"sql": ALL}).status_code == 200
        assert one.delete(f"/api/v1/tokens/{second}").status_code == 403
        assert admin.delete(f"/api/v1/tokens/{first}").json() == {"id": "jwt:http 0"}
        assert admin.delete(f"/api/v1/tokens/{first}").status_code == 404
        done = CliRunner().invoke(app, ["token", "revoke", second])
        assert (done.exit_code, "token jwt:http 1 is not valid any more" in done.output) == (0, True), done.output
        for http in (one, two):
            eventually(lambda http=http: http.post("/api/v1/statements", json={"sql": ALL}).status_code == 401)
        listed = admin.get("/api/v1/tokens").json()["items"]
        assert [(one["created"], one["revoked"] is None) for one in listed if one["id"].startswith("jwt:http")] == [
            (None, False)
        ] * 2
    shown = CliRunner().invoke(app, ["token", "list", "--json"])
    assert [one["id"] for one in json.loads(shown.stdout) if one["revoked"]][-2:] == ["jwt:http 0", "jwt:http 1"]


def test_http_serves_nothing_to_a_token_with_an_end_that_was_made_here(own: Cluster, server: HttpServer) -> None:
    made = own.tokens.create("read", expires=2)
    with over_http(server, made.token) as http:
        assert http.get("/api/v1/settings").status_code == 200
        eventually(lambda: http.get("/api/v1/settings").status_code == 401)


def test_the_command_starts_a_cluster_that_takes_them(
    keys: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its members are in a process of their own."""
    monkeypatch.setenv("SECATEUR_HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("SECATEUR_ADDRESS", "SECATEUR_TOKEN", "SECATEUR_TLS_CA"):
        monkeypatch.delenv(name, raising=False)
    runner = CliRunner()
    trusted = ["--jwt-keys", str(keys), "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE]
    options = [*trusted, "--jwt-claim", "tenant=tenant_id", "--jwt-claim", "region", "--jwt-roles-claim", "groups"]
    started = runner.invoke(app, ["start", "--runtime", "embedded", "--members", "1", *options])
    assert started.exit_code == 0, started.output
    try:
        with secateur.connect(started.stdout.split()[4], OWN.token(groups=["reader"], tenant_id="C2")) as conn:
            with pytest.raises(AuthenticationError):
                conn.execute("SELECT 1 FROM orders")
            for sql in (TABLE, "INSERT INTO orders VALUES ('C1', 1, 1), ('C2', 1, 2)", "CREATE ROLE reader"):
                assert runner.invoke(app, ["sql", "-c", sql]).exit_code == 0
            policy = "CREATE POLICY p ON orders USING (tenant = session('tenant'))"
            secured = "ALTER TABLE orders ENABLE ROW LEVEL SECURITY"
            for sql in ("GRANT SELECT ON orders TO reader", policy, secured):
                assert runner.invoke(app, ["sql", "-c", sql]).exit_code == 0
            assert conn.execute(ALL).fetchall() == [("C2", 1)]
    finally:
        assert runner.invoke(app, ["stop"]).exit_code == 0


@pytest.mark.parametrize(
    "options", [["--jwt-keys", "KEYS"], ["--jwt-keys", "KEYS", "--jwt-issuer", "x"], ["--jwt-issuer", "x"]]
)
def test_the_command_wants_to_know_whom_to_trust(keys: Path, options: list[str]) -> None:
    given = [str(keys) if option == "KEYS" else option for option in options]
    assert CliRunner().invoke(app, ["start", "--runtime", "embedded", *given]).exit_code == 2


@pytest.mark.ray
@pytest.mark.slow
def test_members_on_ray_take_them(keys: Path) -> None:
    with secateur.start(members=2, jwt=jwt_of(keys)) as own, own.connect() as admin:
        fill(admin)
        with secateur.connect(own.address, OWN.token(roles=["reader"], tenant_id="C2")) as conn:
            assert conn.execute(ALL).fetchall() == [("C2", 1)]
        with pytest.raises(AuthenticationError, match="Signature"):
            secateur.connect(own.address, Issuer("RS256", "first").token())
