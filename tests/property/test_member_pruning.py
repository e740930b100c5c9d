"""Member pruning of any DAG, also one that no planner wrote: pruned == unpruned == what the rows' paths say, and nobody
works who need not.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from secateur.connectors import batch_source, collect, table_source
from secateur.dag import (
    DAG,
    Edge,
    JobConfig,
    Param,
    Processor,
    force_total_parallelism_one,
    from_,
    lazy_total_parallelism_one,
)
from secateur.dag.edge import AllToOne, Distributed, DistributedTo, Local
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.protocol import coordinators
from secateur.testing import LocalCluster

MEMBERS = ("m1", "m2", "m3", "m4")
KEYS = 12
ROWS = pa.table({"k": pa.array([n % KEYS for n in range(60)]), "x": pa.array(range(60))})
PARAMS = [3]


def definition(name: str, table_id: int, buckets: int) -> TableDef:
    kinds = {"k": parse_type("BIGINT"), "x": parse_type("BIGINT")}
    scheme = build_scheme(hashes=[HashComponent(("k",), buckets)], types=kinds, primary_key=("k", "x"), table=name)
    return TableDef(
        name,
        table_id,
        tuple(Column(column, kind, nullable=False) for column, kind in kinds.items()),
        ("k", "x"),
        scheme,
        backups=0,
    )


TABLES = {"t": definition("t", 1, 7), "u": definition("u", 2, 3)}


@dataclass(slots=True)
class World:
    """A DAG, what it has to yield, and what is known about it beside the code under test.

    Attributes:
        rows: For each vertex how often each ``x`` reaches it.
        reads: For each table source its table and partitions.
        fixed: Vertices of one processor, with the member they have to be on; None for whichever takes part.
        repeats: Whether some edge delivers a row to several processors, so that only *whether* a row arrives is known.
    """

    dag: DAG = field(default_factory=DAG)
    rows: dict[str, Counter[int]] = field(default_factory=dict)
    reads: dict[str, tuple[str, frozenset[int]]] = field(default_factory=dict)
    fixed: dict[str, str | None] = field(default_factory=dict)
    outputs: Counter[str] = field(default_factory=Counter)
    repeats: bool = False


class Pass(Processor):
    """Passes batches on."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self.outbox.offer(batch)


def owner_of(cluster: LocalCluster, table: str, partition: int) -> str:
    return cluster.topology.ownership(TABLES[table].scheme.affinity_group()).primary(partition)


def add_source(world: World, chance: random.Random, name: str) -> None:
    kind = chance.choice(["key", "key", "keys", "partitions", "nothing", "table", "rows"])
    if kind == "rows":
        xs = chance.sample(range(60), 5)
        world.dag.new_vertex(name, batch_source(pa.table({"k": [x % KEYS for x in xs], "x": xs})))
        world.rows[name], world.fixed[name] = Counter(xs), None
        return
    table = chance.choice(sorted(TABLES))
    scheme = TABLES[table].scheme
    of_key = {k: scheme.partition_of({"k": k}) for k in range(KEYS)}
    keys, options = set(range(KEYS)), dict[str, Any]()
    partitions = frozenset(scheme.live_partitions().tolist())
    if kind in ("key", "keys", "nothing"):
        keys = set(chance.sample(range(KEYS), {"key": 1, "keys": 3, "nothing": 0}[kind]))
        options = {"keys": [{"k": Param(0) if k == PARAMS[0] else k} for k in keys]}
        partitions = frozenset(of_key[k] for k in keys)
    elif kind == "partitions":
        partitions = frozenset(chance.sample(sorted(partitions), 2))
        options = {"partitions": sorted(partitions)}
        keys = {k for k, partition in of_key.items() if partition in partitions}
    world.dag.new_vertex(name, table_source(table, **options), chance.choice([None, 1, 3]))
    world.rows[name] = Counter(x for x in range(60) if x % KEYS in keys)
    world.reads[name] = table, partitions


def add_stage(world: World, chance: random.Random, name: str, cluster: LocalCluster) -> None:
    kind = chance.choice(["anywhere", "anywhere", "anywhere", "forced", "lazy"])
    if kind == "forced":
        world.fixed[name] = chance.choice(MEMBERS)
        world.dag.new_vertex(name, force_total_parallelism_one(Pass, str(world.fixed[name])))
    elif kind == "lazy":
        key = chance.randrange(KEYS)
        world.fixed[name] = owner_of(cluster, "t", TABLES["t"].scheme.partition_of({"k": key}))
        world.dag.new_vertex(name, lazy_total_parallelism_one(Pass, "t", {"k": key}))
    else:
        world.dag.new_vertex(name, Pass, chance.randint(1, 3))
    world.rows[name] = Counter()
    feeders = chance.sample(sorted(set(world.rows) - {name}), chance.randint(1, min(3, len(world.rows) - 1)))
    for ordinal, feeder in enumerate(feeders):
        edge = random_edge(chance, from_(feeder, world.outputs[feeder]).to(name, ordinal), is_fixed=name in world.fixed)
        world.repeats |= edge.routing in (edge.broadcast().routing, edge.fan_out().routing)
        world.dag.edge(edge)
        world.outputs[feeder] += 1
        world.rows[name] += world.rows[feeder]


