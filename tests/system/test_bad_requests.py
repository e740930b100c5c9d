"""Requests that no client of ours would send: an error that names the argument, in place of an internal one."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

import secateur
from secateur.client.execution.statement import ChangeStatement
from secateur.cluster import Cluster
from secateur.cluster.callers import CONTROLLER_CALLERS, MEMBER_CALLERS
from secateur.cluster.request_args import CONTROLLER_ARGS, MEMBER_ARGS
from secateur.errors import ParameterError, ProtocolError, TopologyChangedError
from secateur.wire import Channel, Role


def ask_as_allowed(cluster: Cluster, address: str, op: str, allowed: frozenset[Role]) -> None:
    """Send a request without arguments as somebody who may send it."""
    host, _, port = address.rpartition(":")
    identity = None if Role.CLIENT in allowed else cluster._settings.identity(next(iter(sorted(allowed))))
    with closing(Channel(host, int(port), token=cluster._settings.token, identity=identity)) as channel:
        channel.request(op)


@pytest.mark.parametrize("op", CONTROLLER_ARGS)
def test_the_controller_says_which_argument_is_missing(cluster: Cluster, op: str) -> None:
    first = next(iter(CONTROLLER_ARGS[op]))
    with pytest.raises(ProtocolError, match=f"{op} needs the argument '{first}' as .*, and got nothing"):
        ask_as_allowed(cluster, cluster.address.removeprefix("secateur://"), op, CONTROLLER_CALLERS[op])


@pytest.mark.parametrize("op", MEMBER_ARGS)
def test_a_member_says_which_argument_is_missing(cluster: Cluster, op: str) -> None:
    first = next(iter(MEMBER_ARGS[op]))
    with pytest.raises(ProtocolError, match=f"{op} needs the argument '{first}' as .*, and got nothing"):
        ask_as_allowed(cluster, cluster.members()[0].address, op, MEMBER_CALLERS[op])


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("prepare", {"sql": 1, "params": []}, "prepare needs the argument 'sql' as str, and got int"),
        (
            "prepare",
            {"sql": "SELECT 1", "params": 3},
            "prepare needs the argument 'params' as list or dict, and got int",
        ),
        ("load_abort", {"load_id": ["l"]}, "load_abort needs the argument 'load_id' as str, and got list"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(
    conn: secateur.Connection, op: str, args: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProtocolError, match=message):
        conn._session.ask(op, args)


def test_a_load_that_was_staged_for_a_table_of_the_past_is_refused(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE again (id BIGINT, PRIMARY KEY (id))")
    conn.execute("INSERT INTO again VALUES (1)")
    conn.execute("DROP TABLE again")
    conn.execute("CREATE TABLE again (id BIGINT, PRIMARY KEY (id))")
    conn.execute("INSERT INTO again VALUES (2)")
    table_id = conn._session.table("again").table_id - 1
    load = {"load_id": "past", "table": "again", "table_id": table_id, "mode": "overwrite", "parts": {}}
    with pytest.raises(TopologyChangedError, match="dropped and created again"):
        conn._session.ask("load_publish", load)
    with pytest.raises(ProtocolError, match="parts gives the numbers of attempts by partition"):
        conn._session.ask("load_publish", {**load, "table_id": table_id + 1, "parts": {"x": [1]}})
    assert conn.execute("SELECT id FROM again").fetchall() == [(2,)]
    conn.execute("DROP TABLE again")


def test_ranges_are_asked_for_by_number_and_for_the_table_that_is_there(
    conn: secateur.Connection, table_name: str
) -> None:
    conn.execute(f"CREATE TABLE {table_name} (n BIGINT PRIMARY KEY) PARTITION BY RANGE (n) EVERY 10")
    asked = {"table": table_name, "table_id": conn._session.table(table_name).table_id, "cells": [1]}
    with pytest.raises(ProtocolError, match="make_ranges: cells are numbers"):
        conn._session.ask("make_ranges", {**asked, "cells": [1, "x"]})
    with pytest.raises(TopologyChangedError, match="dropped and created again while rows were on their way to it"):
        conn._session.ask("make_ranges", {**asked, "table_id": asked["table_id"] + 1000})
    conn._session.ask("make_ranges", asked)
    conn._session.ask("make_ranges", asked)
    assert [(r.lower, r.upper) for r in conn.table(table_name).scheme.ranges()] == [((10,), (20,))]


def test_a_change_says_what_it_wants(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE wanted (id BIGINT PRIMARY KEY, v BIGINT)")
    prepared, _ = conn._session.prepare("DELETE FROM wanted WHERE v = 1", [])
    assert isinstance(prepared, ChangeStatement)
    args = {"plan": prepared.source.plan_id, "params": [], "pruning": True, "operation": "delete", "change_id": "c"}
    with pytest.raises(ProtocolError, match="change is for one partition, the statement concerns 271 of them"):
        conn._session.ask_member("m1", "change", args)
    with pytest.raises(ProtocolError, match="operation 'append' is none of 'upsert', 'delete'"):
        conn._session.ask_member("m1", "change", {**args, "operation": "append"})
    with pytest.raises(TopologyChangedError, match="plan nothing is not known any more"):
        conn._session.ask_member("m1", "change", {**args, "plan": "nothing"})
    with pytest.raises(ParameterError, match="has 0 parameters, 1 were given"):
        conn._session.ask_member("m1", "change", {**args, "params": [1]})
    conn.execute("DROP TABLE wanted")
