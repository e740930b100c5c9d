"""Run the suite; see the package's docstring."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.storage.memory import write_frames
from benchmarks.storage.trips import readings, readings_rows, trips, trips_rows
from secateur.partitioning.pruning.key_range import KeyBoundary, KeyPrefix, KeyRange, KeyRanges, KeySlice
from secateur.partitioning.topology.owner_routing import split
from secateur.storage.change import ChangeOperation
from secateur.storage.member_store import MemberStore

_ROUNDS: Final = 9
_OUTPUT: Final = Path("build/bench/storage.json")
_SMALL, _LARGE, _LOADED, _NARROW = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something to time: ``calls`` calls a round."""

    group: str
    name: str
    calls: int
    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Result:
    """Times of one candidate in microseconds per call."""

    group: str
    name: str
    median_us: float
    fastest_us: float
    slowest_us: float


def main() -> None:
    """Compare answers, measure, report."""
    store = MemberStore()
    for table_id, rows, tails in [(_SMALL, 4_000, 48), (_LARGE, 1_000_000, 12_000)]:
        table = trips(1, table_id)
        store.create_table(table, [0])
        store.apply(table_id, 0, ChangeOperation.APPEND, trips_rows(table, rows, tails))
    narrow = readings(_NARROW)
    store.create_table(narrow, [0])
    store.apply(_NARROW, 0, ChangeOperation.APPEND, readings_rows(narrow, 4_000))
    check_answers(store)
    results = run([*searches(store), *writes(store), *loads()])
    with TemporaryDirectory() as folder:
        frames = Path(folder) / "frames"
        write_frames(frames, 1_000_000)
        memory = json.loads(
            subprocess.run(
                [sys.executable, "-m", "benchmarks.storage.memory", frames], check=True, capture_output=True, text=True
            ).stdout
        )
    report(results, memory)


def check_answers(store: MemberStore) -> None:
    """Raise unless every kind of search gives what DuckDB gives."""
    rows = store.relation(_SMALL, [0])
    key = [rows[name][2000].as_py() for name in ("tail", "at", "n")]
    with duckdb.connect() as connection:
        connection.register("trips", rows)
        for width, where in [
            (1, "tail = $1"),
            (2, 'tail = $1 AND "at" = $2'),
            (3, 'tail = $1 AND "at" = $2 AND n = $3'),
        ]:
            expected = connection.execute(f"SELECT n FROM trips WHERE {where} ORDER BY ALL", key[:width]).fetchall()
            found = store.relation(_SMALL, [0], ["n"], KeyPrefix(tuple(key[:width])))["n"].to_pylist()
            if sorted(found) != [row[0] for row in expected]:
                raise AssertionError(f"lookup by {width} columns: {found} instead of {expected}")