def random_edge(chance: random.Random, edge: Edge, *, is_fixed: bool) -> Edge:
    by_key = [
        lambda: edge.partitioned("k"),
        lambda: edge.partitioned("k", scheme=TABLES["t"].scheme),
        lambda: edge.all_to_one(chance.choice("abc")),
    ]
    edge = chance.choice([edge.unicast, edge.isolated, edge.broadcast, edge.fan_out, *by_key])()
    if is_fixed:
        return edge.unicast().distributed() if edge.routing == edge.isolated().routing else edge.distributed()
    if edge.routing != edge.isolated().routing and chance.random() < 0.7:
        return edge.distribute_to(chance.choice(MEMBERS)) if chance.random() < 0.25 else edge.distributed()
    return edge


def random_world(seed: int, cluster: LocalCluster) -> World:
    chance = random.Random(seed)
    world = World()
    for index in range(chance.randint(1, 3)):
        add_source(world, chance, f"source{index}")
    for index in range(chance.randint(1, 4)):
        add_stage(world, chance, f"stage{index}", cluster)
    world.dag.new_vertex("out", collect())
    for ordinal, name in enumerate(name for name in sorted(world.rows) if not world.outputs[name]):
        world.dag.edge(from_(name).to("out", ordinal).distributed())
        world.rows.setdefault("out", Counter()).update(world.rows[name])
    return world


def needed(world: World, cluster: LocalCluster, coordinator: str) -> set[str]:
    """Who has to take part, at most, said once more and in other words than the code does."""
    members = {coordinator}
    members |= {
        owner_of(cluster, table, partition) for table, partitions in world.reads.values() for partition in partitions
    }
    members |= {member for member in world.fixed.values() if member is not None}
    return members | {edge.reach.member for edge in world.dag.freeze().edges if isinstance(edge.reach, DistributedTo)}


def check_where_it_ran(world: World, placed: dict[str, dict[str, int]], cluster: LocalCluster) -> None:
    for name, members in placed.items():
        inbound = world.dag.freeze().inbound[name]
        if name in world.reads and world.reads[name][1]:
            table, partitions = world.reads[name]
            mine = Counter(owner_of(cluster, table, partition) for partition in partitions)
            assert set(members) == set(mine)
            assert all(count <= mine[member] for member, count in members.items()), "more processors than partitions"
        if inbound and name != "out":
            assert set(members) <= {m for edge in inbound for m in reached(edge, set(placed.get(edge.source, ())))}, (
                "instantiated where nothing arrives"
            )
            if all(
                edge.routing == inbound[0].routing
                and isinstance(edge.routing, AllToOne)
                and edge.reach == Distributed()
                for edge in inbound
            ):
                assert len(members) <= 1
        if name in world.fixed:
            assert sum(members.values()) <= 1
            assert world.fixed[name] is None or set(members) <= {world.fixed[name]}


def reached(edge: Edge, origins: set[str]) -> set[str]:
    match edge.reach:
        case Local():
            return origins
        case DistributedTo(member):
            return {member} if origins else set()
        case _:
            return set(MEMBERS) if origins else set()


def arrived(rows: Sequence[int], world: World) -> Counter[int]:
    return Counter(set(rows)) if world.repeats else Counter(rows)


@pytest.mark.parametrize("seed", range(150))
def test_pruned_is_unpruned_and_nobody_works_in_vain(seed: int) -> None:
    async def main() -> None:
        async with LocalCluster(len(MEMBERS)) as cluster:
            for table in TABLES.values():
                cluster.create_table(table, ROWS)
            world = random_world(seed, cluster)
            dag = world.dag.freeze()
            may_coordinate = coordinators(
                dag.needs(PARAMS, TABLES.__getitem__),
                cluster.topology,
                lambda name: TABLES[name].scheme.affinity_group(),
            )
            coordinator = may_coordinate[seed % len(may_coordinate)]
            result = await cluster.run(dag, JobConfig(timeout_s=20), PARAMS, coordinator=coordinator)
            expected = world.rows["out"]
            rows = result.table()["x"].to_pylist() if result.table().num_columns else []
            assert arrived(rows, world) == (Counter(set(expected)) if world.repeats else expected)

            allowed = needed(world, cluster, coordinator)
            assert set(result.members_touched) <= allowed
            assert {member for member, count in cluster.received().items() if count} <= allowed
            placed: dict[str, dict[str, int]] = {}
            for entry in result.metrics:
                placed.setdefault(entry.vertex, {})[entry.member] = entry.processors
            check_where_it_ran(world, placed, cluster)

            unpruned = await cluster.run(dag, JobConfig(timeout_s=20, member_pruning=False), PARAMS, coordinator="m1")
            rows = unpruned.table()["x"].to_pylist() if unpruned.table().num_columns else []
            assert arrived(rows, world) == (Counter(set(expected)) if world.repeats else expected)

    asyncio.run(asyncio.wait_for(main(), 60))
