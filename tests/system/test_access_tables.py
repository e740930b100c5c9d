"""Tokens, roles, grants and policies as system tables: everything that was said, and no secret."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import AuthenticationError, ProgrammingError
from secateur.protocol import NewToken


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as running, running.connect() as conn:
        conn.execute(
            "CREATE TABLE orders (tenant VARCHAR, id BIGINT, PRIMARY KEY (tenant, id)) PARTITION BY HASH (tenant)"
            " PARTITIONS 4"
        )
        conn.execute("CREATE TABLE carts (id BIGINT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 4")
        for sql in (
            "CREATE ROLE reader",
            "CREATE ROLE clerk",
            "GRANT SELECT ON orders, secateur.tables TO reader, clerk",
            "GRANT INSERT ON orders TO clerk",
            "CREATE POLICY own_rows ON orders USING (tenant = session('tenant')) WITH CHECK (id > 0)",
            "CREATE POLICY new_rows ON orders FOR INSERT TO clerk WITH CHECK (id < 100)",
            "CREATE POLICY none_yet ON carts FOR SELECT TO reader, clerk USING (id = 1)",
            "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        ):
            conn.execute(sql)
        yield running


@pytest.fixture(scope="module")
def made(own: Cluster) -> dict[str, NewToken]:
    return {
        "role": own.tokens.create(
            ["reader", "clerk"],
            "the shop",
            principal="bob",
            claims={"tenant": "C2", "region": "it's"},
            expires=timedelta(hours=1),
        ),
        "grants": own.tokens.create("read on orders; write on carts"),
        "admin": own.tokens.create("admin"),
    }


def rows(cluster: Cluster, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
    with cluster.connect() as conn:
        return conn.execute(sql, params).fetchall()


def test_tokens_show_everything_but_their_secrets(own: Cluster, made: dict[str, NewToken]) -> None:
    sql = "SELECT id, name, principal, role, roles, claims FROM secateur.tokens ORDER BY created"
    assert rows(own, sql) == [
        (made["role"].id, "the shop", "bob", "write", ["reader", "clerk"], {"tenant": "C2", "region": "it's"}),
        (made["grants"].id, None, None, "write", [], {}),
        (made["admin"].id, None, None, "admin", [], {}),
    ]
    ((created, expires),) = rows(own, "SELECT created, expires FROM secateur.tokens WHERE id = ?", [made["role"].id])
    assert abs(created - datetime.now(UTC).replace(tzinfo=None)) < timedelta(minutes=5)
    assert timedelta(minutes=55) < expires - created < timedelta(minutes=65)
    shown = repr(rows(own, "SELECT * FROM secateur.tokens"))
    assert not any(token.token in shown for token in made.values())
    assert rows(own, "SELECT claims['tenant'] FROM secateur.tokens WHERE principal = 'bob'") == [("C2",)]


def test_a_token_that_has_ended_is_not_shown_and_keeps_no_role(own: Cluster) -> None:
    with own.connect() as conn:
        conn.execute("CREATE ROLE short")
        token = own.tokens.create("short", expires=0.2)
        with pytest.raises(ProgrammingError, match=f"token {token.id}"):
            conn.execute("DROP ROLE short")
        sql = "SELECT count(*) FROM secateur.tokens WHERE list_contains(roles, 'short')"
        eventually(lambda: conn.execute(sql).fetchall() == [(0,)])
        conn.execute("DROP ROLE short")


def test_grants_are_those_of_roles_and_those_of_tokens(own: Cluster, made: dict[str, NewToken]) -> None:
    sql = "SELECT role, token, table_name, privilege FROM secateur.grants ORDER BY ALL"
    token = made["grants"].id
    assert rows(own, sql) == [
        *(("", token, "carts", privilege) for privilege in ("delete", "insert", "select", "update")),
        ("", token, "orders", "select"),
        ("clerk", "", "orders", "insert"),
        ("clerk", "", "orders", "select"),
        ("clerk", "", "secateur.tables", "select"),
        ("reader", "", "orders", "select"),
        ("reader", "", "secateur.tables", "select"),
    ]
    assert rows(own, "SHOW ROLES") == [("clerk",), ("reader",)]


def test_policies_are_shown_as_they_were_written(own: Cluster) -> None:
    sql = 'SELECT policy_name, table_name, command, roles, "using", "check", enabled FROM secateur.policies ORDER BY 1'
    assert rows(own, sql) == [
        ("new_rows", "orders", "insert", ["clerk"], None, "id < 100", True),
        ("none_yet", "carts", "select", ["reader", "clerk"], "id = 1", None, False),
        ("own_rows", "orders", "all", [], "tenant = session('tenant')", "id > 0", True),
    ]
    with own.connect() as conn:
        conn.execute("ALTER TABLE carts RENAME TO baskets")
        names = "SELECT table_name FROM secateur.policies WHERE policy_name = 'none_yet'"
        assert conn.execute(names).fetchall() == [("baskets",)]
        conn.execute("ALTER TABLE baskets RENAME TO carts")


@pytest.mark.parametrize("name", ["tokens", "roles", "grants", "policies"])
def test_show_lists_them(own: Cluster, made: dict[str, NewToken], name: str) -> None:
    assert sorted(map(repr, rows(own, f"SHOW {name.upper()}"))) == sorted(
        map(repr, rows(own, f"SELECT * FROM secateur.{name}"))
    )


@pytest.mark.parametrize("name", ["tokens", "roles", "grants", "policies"])
def test_who_is_good_for_some_tables_needs_a_grant(own: Cluster, name: str) -> None:
    sql = f"SELECT count(*) FROM secateur.{name}"
    with secateur.connect(own.address, own.tokens.create("reader").token) as conn:
        with pytest.raises(AuthenticationError, match=rf"read on secateur\.{name}"):
            conn.execute(sql)
        with own.connect() as admin:
            admin.execute(f"GRANT SELECT ON secateur.{name} TO reader")
            assert conn.execute(sql).fetchone() != (0,)
            admin.execute(f"REVOKE SELECT ON secateur.{name} FROM reader")
        with pytest.raises(AuthenticationError):
            conn.execute(sql)


@pytest.mark.parametrize("expires", [0, -1, math.nan, math.inf, 1e300])
def test_a_token_ends_at_a_time_that_there_is(own: Cluster, expires: float) -> None:
    with pytest.raises(ProgrammingError, match="in more than a century"):
        own.tokens.create("read", expires=expires)


@pytest.mark.parametrize("roles", [[], ["read"], ["reader", "admin"]])
def test_a_list_of_roles_has_roles_that_were_made(own: Cluster, roles: list[str]) -> None:
    with pytest.raises(ProgrammingError, match="names of roles that CREATE ROLE has made, at least one"):
        own.tokens.create(roles)
