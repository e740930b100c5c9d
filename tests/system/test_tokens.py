"""Tokens with roles, at every door: what each may do, and what becomes of one that is revoked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from raw_frames import RawConnection
from typer.testing import CliRunner

import secateur
from secateur.cli.app import app
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError, Error, ProgrammingError
from secateur.protocol import MEMBER_OPERATIONS, Hello, Operation, Role, TokenRole, encode

ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "v": pa.array(range(100), pa.int64())})
TABLE = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 8 BACKUPS 1"
ROLE_NAMES = [role.title for role in TokenRole]

Connect = Callable[[str], secateur.Connection]


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as running, running.connect() as conn:
        conn.execute(TABLE)
        conn.table("t").load(ROWS)
        yield running


@pytest.fixture(scope="module")
def bearer(own: Cluster) -> Iterator[Connect]:
    """Connects with a token of a role."""
    with ExitStack() as stack:
        yield lambda role: stack.enter_context(secateur.connect(own.address, own.tokens.create(role).token))


def count(conn: secateur.Connection) -> Any:
    return conn.execute("SELECT count(*) FROM t").fetchall()


STATEMENTS = {
    "SELECT v FROM t WHERE id = 3": "read",
    "SELECT v FROM t WHERE id IN (1, 2, 3, 4, 5)": "read",
    "EXPLAIN ANALYZE SELECT sum(v) FROM t": "read",
    "SELECT count(*) FROM secateur.members": "read",
    "SET pruning = off": "read",
    "SHOW TABLES": "read",
    "INSERT OR REPLACE INTO t VALUES (1, 1)": "write",
    "INSERT OR REPLACE INTO t SELECT id, v FROM t": "write",
    "UPDATE t SET v = v WHERE id = 1": "write",
    "UPDATE t SET v = v": "write",
    "EXPLAIN ANALYZE UPDATE t SET v = v WHERE id = 1": "write",
    "DELETE FROM t WHERE id = -1": "write",
    "DELETE FROM t WHERE id < -1": "write",
    "MERGE INTO t USING (SELECT 1::BIGINT AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v": "write",
    "CREATE TABLE IF NOT EXISTS t (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2": "admin",
    "CREATE OR REPLACE VIEW w AS SELECT id FROM t": "admin",
    "DROP VIEW IF EXISTS none": "admin",
    "CREATE INDEX IF NOT EXISTS t_v ON t (v)": "admin",
    "DROP INDEX IF EXISTS none": "admin",
    "DROP TABLE IF EXISTS none": "admin",
    "SET GLOBAL pruning = on": "admin",
}


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("role", ROLE_NAMES)
def test_a_statement_runs_with_its_role_or_a_higher_one_and_else_names_it(bearer: Connect, role: str, sql: str) -> None:
    needed = STATEMENTS[sql]
    with bearer(role) as conn:
        if ROLE_NAMES.index(role) >= ROLE_NAMES.index(needed):
            conn.execute(sql)
            return
        with pytest.raises(
            AuthenticationError, match=f"needs a token with the role '{needed}'.* has the role '{role}'"
        ):
            conn.execute(sql)
        assert count(conn) == [(100,)], "the connection goes on"


def test_loads_rows_and_jobs_need_their_roles(bearer: Connect) -> None:
    with bearer("read") as conn:
        table = conn.table("t")
        assert table.get(5) is not None
        with pytest.raises(AuthenticationError, match="needs a token with the role 'write'"):
            table.load(ROWS, mode="upsert")
        with pytest.raises(AuthenticationError, match="needs a token with the role 'write'"):
            table.put({"id": 1, "v": 1})
        with pytest.raises(AuthenticationError, match="needs a token with the role 'write'"):
            table.delete(1)
        assert count(conn) == [(100,)]
    with bearer("write") as conn:
        conn.table("t").load(ROWS, mode="upsert")
        conn.table("t").put({"id": 1, "v": 1})
        assert count(conn) == [(100,)]
    job = secateur.Pipeline().read_table("t").write_to(secateur.connectors.collect())
    with bearer("admin") as conn:
        for light in (False, True):
            with pytest.raises(AuthenticationError, match="needs a token with the role 'code'"):
                conn.submit(job, light=light).result(timeout_s=30)
    with bearer("code") as conn:
        for light in (False, True):
            assert conn.submit(job, light=light).result(timeout_s=30).num_rows == 100


def test_every_request_is_refused_to_a_lower_role_where_it_is_served(own: Cluster) -> None:
    """Past every client of ours, at the controller and at a member."""
    addresses = {False: own.address, True: own.members()[0].address}
    for role in TokenRole:
        made = own.tokens.create(role.title)
        for operation in Operation:
            if Role.CLIENT not in operation.callers or role >= operation.role:
                continue
            with RawConnection(own, addresses[operation.code in MEMBER_OPERATIONS], token=made.token) as connection:
                needs = f"'{operation.title}' needs a token with the role '{operation.role.title}'"
                with pytest.raises(AuthenticationError, match=needs):
                    connection.ask(operation, b"\x80")
                connection.ask(Operation.HELLO, encode(Hello()))  # a second hello gives no other role
                with pytest.raises(AuthenticationError, match=needs):
                    connection.ask(operation, b"\x80")


def test_a_token_is_rotated_without_a_break(own: Cluster) -> None:
    old = own.tokens.create("read", "the report, 2026")
    with secateur.connect(own.address, old.token) as before:
        assert count(before) == [(100,)]
        new = own.tokens.create("read", "the report, 2027")
        with secateur.connect(own.address, new.token) as after:
            assert count(after) == count(before) == [(100,)]
            own.tokens.revoke(old.id)
            with pytest.raises(AuthenticationError, match=r"was revoked"):
                before.execute("SELECT v FROM t WHERE id = 3")
            assert count(after) == [(100,)]
    with pytest.raises(AuthenticationError, match="wrong or was revoked"):
        secateur.connect(own.address, old.token)
    for member in own.members():
        with pytest.raises(AuthenticationError, match="wrong or was revoked"):
            RawConnection(own, member.address, token=old.token)


def test_tokens_are_listed_without_their_secrets(own: Cluster) -> None:
    made = own.tokens.create("write", "the nightly load")
    (listed,) = [token for token in own.tokens.list() if token.id == made.id]
    assert (listed.role.title, listed.name, listed.digest) == ("write", "the nightly load", b"")
    assert abs(listed.created - time.time()) < 600
    assert made.token not in repr(made) + repr(listed)
    assert len(made.token) >= 43


def test_an_admin_makes_no_token_above_its_own_role(bearer: Connect) -> None:
    with bearer("admin") as conn:
        assert conn.tokens.create("admin").token
        with pytest.raises(AuthenticationError, match="made by a token with that role or a higher one"):
            conn.tokens.create("code")
    with bearer("write") as conn, pytest.raises(AuthenticationError, match="role 'admin'"):
        conn.tokens.create("read")


def test_wrong_uses_are_explained(own: Cluster) -> None:
    with pytest.raises(ProgrammingError, match="role='owner': it is one of 'read', 'write', 'admin', 'code'"):
        own.tokens.create("owner")
    with pytest.raises(ProgrammingError, match="there is no token 'none'"):
        own.tokens.revoke("none")
    with (
        secateur.start(members=1, runtime="embedded", token="") as open_to_all,
        pytest.raises(ProgrammingError, match="lets everybody in"),
    ):
        open_to_all.tokens.create("read")


def test_tokens_outlive_controllers_and_reach_new_members() -> None:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as own, own.connect() as conn:
        conn.execute(TABLE)
        conn.table("t").load(ROWS)
        kept, revoked = own.tokens.create("read"), own.tokens.create("read")
        own.tokens.revoke(revoked.id)
        own.kill_controller()
        with secateur.connect(own.address, kept.token) as reader:
            assert count(reader) == [(100,)]
            own.scale(3)
            assert count(reader) == [(100,)]
            with pytest.raises(AuthenticationError, match="role 'write'"):
                reader.execute("DELETE FROM t WHERE id = 1")
        for member in own.members():
            RawConnection(own, member.address, token=kept.token).__exit__()
            with pytest.raises(AuthenticationError, match="wrong or was revoked"):
                RawConnection(own, member.address, token=revoked.token)
        assert [token.id for token in own.tokens.list()] == [kept.id]


def test_tokens_are_kept_on_disk_as_digests(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "members": 2,
        "runtime": "embedded",
        "token": "secret",
        "data_directory": tmp_path,
        "member_silence_s": 10.0,
    }
    with secateur.start(**settings) as own:
        made = own.tokens.create("read")
    with secateur.start(**settings) as again, secateur.connect(again.address, made.token) as conn:
        assert conn.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(AuthenticationError, match="role 'admin'"):
            conn.execute("CREATE VIEW w AS SELECT 1 AS one")
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert made.id.encode() in written
    assert made.token.encode() not in written


def test_the_command_makes_lists_and_revokes_tokens(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", own.address)
    monkeypatch.setenv("SECATEUR_TOKEN", own.token or "")
    runner = CliRunner()
    made = runner.invoke(app, ["token", "create", "--role", "read", "--for", "shell", "--json"])
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    with secateur.connect(own.address, told["token"]) as conn:
        assert count(conn) == [(100,)]
    listed = runner.invoke(app, ["token", "list", "--json"])
    assert [(one["role"], one["name"]) for one in json.loads(listed.stdout) if one["id"] == told["id"]] == [
        ("read", "shell")
    ]
    assert runner.invoke(app, ["token", "revoke", told["id"]]).exit_code == 0
    with pytest.raises(Error, match="wrong or was revoked"):
        secateur.connect(own.address, told["token"])
    monkeypatch.setenv("SECATEUR_TOKEN", own.tokens.create("read").token)
    refused = runner.invoke(app, ["token", "create", "--role", "read"])
    assert refused.exit_code == 1
    assert "role 'admin'" in refused.output


def test_the_command_makes_tokens_with_roles_claims_and_an_end(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", own.address)
    monkeypatch.setenv("SECATEUR_TOKEN", own.token or "")
    runner = CliRunner()
    with own.connect() as conn:
        for role in ("reader", "clerk"):
            conn.execute(f"CREATE ROLE {role}")
        conn.execute("GRANT SELECT ON t TO reader")
    options = ["--role", "reader", "--role", "clerk", "--claim", "tenant=C2", "--claim", "formula=a=b"]
    made = runner.invoke(app, ["token", "create", *options, "--expires", "1h", "--principal", "bob"])
    assert made.exit_code == 0, made.output
    with secateur.connect(own.address, made.stdout.strip()) as conn:
        assert count(conn) == [(100,)]
        with pytest.raises(AuthenticationError):
            conn.execute("DELETE FROM t")
    (token,) = [token for token in own.tokens.list() if token.principal == "bob"]
    assert (token.roles, token.claims) == (("reader", "clerk"), {"tenant": "C2", "formula": "a=b"})
    assert token.expires is not None
    assert 3500 < token.expires - time.time() <= 3600
    (listed,) = [
        one for one in json.loads(runner.invoke(app, ["token", "list", "--json"]).stdout) if one["id"] == token.id
    ]
    assert (listed["role"], listed["principal"], listed["claims"]) == ("reader, clerk", "bob", "tenant=C2, formula=a=b")
    assert listed["expires"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(token.expires))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("1h", 3600), ("7d", 604800), ("1 h", None), ("", None), ("5", None)],
)
def test_the_command_reads_durations(
    own: Cluster, monkeypatch: pytest.MonkeyPatch, text: str, seconds: int | None
) -> None:
    monkeypatch.setenv("SECATEUR_ADDRESS", own.address)
    monkeypatch.setenv("SECATEUR_TOKEN", own.token or "")
    made = CliRunner().invoke(app, ["token", "create", "--role", "read", "--expires", text, "--json"])
    if seconds is None:
        assert made.exit_code == 2
        assert "a number and a unit" in " ".join(made.output.split())
        return
    (token,) = [token for token in own.tokens.list() if token.id == json.loads(made.stdout)["id"]]
    assert token.expires is not None
    assert seconds - 60 < token.expires - time.time() <= seconds


@pytest.mark.parametrize("claim", ["tenant", "=C2"])
def test_the_command_reads_claims(claim: str) -> None:
    refused = CliRunner().invoke(app, ["token", "create", "--role", "read", "--claim", claim])
    assert (refused.exit_code, "NAME=VALUE" in refused.output) == (2, True)
