"""What a statement costs grows with the partitions that remain, not with those of the table (citus #1305: seconds at
100,000 shards).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from secateur.partitioning.schemes import HashComponent, PartitionScheme, RangeComponent, RangePartition
from secateur.partitioning.topology import assign
from secateur.partitioning.types import parse_type

BIGINT = parse_type("BIGINT")
FEW, MANY = 100, 100_000
RATIO_MAX = 8
"""Far above what a busy machine makes of equal work, and far below the 1,000 that a look at every partition would
make.
"""


def hashed(partitions: int) -> PartitionScheme:
    return PartitionScheme((HashComponent(("k",), partitions),), types=(("k", BIGINT),))


def ranged(partitions: int, hashes: tuple[HashComponent, ...] = (), gap: int = 0) -> PartitionScheme:
    ranges = tuple(RangePartition(number, (10 * number,), (10 * number + 10 - gap,)) for number in range(partitions))
    catch_all = RangePartition(partitions, None, None) if gap else None
    types = {name: BIGINT for h in hashes for name in h.columns} | {"k": BIGINT}
    return PartitionScheme(
        hashes,
        RangeComponent(("k",), ranges, catch_all=catch_all),
        types=tuple(types.items()),
        reference=f"test/{partitions}.{gap}",
    )


SCHEMES: dict[str, Callable[[int], PartitionScheme]] = {
    "hash": hashed,
    "range": ranged,
    "range and hash": lambda partitions: ranged(partitions // 4, (HashComponent(("id",), 4),)),
    "range and hash of one column": lambda partitions: ranged(partitions // 4, (HashComponent(("k",), 4),)),
    "range with a catch-all": lambda partitions: ranged(partitions, gap=3),
}


def fastest_s(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(25):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("kind", SCHEMES)
def test_a_key_is_bound_and_explained_as_fast_among_many_partitions_as_among_few(context: Any, kind: str) -> None:
    bind_s, explain_s, wire_bytes = [], [], []
    for partitions in (FEW, MANY):
        table = context.create(
            "CREATE TABLE many (k BIGINT, id BIGINT, v BIGINT, PRIMARY KEY (k, id)) PARTITION BY HASH (k) PARTITIONS 2"
        )
        scheme = SCHEMES[kind](partitions)
        context.known["many"] = structs.replace(table, scheme_or_reference=scheme)
        context.owners[scheme.affinity_group()] = assign(scheme.partition_count, ("m1", "m2", "m3"), 1)
        context.version += 1
        sql, params = "SELECT v FROM many WHERE k = ? AND id = ?", [57, 1]
        statement = context.select(sql, params)
        tree = statement.plan.scans[0].tree
        assert len(tree.bind(params)) == 1
        assert context.explain(sql, params).json["pruning"]["scans"][0]["partitions"] == list(tree.bind(params).ids)
        bind_s.append(fastest_s(lambda tree=tree, params=params: [tree.bind(params) for _ in range(20)]))
        explain_s.append(fastest_s(lambda sql=sql, params=params: context.explain(sql, params)))
        wire_bytes.append(len(statement.plan.encoded()))
    assert bind_s[1] < RATIO_MAX * bind_s[0]
    assert explain_s[1] < RATIO_MAX * explain_s[0]
    assert wire_bytes[1] < 1.5 * wire_bytes[0]
