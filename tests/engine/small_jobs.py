"""Tables, processors and DAGs that several tests of the engine run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from secateur.connectors import collect, table_source
from secateur.dag import (
    DAG,
    Edge,
    EdgeConfig,
    Emitter,
    FactorySupplier,
    OnMembers,
    Placement,
    Processor,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    between,
)
from secateur.engine.processors import filter_rows
from secateur.partitioning.schemes import HashComponent, build_scheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type, type_of_arrow


def orders_table() -> TableDef:
    """16 partitions by customer."""
    types = {"customer": parse_type("VARCHAR"), "number": parse_type("BIGINT"), "amount": parse_type("DOUBLE")}
    scheme = build_scheme(
        hashes=[HashComponent(("customer",), 16)], types=types, primary_key=("customer", "number"), table="orders"
    )
    columns = tuple(Column(name, sql_type, nullable=name == "amount") for name, sql_type in types.items())
    return TableDef("orders", 1, columns, ("customer", "number"), scheme, backups=0)


def table_of(rows: pa.Table, key: str) -> TableDef:
    """A table ``rows`` with the columns of some rows, by its primary key: 7 partitions."""
    types = {field.name: type_of_arrow(field.type) for field in rows.schema}
    scheme = build_scheme(hashes=[HashComponent((key,), 7)], types=types, primary_key=(key,), table="rows")
    return TableDef(
        "rows",
        1,
        tuple(Column(name, kind, nullable=name != key) for name, kind in types.items()),
        (key,),
        scheme,
        backups=0,
    )


class Numbers(Processor):
    """Offers 0 to count - 1, ``rows`` in a batch, with the member that made them."""

    def __init__(self, count: int, rows: int = 1) -> None:
        self._count = count
        self._rows = rows
        self._emitter: Emitter | None = None

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, self._count, self._rows):
            xs = range(start, min(start + self._rows, self._count))
            yield pa.record_batch(
                {"x": pa.array(xs, pa.int64()), "made": [f"{self.context.member}.{self.context.local_index}"] * len(xs)}
            )

    def complete(self) -> bool:
        self._emitter = self._emitter or Emitter(self.outbox, self._batches())
        return self._emitter.emit()


class Stamp(Processor):
    """Adds the member and processor that saw the rows."""

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        seen = f"{self.context.member}.{self.context.local_index}"
        return self.outbox.offer(batch.append_column("seen", pa.array([seen] * batch.num_rows)))


class Place(ProcessorMetaSupplier):
    """Runs processors on some members."""

    def __init__(self, make: Callable[[], Processor], *members: str) -> None:
        self._make = make
        self._members = members

    def placement(self) -> Placement:
        return OnMembers(self._members, parallelism_max=8)

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: FactorySupplier(self._make) for member in members}


class Forever(Processor):
    """A source that never ends."""

    def complete(self) -> bool:
        self.outbox.offer(pa.record_batch({"x": [1]}))
        return False


def pipeline(source: Any, edge: Callable[[Edge], Edge], middle: Any = Stamp, *, parallelism: int = 2) -> DAG:
    dag = DAG()
    dag.new_vertex("source", source, parallelism)
    dag.new_vertex("middle", middle, parallelism)
    dag.new_vertex("out", collect())
    return dag.edge(edge(between("source", "middle"))).edge(between("middle", "out").all_to_one().distributed())


def read_by_key(*, window: int = 1 << 20) -> DAG:
    dag = DAG()
    dag.new_vertex("scan", table_source("orders", keys=[{"customer": "C7"}]))
    dag.new_vertex("big", filter_rows(lambda b: pa.compute.greater(b.column("amount"), 36.0), cooperative=True))
    dag.new_vertex("out", collect())
    config = EdgeConfig(window_bytes_max=window)
    return dag.edge(between("scan", "big")).edge(between("big", "out").all_to_one().distributed().with_config(config))
