"""Joins of every kind by every pair of columns, with every choice between exchanges: what is cheapest decides nothing
about the answer.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from secateur.engine.sql import ExchangeKind, Strategy
from secateur.partitioning.tables import TableDef
from secateur.planner import CostModel, Planner
from worlds import World, check

SEED = int(os.environ.get("SECATEUR_SEED", "20261121"))
WORLDS = round(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
JOINS = 4
"""Of each kind, in each world; the worlds of `make test-long` are forty."""
TABLES = {
    "l": "PARTITION BY HASH (k) PARTITIONS 7",
    "r": "PARTITION BY HASH (k) PARTITIONS 7",
    "o": "PARTITION BY HASH (k) PARTITIONS 5",
    "g": "PARTITION BY HASH (k) PARTITIONS 2, RANGE (k) (PARTITION VALUES < 3, PARTITION 3 <= VALUES < 9)",
    "e": "PARTITION BY HASH (k) PARTITIONS 7",
    "w": "REPLICATED",
}
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"]


def _rows(rng: random.Random, name: str) -> list[dict[str, object]]:
    keys = rng.sample(range(9 if name == "g" else 14), 0 if name == "e" else 8)
    return [
        {
            "k": key,
            "j": rng.choice([None, *range(14)]),
            "v": rng.choice([None, 1, 2, 3]),
            "s": rng.choice([None, "a", "b"]),
        }
        for key in keys
    ]


def _world(rng: random.Random, model: CostModel) -> World:
    world = World(planner=Planner(cost_model=model))
    for name, scheme in TABLES.items():
        rows = _rows(rng, name)

        def of(_: TableDef, rows: list[dict[str, object]] = rows) -> list[dict[str, object]]:
            return rows

        world.create(f"CREATE TABLE {name} (k INTEGER, j INTEGER, v INTEGER, s VARCHAR, PRIMARY KEY (k)) {scheme}", of)
    return world


def _statements(rng: random.Random) -> Iterator[str]:
    names = list(TABLES)
    for kind in KINDS:
        for _ in range(JOINS):
            left, right = rng.choice(names), rng.choice(names)
            on = f"a.{rng.choice('kjj')} = b.{rng.choice('kkj')}" + rng.choice(
                ["", "", " AND b.v > 1", " AND a.v = b.v", " AND a.k = 2"]
            )
            where = rng.choice(["", "", " WHERE a.k = 3", " WHERE a.k IN (1, 2, 5)", " WHERE a.v IS NOT NULL"])
            source = f"{left} a {kind} {right} b ON {on}"
            if kind not in ("SEMI JOIN", "ANTI JOIN") and rng.random() < 0.4:
                source += (
                    f" {rng.choice(KINDS)} {rng.choice(names)} c ON c.{rng.choice('kj')} ="
                    f" {rng.choice('ab')}.{rng.choice('kj')}"
                )
            yield rng.choice(
                [
                    f"SELECT a.k, a.j, a.v FROM {source}{where}",
                    f"SELECT count(*), sum(a.v), count(DISTINCT a.s) FROM {source}{where}",
                    f"SELECT a.s, count(*), min(a.j) FROM {source}{where} GROUP BY a.s",
                    f"SELECT a.k, a.v FROM {source}{where} ORDER BY a.k, a.v LIMIT 3",
                ]
            )
    for form in ("IN", "NOT IN"):
        for column in ("k", "j"):
            yield f"SELECT k, j FROM l WHERE j {form} (SELECT {column} FROM o WHERE v > 1)"
            yield f"SELECT k FROM r WHERE k {form} (SELECT {column} FROM l GROUP BY {column} HAVING count(*) > 0)"
    for word in ("EXISTS", "NOT EXISTS"):
        yield f"SELECT a.k FROM l a WHERE {word} (SELECT 1 FROM o b WHERE b.k = a.j AND b.v > 1)"
        yield f"SELECT a.k FROM l a WHERE {word} (SELECT count(*) FROM o b WHERE b.k = a.j AND b.v > 1)"
        yield f"SELECT a.k FROM g a WHERE {word} (SELECT * FROM l b JOIN r c ON b.k = c.k WHERE b.j = a.j)"
    for on in (
        "a.k = b.k",
        "a.j = b.k AND b.v = c.v",
        "a.k = b.k AND b.k = c.k",
        "a.s = b.s AND a.k = c.k AND a.v = 1",
    ):
        names = [rng.choice(["l", "r", "w", "e"]) for _ in range(3)]
        yield (
            f"SELECT a.k, b.k, c.j FROM {names[0]} a, {names[1]} b, {names[2]} c WHERE {on} AND b.s = 'a' AND c.v > 1"
            " AND c.j = a.j"
        )
        yield (
            f"SELECT count(*), sum(d.v) FROM o d LEFT JOIN ({names[0]} a JOIN {names[1]} b ON a.k = b.k AND b.s = 'a')"
            " ON d.j = a.j AND b.v = 1"
        )
    yield "SELECT a.k, (SELECT max(b.v) FROM o b WHERE b.j = a.j) AS m FROM l a"
    yield "SELECT a.k FROM l a WHERE a.v <= (SELECT 1 * sum(b.v) FROM r b WHERE b.j = a.k)"
    yield (
        "SELECT a.k FROM l a JOIN w ON w.k = a.j AND w.s = 'a' WHERE a.v >= (SELECT min(b.v) FROM o b WHERE b.j = w.k"
        " AND b.s = 'b')"
    )


@pytest.mark.parametrize(
    ("routed", "shuffled", "wanted"),
    [(0.0, 1e18, ExchangeKind.ROUTE), (1e18, 0.0, ExchangeKind.SHUFFLE), (1e18, 1e18, ExchangeKind.BROADCAST)],
    ids=["routes", "shuffles", "broadcasts"],
)
def test_exchanges_change_no_answer(routed: float, shuffled: float, wanted: ExchangeKind) -> None:
    model = CostModel(
        routed_bytes_min=routed,
        shuffled_bytes_min=shuffled,
        shuffle_share=0.5 if shuffled else 1e-6,
        semi_join_saved_bytes_min=1e18 if wanted is ExchangeKind.SHUFFLE else -1.0,
        semi_join_share_max=1.0,
    )
    seen: Counter[ExchangeKind] = Counter()
    for number in range(WORLDS):
        rng = random.Random(SEED + number)
        world = _world(rng, model)
        for sql in _statements(rng):
            if check(world, sql, [], rng):
                seen.update(stage.exchange for stage in world.prepare(sql, []).plan.stages)
    assert seen[wanted] > 1.4 * JOINS, seen


def test_gathering_changes_no_answer() -> None:
    seen: Counter[Strategy] = Counter()
    rng = random.Random(SEED)
    world = _world(rng, CostModel(gather_parts_min=0))
    for sql in _statements(rng):
        if check(world, sql, [], rng):
            seen[world.prepare(sql, []).plan.strategy] += 1
    assert seen[Strategy.GATHER] > 0.9 * seen.total(), seen
