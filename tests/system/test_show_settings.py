"""SHOW: what the settings of a connection are."""

from __future__ import annotations

import pytest

import secateur
from secateur import CostModel
from secateur.errors import NotSupportedError, SqlSyntaxError, UnknownTableError
from secateur.tunable import tunables_of

COSTS = {one.name: str(one.default) for one in tunables_of(CostModel)}
DEFAULTS = {"pruning": "on", "disabled_rules": "", "combinations_per_partition": "8", "statement_timeout": "0", **COSTS}
CHANGED = {
    "pruning": "verify",
    "disabled_rules": "join_keys_first, materialize_subquery",
    "combinations_per_partition": "32",
    "statement_timeout": "50min",
    **dict.fromkeys(COSTS, "0"),
}


def shown(conn: secateur.Connection) -> dict[str, str]:
    return {name: value for name, value, _, _ in conn.execute("SHOW ALL").fetchall()}


def test_each_setting_is_shown_as_it_was_set(conn: secateur.Connection) -> None:
    assert shown(conn) == DEFAULTS
    for name, value in CHANGED.items():
        assert conn.execute(f"SHOW {name}").fetchall() == [(DEFAULTS[name],)]
        conn.execute(f"SET {name} = '{value}'")
        cursor = conn.execute(f"show {name.upper()};")
        assert cursor.fetchall() == [(value,)]
        assert [column[0] for column in cursor.description or ()] == [name]
    assert shown(conn) == CHANGED
    conn.execute("SET disabled_rules = ''")
    assert conn.execute("SHOW disabled_rules").fetchall() == [("",)]


def test_all_settings_come_with_what_they_are_for(conn: secateur.Connection) -> None:
    conn.execute("SET pruning = off")
    cursor = conn.execute("SHOW ALL")
    assert [column[0] for column in cursor.description or ()] == ["name", "value", "default", "description"]
    rows = cursor.fetchall()
    assert {name: default for name, _, default, _ in rows} == DEFAULTS
    assert all(description for *_, description in rows)


def test_settings_are_those_of_one_connection(cluster: secateur.cluster.Cluster, conn: secateur.Connection) -> None:
    conn.execute("SET pruning = off")
    with cluster.connect() as other:
        assert other.execute("SHOW pruning").fetchall() == [("on",)]


def test_a_table_of_that_name_is_described(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE pruning (id INTEGER PRIMARY KEY)")
    try:
        assert conn.execute("SHOW pruning").fetchall() == [("id", "INTEGER", "NO", "PRI", None, None)]
    finally:
        conn.execute("DROP TABLE pruning")
    assert conn.execute("SHOW pruning").fetchall() == [("on",)]


@pytest.mark.parametrize("sql", ["SHOW threads", "SHOW ALL pruning", "SHOW COLUMNS FROM pruning"])
def test_what_is_no_setting_is_no_table_either(conn: secateur.Connection, sql: str) -> None:
    with pytest.raises((UnknownTableError, SqlSyntaxError)):
        conn.execute(sql)


def test_it_takes_no_parameters_and_reads_no_partition(conn: secateur.Connection) -> None:
    assert conn.execute("EXPLAIN SHOW pruning").fetchall() == [("SHOW reads settings of the session and no partition",)]
    with pytest.raises(secateur.Error):
        conn.execute("SHOW pruning", [1])


def test_the_version_is_not_that_of_the_kernel(conn: secateur.Connection) -> None:
    with pytest.raises(NotSupportedError, match=r"secateur\.__version__"):
        conn.execute("SELECT version()")
