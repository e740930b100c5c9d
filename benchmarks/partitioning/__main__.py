"""How fast are rows routed to partitions, and partitions dealt to members?

Question: does the vectorised partition function keep up with a load (10 M integer keys/s, 2 M short strings/s on one
core), what does a client pay to route one statement, and what does a membership change cost at 100,000 partitions?
Data: random keys from a fixed seed, generated in memory.
Control: the C library's XXH64 called once per row from Python, on the same keys, in the same run; its partitions are
compared before anything is timed. Metric: median and spread of seven runs after one to warm up, as a rate per second on
one thread.

Run: ``python -m benchmarks.partitioning [--rows N]``.
"""

from __future__ import annotations

import argparse
import statistics
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import xxhash

from secateur.partitioning.schemes.components import HashComponent
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.schemes.scheme_rules import build_scheme, split_at
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.topology.affinity import assign
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.types.column_type import parse_type

_RUNS: Final = 7
_SCALAR_CALLS: Final = 100_000
_TARGETS: Final = {"BIGINT": 10e6, "VARCHAR, 6 to 9 bytes": 2e6}
_TYPES: Final = {
    name: parse_type(text)
    for name, text in {
        "n": "BIGINT",
        "i": "INTEGER",
        "s": "VARCHAR",
        "t": "VARCHAR",
        "d": "DATE",
        "m": "DECIMAL(12,2)",
        "w": "DECIMAL(30,2)",
        "u": "UUID",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Rate:
    """One measurement: what, items per second (median, slowest, fastest), and the target if there is one."""

    what: str
    median: float
    slowest: float
    fastest: float
    target: float | None = None


def measure(what: str, items: int, run: Callable[[], object], target: float | None = None) -> Rate:
    """Time a function that handles ``items`` items: one run to warm up, then the runs that count."""
    run()
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return Rate(what, items / statistics.median(seconds), items / max(seconds), items / min(seconds), target)


def scheme(*columns: str, splits: int = 0, partitions: int = 271) -> PartitionScheme:
    """HASH over the columns, and ranges of equal width over the days when ``splits`` is given."""
    bounds = (
        split_at([(date.fromordinal(date(1980, 1, 1).toordinal() + day * 20_000 // splits),) for day in range(splits)])
        if splits
        else ()
    )
    return build_scheme(
        hashes=[HashComponent(columns, partitions)],
        range_columns=["d"] if splits else [],
        ranges=bounds,
        types=_TYPES,
        primary_key=list(_TYPES),
        table="bench",
    )


def make_rows(rows: int) -> pa.Table:
    """Random keys of each type."""
    rng = np.random.default_rng(20240229)
    numbers = rng.integers(-(2**63), 2**63 - 1, rows)
    unscaled = np.ascontiguousarray(np.stack([numbers // 10**7, np.where(numbers < 0, -1, 0)], axis=1))
    decimals = pa.Array.from_buffers(pa.decimal128(30, 2), rows, [None, pa.py_buffer(unscaled.tobytes())])
    return pa.table(
        {
            "n": numbers,
            "i": rng.integers(-(2**31), 2**31 - 1, rows, dtype=np.int32),
            "s": pa.array([f"N{number}" for number in rng.integers(10_000, 10**8, rows)]),
            "t": pa.array([f"customer/{number:032d}/orders" for number in rng.integers(0, 10**9, rows)]),
            "d": pa.array(rng.integers(3652, 23_652, rows, dtype=np.int32)).cast(pa.date32()),
            "m": decimals.cast(pa.decimal128(12, 2), safe=False),
            "w": decimals,
            "u": pa.array([uuid.UUID(int=int(number) % 2**128).bytes for number in numbers], pa.uuid()),
        }
    )


def vectorised(rows: pa.Table) -> Iterator[Rate]:
    """Whole batches, by type."""
    count = rows.num_rows
    cases = {
        "BIGINT": scheme("n"),
        "INTEGER": scheme("i"),
        "DATE": scheme("d"),
        "DECIMAL(12,2)": scheme("m"),
        "VARCHAR, 6 to 9 bytes": scheme("s"),
        "VARCHAR, 48 bytes": scheme("t"),
        "DECIMAL(30,2)": scheme("w"),
        "UUID": scheme("u"),
        "BIGINT, VARCHAR": scheme("n", "s"),
        "BIGINT and 1,000 ranges of DATE": scheme("n", splits=1000),
    }
    for what, case in cases.items():
        yield measure(what, count, partial(case.partitions_of, rows), _TARGETS.get(what))
    columns = ("n", "s", "d", "m")
    table = TableDef("bench", 1, tuple(Column(name, _TYPES[name]) for name in columns), ("n",), scheme("n"))
    narrow = rows.select(columns)
    yield measure("split of four columns by BIGINT", count, lambda: split(narrow, table))


def control(rows: pa.Table) -> Iterator[Rate]:
    """One call of the C library per row. Says first whether both agree."""
    numbers, texts = rows["n"].to_pylist(), rows["s"].to_pylist()
    pack, digest = struct.Struct("<q").pack, xxhash.xxh64_intdigest

    def signed(state: int) -> int:
        return state - 2**64 if state >= 2**63 else state

    def by_number() -> list[int]:
        return [signed(digest(pack(number), 42)) % 271 for number in numbers]

    def by_text() -> list[int]:
        return [signed(digest(text.encode(), 42)) % 271 for text in texts]

    if by_number() != scheme("n").partitions_of(rows).tolist() or by_text() != scheme("s").partitions_of(rows).tolist():
        raise SystemExit("the partitions differ from the control's: the times would mean nothing")
    yield measure("control: XXH64 per row, BIGINT", rows.num_rows, by_number)
    yield measure("control: XXH64 per row, VARCHAR", rows.num_rows, by_text)


def scalar() -> Iterator[Rate]:
    """One key at a time."""
    cases: dict[str, tuple[PartitionScheme, Mapping[str, object]]] = {
        "one BIGINT": (scheme("n"), {"n": 12345}),
        "one VARCHAR": (scheme("s"), {"s": "N14228"}),
        "BIGINT, VARCHAR": (scheme("n", "s"), {"n": 12345, "s": "N14228"}),
        "BIGINT and 1,000 ranges of DATE": (scheme("n", splits=1000), {"n": 12345, "d": date(2013, 1, 1)}),
    }
    for what, (case, key) in cases.items():
        yield measure(f"partition_of: {what}", _SCALAR_CALLS, partial(_route_often, case, key))


def _route_often(case: PartitionScheme, key: Mapping[str, object]) -> None:
    for _ in range(_SCALAR_CALLS):
        case.partition_of(key)


def ownership(partitions: int = 100_000) -> Iterator[Rate]:
    """Owners of many partitions, and the same when membership changes."""
    ids = [f"m{number}" for number in range(1, 17)]
    before = assign(partitions, ids, 2)
    yield measure("assign to 16 members, 2 copies", partitions, lambda: assign(partitions, ids, 2))
    yield measure("a 17th joins", partitions, lambda: assign(partitions, [*ids, "m17"], 2, before))
    yield measure("one of 16 leaves", partitions, lambda: assign(partitions, ids[1:], 2, before))


def show(title: str, unit: str, rates: Iterator[Rate]) -> None:
    """Print a table while it is measured."""
    print(f"\n{title}")
    print(f"{'':44} {'median':>12} {'slowest':>12} {'fastest':>12}  {unit} per second")
    for rate in rates:
        verdict = (
            ""
            if rate.target is None
            else f"  target {rate.target:,.0f}: {'met' if rate.median >= rate.target else 'MISSED'}"
        )
        print(f"{rate.what:44} {rate.median:12,.0f} {rate.slowest:12,.0f} {rate.fastest:12,.0f}{verdict}", flush=True)


def main() -> None:
    """Measure and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows to route in each run")
    rows = make_rows(parser.parse_args().rows)
    show("Control", "rows", control(rows))
    show("Arrow batches to partitions", "rows", vectorised(rows))
    show("One row to its partition, as a thin client does it", "calls", scalar())
    show("Partitions to members", "partitions", ownership())


if __name__ == "__main__":
    main()