def searches(store: MemberStore) -> list[Candidate]:
    """Lookups in 4,000 and 1,000,000 rows beside a filter."""

    def found(table_id: int, keys: KeySlice) -> Callable[[], pa.Table]:
        return partial(store.relation, table_id, [0], None, keys)

    group = "search, 4,000 rows of 3 columns, key (BIGINT, VARCHAR)"
    result = [
        Candidate(group, "lookup by the whole key", 2000, found(_NARROW, KeyPrefix((137, "channel-07")))),
        Candidate(group, "lookup by the first column", 2000, found(_NARROW, KeyPrefix((137,)))),
    ]
    for table_id, label in [(_SMALL, "4,000 rows of 19 columns"), (_LARGE, "1,000,000 rows of 19 columns")]:
        rows = store.relation(table_id, [0])
        key = [rows[name][rows.num_rows // 2].as_py() for name in ("tail", "at", "n")]
        columns = ["tail", "at", "x1", "note1"]
        between = KeyRange(KeyBoundary(tuple(key[:2]), after=False), KeyBoundary(tuple(key[:1]), after=True))
        group = f"search, {label}"
        result += [
            Candidate(group, "lookup by the whole key", 2000, found(table_id, KeyPrefix(tuple(key)))),
            Candidate(group, "lookup by the first column", 2000, found(table_id, KeyPrefix(tuple(key[:1])))),
            Candidate(
                group,
                "relation: 4 columns by the first column",
                2000,
                partial(store.relation, table_id, [0], columns, KeyPrefix(tuple(key[:1]))),
            ),
            Candidate(group, "slice between two bounds", 2000, found(table_id, KeyRanges((between,)))),
        ]
        if table_id == _SMALL:
            result.append(Candidate(group, "control: Table.filter", 200, partial(scan, rows, key[0])))
    return result


def scan(rows: pa.Table, tail: str) -> pa.Table:
    """What a lookup would be without an order."""
    return rows.filter(pc.equal(rows["tail"], tail))


def writes(store: MemberStore) -> list[Candidate]:
    """Single rows into 4,000 and 1,000,000 rows, alone and before a lookup, beside a merge of the partition."""
    result = []
    for table_id, label, merges in [(_SMALL, "4,000 rows", 20), (_LARGE, "1,000,000 rows", 1)]:
        rows = store.relation(table_id, [0])
        one = rows.slice(10, 1)
        key = [rows[name][10].as_py() for name in ("tail", "at", "n")]

        def upsert(table_id: int = table_id, one: pa.Table = one) -> None:
            store.apply(table_id, 0, ChangeOperation.UPSERT, one)

        def upsert_and_look_up(table_id: int = table_id, one: pa.Table = one, key: Sequence[Any] = tuple(key)) -> None:
            store.apply(table_id, 0, ChangeOperation.UPSERT, one)
            store.relation(table_id, [0], None, KeyPrefix(tuple(key)))

        def upsert_and_merge(table_id: int = table_id, one: pa.Table = one) -> None:
            store.apply(table_id, 0, ChangeOperation.UPSERT, one)
            store.relation(table_id, [0])

        group = f"write one of 19 columns into {label}"
        result += [
            Candidate(group, "upsert one row", 200, upsert),
            Candidate(group, "upsert one row, then look it up", 100, upsert_and_look_up),
            Candidate(group, "control: upsert one row, then read all", merges, upsert_and_merge),
        ]
    return result


def loads() -> list[Candidate]:
    """A million rows into 271 empty partitions, in random and in key order, beside one big sort."""
    table = trips(271, _LOADED)
    rows = trips_rows(table, 1_000_000)
    parts = split(rows, table)
    ordered = {
        partition: piece.sort_by([(name, "ascending") for name in table.primary_key])
        for partition, piece in parts.items()
    }

    def load(pieces: dict[int, pa.Table]) -> None:
        store = MemberStore()
        store.create_table(table, range(271))
        for partition, piece in pieces.items():
            store.loads.stage("load", _LOADED, partition, 0, piece)
        if store.loads.prepare(
            "load", _LOADED, "append", {partition: [0] for partition in pieces}
        ) != store.loads.publish("load"):
            raise AssertionError("rows were lost")

    group = "load 1,000,000 rows into 271 partitions"
    return [
        Candidate(group, "stage, prepare, publish: random order", 1, lambda: load(parts)),
        Candidate(group, "stage, prepare, publish: in key order", 1, lambda: load(ordered)),
        Candidate(
            group,
            "control: Table.sort_by of all rows",
            1,
            lambda: rows.sort_by([(name, "ascending") for name in table.primary_key]),
        ),
    ]


def run(candidates: Sequence[Candidate]) -> list[Result]:
    """Time all candidates in turns."""
    times: dict[Candidate, list[float]] = {candidate: [] for candidate in candidates}
    for round_number in range(_ROUNDS + 1):
        for candidate in candidates:
            begin = time.perf_counter()
            for _ in range(candidate.calls):
                candidate.call()
            if round_number:
                times[candidate].append((time.perf_counter() - begin) / candidate.calls * 1e6)
    return [Result(x.group, x.name, statistics.median(taken), min(taken), max(taken)) for x, taken in times.items()]


def report(results: Sequence[Result], memory: dict[str, float]) -> None:
    """Print the tables and write the JSON."""
    console = Console()
    for group in dict.fromkeys(result.group for result in results):
        shown = Table("", "median us", "range us", title=group, title_justify="left", box=SIMPLE_HEAD)
        for result in results:
            if result.group == group:
                shown.add_row(
                    result.name, f"{result.median_us:,.1f}", f"{result.fastest_us:,.1f} to {result.slowest_us:,.1f}"
                )
        console.print(shown)
    ratios = {name: memory[name] / memory["raw"] for name in ("stats", "resident", "resident_replaced")}
    shown = Table(
        "",
        "of the raw Arrow size",
        title="1,000,000 rows at rest in 271 partitions",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    labels = {
        "stats": "as MemberStore.stats() says",
        "resident": "resident set after one load",
        "resident_replaced": "resident set after replacing all of it four times",
    }
    for name, label in labels.items():
        shown.add_row(label, f"{ratios[name]:.3f}")
    console.print(shown)
    _OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    machine = {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "pyarrow": version("pyarrow"),
        "numpy": version("numpy"),
    }
    _OUTPUT.write_text(
        json.dumps(
            {
                "machine": machine,
                "times": [asdict(result) for result in results],
                "memory": {**memory, "ratios": ratios},
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
