"""The conformance kit for connectors finds each way in which one breaks its contract."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.connectors import (
    Connector,
    ConnectorContext,
    ConnectorPartition,
    ExternalScanRequest,
    between,
    one_of,
    parquet_folder,
)
from secateur.testing import verify_connector


class Parts(Connector):
    """Two partitions of a table in memory."""

    def schema(self, context: ConnectorContext) -> pa.Schema:
        return pa.schema([("k", pa.int64()), ("name", pa.string()), ("day", pa.date32()), ("x", pa.float64())])

    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        return [
            ConnectorPartition("low", {"k": between(None, 10, upper_closed=False), "name": one_of("a", "b", None)}),
            ConnectorPartition("high", {"k": between(10, None)}),
        ]

    def rows(self, key: str | int) -> pa.Table:
        numbers = range(10) if key == "low" else range(10, 20)
        return pa.table(
            {
                "k": numbers,
                "name": ["a", "b", None, "it's", "b"] * 2 if key != "low" else ["a", "b", None, "a", "b"] * 2,
                "day": [date(2024, 1, 1 + n) for n in numbers],
                "x": [float("nan") if n == 3 else n / 2 for n in numbers],
            }
        )

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        keep = request.predicate.to_arrow({})
        assert keep is None
        yield from self.rows(partition.key).to_batches(max_chunksize=3)


class TooNarrow(Parts):
    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        return [ConnectorPartition("low", {"k": between(0, 8)}), ConnectorPartition("high")]


class NullsNotDeclared(Parts):
    def partitions(self, schema: pa.Schema, context: ConnectorContext) -> Sequence[ConnectorPartition]:
        return [ConnectorPartition("low", {"name": one_of("a", "b")}), ConnectorPartition("high")]


class LosesByPredicate(Parts):
    """It takes the greatest value of a closed span for one outside of it."""

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        domain = request.predicate.domain_of("k")
        rows = self.rows(partition.key)
        if domain.spans and domain.spans[0].upper is not None:
            rows = rows.slice(0, sum(k < domain.spans[0].upper for k in rows["k"].to_pylist()))
        yield from rows.to_batches()


class LosesByColumns(Parts):
    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        rows = self.rows(partition.key).select(request.columns)
        yield from (rows.group_by(request.columns).aggregate([]) if len(request.columns) == 1 else rows).to_batches()


class LosesByLimit(Parts):
    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        if request.limit != 1:
            yield from super().read(partition, request, context)


class Unsteady(Parts):
    def __init__(self) -> None:
        self.reads: Counter[str | int] = Counter()

    def read(
        self, partition: ConnectorPartition, request: ExternalScanRequest, context: ConnectorContext
    ) -> Iterator[pa.RecordBatch]:
        self.reads[partition.key] += 1
        yield from self.rows(partition.key).slice(0, 10 - self.reads[partition.key] % 2).to_batches()


def test_what_keeps_the_contract_passes() -> None:
    verify_connector(Parts())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (TooNarrow, "partition 'low' holds the value 9 in column k and does not declare it"),
        (NullsNotDeclared, "partition 'low' holds the value None in column name and does not declare it"),
        (LosesByPredicate, "WHERE \"k\" <= CAST('0' AS BIGINT), reading ['low']: 0 rows came, 1 were expected"),
        (LosesByColumns, "partition 'low', with the columns ('name',): 3 rows came, 10 were expected"),
        (LosesByLimit, "partition 'low' has 10 rows, and gave 0 when 1 were wanted"),
        (Unsteady, "partition 'low' has other rows when it is read again"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_what_breaks_it_is_found(kind: type[Connector], message: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        verify_connector(kind())


def test_folders_pass(tmp_path: Path) -> None:
    for country in ("de", "__HIVE_DEFAULT_PARTITION__"):
        where = tmp_path / f"country={country}"
        where.mkdir()
        rows = pa.table({"k": range(20), "name": [None, "a", "b", "ü"] * 5, "flag": [True, None] * 10})
        pq.write_table(rows, where / "0.parquet", row_group_size=4)
    verify_connector(parquet_folder(tmp_path), directories=[tmp_path])
