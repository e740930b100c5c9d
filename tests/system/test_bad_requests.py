"""Requests that no client of ours would send: an error that names the field, in place of an internal one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from raw_frames import RawConnection, header_of, required_fields

import secateur
from secateur.cluster import Cluster
from secateur.errors import ParameterError, ProtocolError, TopologyChangedError
from secateur.protocol import (
    ChangeOnePartition,
    ChangeStatement,
    MakeRanges,
    Operation,
    OperationBase,
    PublishLoad,
    Role,
    Server,
)

WITH_FIELDS = [operation for operation in Operation if operation.reply is not None and required_fields(operation)]


def connection_for(cluster: Cluster, operation: OperationBase) -> RawConnection:
    """A connection to a server that answers an operation, as somebody who may ask for it."""
    address = cluster.members()[0].address if operation.at is Server.MEMBER else cluster.address
    role = Role.CLIENT if Role.CLIENT in operation.callers else sorted(operation.callers)[0]
    return RawConnection(cluster, address, role)


@pytest.mark.parametrize("operation", WITH_FIELDS, ids=lambda operation: operation.title)
def test_a_server_says_which_field_is_missing(cluster: Cluster, operation: OperationBase) -> None:
    with (
        connection_for(cluster, operation) as connection,
        pytest.raises(ProtocolError, match=rf"{operation.request.__name__} cannot be read: "),
    ):
        connection.ask(operation, header_of(operation, {}))


@pytest.mark.parametrize(
    ("operation", "args", "message"),
    [
        (Operation.PREPARE, {"sql": 1, "params": []}, "Expected `str`, got `int` - at `$.sql`"),
        (Operation.PREPARE, {"sql": "SELECT 1", "params": 3}, "Expected `object | array`, got `int` - at `$.params`"),
        (Operation.ABORT_LOAD, {"load_id": ["l"]}, "Expected `str`, got `array` - at `$.load_id`"),
        (
            Operation.PUBLISH_LOAD,
            {"load_id": "l", "table": "t", "mode": "append", "parts": {"x": [1]}},
            "Expected `int`, got `str` - at `key` in `$.parts`",
        ),
        (Operation.MAKE_RANGES, {"table": "t", "table_id": 1, "cells": [1, "x"]}, "got `str` - at `$.cells[1]`"),
        (
            Operation.STAGE_ROWS,
            {"load_id": "l", "table_id": 1, "attempt": 0, "parts": [[0, -1]]},
            "Expected `int` >= 0 - at `$.parts[0][1]`",
        ),
    ],
)
def test_a_field_of_a_wrong_type_is_named(
    cluster: Cluster, operation: OperationBase, args: dict[str, Any], message: str
) -> None:
    with connection_for(cluster, operation) as connection:
        with pytest.raises(ProtocolError) as caught:
            connection.ask(operation, header_of(operation, args))
        assert message in str(caught.value)


def test_a_load_that_was_staged_for_a_table_of_the_past_is_refused(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE again (id BIGINT, PRIMARY KEY (id))")
    conn.execute("INSERT INTO again VALUES (1)")
    conn.execute("DROP TABLE again")
    conn.execute("CREATE TABLE again (id BIGINT, PRIMARY KEY (id))")
    conn.execute("INSERT INTO again VALUES (2)")
    table_id = conn._session.table("again").table_id - 1
    with pytest.raises(TopologyChangedError, match="dropped and created again"):
        conn._session.ask(PublishLoad("past", "again", "overwrite", {}, table_id))
    assert conn.execute("SELECT id FROM again").fetchall() == [(2,)]
    conn.execute("DROP TABLE again")


def test_ranges_are_asked_for_the_table_that_is_there(conn: secateur.Connection, table_name: str) -> None:
    conn.execute(f"CREATE TABLE {table_name} (n BIGINT PRIMARY KEY) PARTITION BY RANGE (n) EVERY 10")
    asked = MakeRanges(table_name, conn._session.table(table_name).table_id, [1])
    with pytest.raises(TopologyChangedError, match="dropped and created again while rows were on their way to it"):
        conn._session.ask(replace(asked, table_id=asked.table_id + 1000))
    conn._session.ask(asked)
    conn._session.ask(asked)
    assert [(r.lower, r.upper) for r in conn.table(table_name).scheme.ranges()] == [((10,), (20,))]


def test_a_change_says_what_it_wants(conn: secateur.Connection) -> None:
    conn.execute("CREATE TABLE wanted (id BIGINT PRIMARY KEY, v BIGINT)")
    prepared, _ = conn._session.prepare("DELETE FROM wanted WHERE v = 1", [])
    assert isinstance(prepared, ChangeStatement)
    asked = ChangeOnePartition(prepared.select.plan_id, [], True, "delete", "c")
    with pytest.raises(ProtocolError, match="change is for one partition, the statement concerns 271 of them"):
        conn._session.ask_member("m1", asked)
    with pytest.raises(ProtocolError, match="operation 'append' is none of 'upsert', 'delete'"):
        conn._session.ask_member("m1", replace(asked, operation="append"))
    with pytest.raises(TopologyChangedError, match="plan nothing is not known any more"):
        conn._session.ask_member("m1", replace(asked, plan="nothing"))
    with pytest.raises(ParameterError, match="has 0 parameters, 1 were given"):
        conn._session.ask_member("m1", replace(asked, params=[1]))
    conn.execute("DROP TABLE wanted")
