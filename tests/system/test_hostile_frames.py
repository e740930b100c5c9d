"""Mutated requests of a client, for every operation there is: the table that they name still takes writes and loads,
and is read right.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from raw_frames import RawConnection, header_of

import secateur
from secateur.cluster import Cluster
from secateur.errors import Error
from secateur.protocol import CONTROLLER_OPERATIONS, MEMBER_OPERATIONS, Operation
from secateur.wire import encode_table

FRAMES = 1500
"""About ten of each operation of the controller and of two members."""
ROWS = pa.table({"id": pa.array(range(64), pa.int64()), "v": pa.array(range(64), pa.int64())})


@pytest.fixture
def own() -> Iterator[Cluster]:
    with secateur.start(members=3, runtime="embedded") as cluster:
        yield cluster


def arguments(conn: secateur.Connection, load_id: str) -> dict[str, Any]:
    """Something right for every argument of every operation."""
    prepared, _ = conn._session.prepare("SELECT v FROM f WHERE id = ?", [1])
    table = conn._session.table("f")
    return {
        "plan": prepared.plan_id,  # type: ignore[union-attr]
        "plan_id": prepared.plan_id,  # type: ignore[union-attr]
        "params": [1],
        "pruning": True,
        "rows": True,
        "has_rows": True,
        "run": [prepared.plan_id, [1], True],  # type: ignore[union-attr]
        "is_profiled": True,
        "are_keys": False,
        "mark": None,
        "since": None,
        "as_written": False,
        "settings": {},
        "pieces": [],
        "operation": "upsert",
        "change_id": load_id,
        "load_id": load_id,
        "table": "f",
        "table_id": table.table_id,
        "table_version": table.version,
        "version": table.version,
        "partition": 1,
        "partitions": [0, 1],
        "parts": [[1, 1]],
        "attempt": 0,
        "mode": "upsert",
        "number": 3,
        "duplicate_match": "first",
        "returning": None,
        "names_action": False,
        "sql": "SELECT v FROM f WHERE id = ?",
        "member": "m2",
        "host": "127.0.0.1",
        "port": 1,
        "group": table.scheme.affinity_group(),
        "sequence": 1,
        "term": 99,
        "settled": 1,
        "copies": [[table.table_id, 1, 99, 1]],
        "published": True,
        "job": "j",
        "config": {},
        "needs": [],
        "if_absent": True,
        "wait_s": 0,
        "grant": 1000,
        "error": {"error": "DataError", "message": "m"},
        "views": [],
        "catalog_version": 99,
        "tables": [table.table_id],
        "cells": [1],
        "failure": None,
        "members": [],
        "metrics": [],
    }


def mutated(chance: random.Random, args: dict[str, Any]) -> dict[str, Any]:
    """A few of the arguments dropped, or replaced by others."""
    args = dict(args)
    for name in chance.sample(sorted(args), chance.randrange(4)):
        replacement = chance.choice(
            [
                None,
                -1,
                0,
                7,
                2**31,
                2**63 - 1,
                "",
                "x" * 300,
                [],
                [[]],
                [1, "2"],
                {},
                {"a": 1},
                b"\x00",
                True,
                1.5,
                "drop",
                args.get("load_id"),
            ]
        )
        if chance.random() < 0.3:
            del args[name]
        else:
            args[name] = replacement
    return args


def payload(chance: random.Random) -> bytes:
    good = bytes(encode_table(ROWS.slice(chance.randrange(60), 1)))
    match chance.randrange(4):
        case 0:
            return good
        case 1:
            return b""
        case 2:
            return good[: chance.randrange(len(good))]
        case _:
            spoilt = bytearray(good)
            spoilt[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
            return bytes(spoilt)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_table_takes_writes_and_is_read_right_after_mutated_frames_of_every_operation(
    own: Cluster, seed: int
) -> None:
    chance = random.Random(seed)
    with own.connect() as conn:
        conn.execute(
            "CREATE TABLE f (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4 BACKUPS 1"
        )
        conn.table("f").load(ROWS)
        args = arguments(conn, "hostile")
        addresses = {
            "controller": own.address.removeprefix("secateur://"),
            **{member.id: member.address for member in own.members()},
        }
        ops = [("controller", operation) for operation in CONTROLLER_OPERATIONS.values()] + [
            (member, operation) for member in ("m1", "m2") for operation in MEMBER_OPERATIONS.values()
        ]
        # A statement of a client may of course change the table: these are asked for with what they refuse.
        channels = {name: RawConnection(own, address) for name, address in addresses.items()}
        for number in range(FRAMES):
            name, operation = ops[number % len(ops)]
            if operation.reply is None:
                continue
            given = mutated(chance, {**args, "load_id": f"hostile{chance.randrange(5)}"})
            if operation is Operation.PUBLISH_LOAD:
                given["parts"] = chance.choice([{0: [0]}, {9: [1]}, {"x": 1}, {}])
            with suppress(Error, OverflowError):
                channels[name].ask(operation, header_of(operation, given), payload(chance))
        for channel in channels.values():
            with channel:
                pass
        assert conn.table("f").load(ROWS, mode="overwrite") == 64
        for key in range(64):
            conn.execute("INSERT OR REPLACE INTO f VALUES (?, ?)", [key, key + 1])
        conn.execute("UPDATE f SET v = v + 1 WHERE v > 0")
        assert conn.execute("SELECT count(*), sum(v), min(v) FROM f").fetchall() == [(64, sum(range(64)) + 128, 2)]
        assert conn.execute("SELECT v FROM f WHERE id = 5").fetchall() == [(7,)]
        assert [member.is_alive for member in own.members()] == [True] * 3
