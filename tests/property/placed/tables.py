"""The tables of the statements, in all ways of being placed, and how the planner is made to prefer an exchange."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf

from extremes import BEYOND_SPELLED, SHARE
from secateur.planner import CostModel, Planner
from worlds import World

__all__ = ["EXCHANGES", "TABLES", "columns_of", "exchange_model", "placed_world"]

EXCHANGES = ("broadcast", "route", "shuffle")

_TYPES = {
    "k": "INTEGER",
    "j": "INTEGER",
    "i": "BIGINT",
    "s": "VARCHAR",
    "d": "DATE",
    "m": "DECIMAL(8, 2)",
    "f": "DOUBLE",
    "w": "DECIMAL(38, 6)",
    "h": "HUGEINT",
    "t": "TIMESTAMPTZ",
}
TABLES = {
    "orders": "kjisdmfw",
    "items": "kjisdmht",
    "hashed": "jkisfw",
    "ranged": "kjisdw",
    "single": "kjis",
    "copied": "kjisht",
    "nothing": "kjis",
    "timed": "tkjisd",
}
"""What the columns of a table are: the keys ``k`` and ``j``, and one column of each kind.

``timed`` has an instant in its key as well, so it takes no part in changes, which are by the two. Some of it have no
primary key.
"""
_SCHEMES = {
    "orders": ["HASH (k) PARTITIONS 5"],
    "items": ["HASH (k) PARTITIONS 5", "HASH (k) PARTITIONS 5", "HASH (k, j) PARTITIONS 4"],
    "hashed": ["HASH (j) PARTITIONS 4", "HASH (k, j) PARTITIONS 4", "HASH (j, k) PARTITIONS 6"],
    "ranged": [
        "RANGE (k) SPLIT AT (0, 2), HASH (j) PARTITIONS 2",
        "RANGE (j) SPLIT AT (1, 2, 40)",
        "RANGE (k) SPLIT AT (-1, 3)",
    ],
    "single": ["HASH (k) PARTITIONS 1"],
    "copied": [""],
    "nothing": ["HASH (k) PARTITIONS 5", "HASH (j) PARTITIONS 3"],
    "timed": [
        "HASH (t) PARTITIONS 7",
        "HASH (t, k) PARTITIONS 5",
        "HASH (k) PARTITIONS 3, RANGE (t) SPLIT AT (TIMESTAMPTZ '0001-01-01', TIMESTAMPTZ '2024-01-02')",
    ],
}
_KINDS = {"k": "i", "j": "i"}
_WIDE = (
    "12345678901234567890123456789.012345, -12345678901234567890123456789.012346, 99999999999999999999999999999.999999"
)
_BEYOND = f"{list(BEYOND_SPELLED)}[1 + CAST(floor(random() * {len(BEYOND_SPELLED)}) AS INTEGER)]"
_VALUES = {
    "k": "k",
    "j": "j",
    "i": "CASE WHEN random() < 0.25 THEN NULL ELSE CAST(floor(random() * 6) AS BIGINT) - 1 END",
    "s": "[NULL, '', 'a', 'A', 'b', 'é', 'it''s', '--'][1 + CAST(floor(random() * 8) AS INTEGER)]",
    "d": (
        f"CASE WHEN random() < 0.2 THEN NULL WHEN random() < {SHARE} THEN {_BEYOND}::DATE"
        " ELSE DATE '2024-01-01' + CAST(floor(random() * 4) AS INTEGER) END"
    ),
    "m": "CASE WHEN random() < 0.2 THEN NULL ELSE CAST(floor(random() * 8) / 4 AS DECIMAL(8, 2)) END",
    "f": (
        f"CASE WHEN random() < 0.2 THEN NULL WHEN random() < {SHARE} THEN"
        " ['nan', 'infinity', '-infinity'][1 + CAST(floor(random() * 3) AS INTEGER)]::DOUBLE"
        " ELSE floor(random() * 8) / 4 - 1 END"
    ),
    "t": (
        f"CASE WHEN random() < {SHARE} THEN {_BEYOND}::TIMESTAMPTZ"
        " ELSE TIMESTAMPTZ '2024-01-01' + INTERVAL 12 HOURS * CAST(floor(random() * 6) AS INTEGER) END"
    ),
    "w": f"([NULL, 0, 1.5, {_WIDE}]::DECIMAL(38, 6)[])[1 + CAST(floor(random() * 6) AS INTEGER)]",
    "h": (
        "([NULL, 0, 1, 9223372036854775808, -12345678901234567890123456789012345678]::HUGEINT[])[1 +"
        " CAST(floor(random() * 5) AS INTEGER)]"
    ),
}


def columns_of(table: str) -> tuple[tuple[str, str], ...]:
    """The columns of a table, each with the kind of its values."""
    return tuple((column, _KINDS.get(column, column)) for column in TABLES[table])


def exchange_model(exchange: str) -> CostModel:
    """The cost model by which the planner prefers one of :data:`EXCHANGES` wherever it is right."""
    return CostModel(
        routed_bytes_min=0.0 if exchange == "route" else inf,
        shuffled_bytes_min=0.0 if exchange == "shuffle" else inf,
        shuffle_share=1e-6 if exchange == "shuffle" else 0.5,
        semi_join_saved_bytes_min=inf if exchange == "shuffle" else -1.0,
        semi_join_share_max=1.0,
        materialized_share_max=1.0,
        distinct_share_max=1.0,
    )


def placed_world(rng: random.Random, names: Sequence[str] = (), model: CostModel | None = None) -> World:
    """Some of eight small tables, or those that are named, planned over by a cost model.

    They are a co-located pair, others by other keys, ranges, one partition, copies at all members, instants, no rows.
    """
    world = World(planner=Planner(cost_model=model))
    world.duck.execute(f"SELECT setseed({rng.random()})").fetchall()
    for name in names or ["orders", "items", *rng.sample(list(TABLES)[2:], 3)]:
        columns = ", ".join(f"{column} {_TYPES[column]}" for column in TABLES[name])
        scheme = rng.choice(_SCHEMES[name])
        listed = ", ".join(_VALUES[column] for column in TABLES[name])
        share = 0 if name == "nothing" else rng.choice([0.15, 0.5, 0.8])
        placement = f"PARTITION BY {scheme}" if scheme else "REPLICATED"
        key = ", PRIMARY KEY (t, k, j)" if name == "timed" else ", PRIMARY KEY (k, j)"
        if name == "timed" and share == 0.5:
            key, placement = "", rng.choice([placement, "PARTITION BY RANDOM PARTITIONS 3", "REPLICATED"])
        ddl = f"CREATE TABLE {name} ({columns}{key}) {placement}"
        world.ddl[name] = ddl
        world.fill(ddl, f"SELECT {listed} FROM range(-2, 4) a(k), range(3) b(j) WHERE random() < {share}")
    return world
