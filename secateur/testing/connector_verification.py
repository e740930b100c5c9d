"""The conformance kit for connectors: one that passes it loses no row by pruning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.connectors.external import connector as interface
from secateur.connectors.external.connector import (
    columns_of,
    needed_partitions,
    partitions_of,
    settled_connector,
)
from secateur.connectors.external.external_source import needed_rows
from secateur.engine.kernels.fragment import Fragment, run
from secateur.partitioning.pruning.domain import Span, points, within
from secateur.partitioning.pruning.row_predicate import RowPredicate
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import TypeKind
from secateur.partitioning.types.sql_text import quoted
from secateur.testing.verify import difference

_TABLE: Final = "t"
_VALUES_MAX: Final = 5
_COMPARED: Final = frozenset({TypeKind.VARCHAR, TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.DECIMAL, TypeKind.BOOLEAN})


def verify_connector(connector: interface.Connector, *, directories: Sequence[str | Path] = ()) -> None:
    """Read a connector in the ways in which statements do, and compare what comes with what it declares.

    It is encoded and decoded first, as it travels. Then each partition is read several times: with all columns, with
    single ones, with predicates on each column, and with limits. Use it over a source of some hundred rows.

    >>> import pyarrow as pa
    >>> from secateur.connectors import Connector, ConnectorPartition, between
    >>> from secateur.testing import verify_connector
    >>> class Tens(Connector):
    ...     def schema(self, context):
    ...         return pa.schema([("k", pa.int64())])
    ...
    ...     def partitions(self, schema, context):
    ...         return [ConnectorPartition(n, {"k": between(10 * n, 10 * n + self.width)}) for n in range(3)]
    ...
    ...     def read(self, partition, request, context):
    ...         yield pa.record_batch({"k": range(10 * partition.key, 10 * partition.key + 10)})
    ...
    ...     width = 9
    >>> verify_connector(Tens())
    >>> Tens.width = 8
    >>> verify_connector(Tens())
    Traceback (most recent call last):
    AssertionError: partition 0 holds the value 9 in column k and does not declare it: statements with it lose it

    Args:
        connector: The connector.
        directories: As ``external_directories`` of a cluster.

    Raises:
        AssertionError: It breaks its contract; the message says how.
        Error: What it raises.
    """
    context = interface.ConnectorContext("m1", tuple(map(Path, directories)))
    trial = _Trial(connector, context)
    trial.check_partitions()
    trial.check_columns()
    trial.check_predicates()
    trial.check_limits()


class _Trial:
    """A connector as it arrives at a member, its partitions, and all rows of each."""

    def __init__(self, connector: interface.Connector, context: interface.ConnectorContext) -> None:
        arrived = interface.decode_connector(connector.encoded(), allow_code=True, table=_TABLE)
        self.connector = settled_connector(arrived, _TABLE, context)
        self.context = context
        self.columns = columns_of(self.connector, _TABLE, context)
        self.names = tuple(column.name for column in self.columns)
        self.table = TableDef(_TABLE, 0, self.columns, (), PartitionScheme(), backups=0, replicated=True)
        self.partitions = partitions_of(self.connector, self.table, context)
        again = partitions_of(self.connector, self.table, context)
        _check(
            again == self.partitions,
            (
                f"partitions() returned {[found.key for found in self.partitions]} and then"
                f" {[found.key for found in again]}, or other values of them, though its source did not change"
            ),
        )
        self.rows = {partition.key: self.read(partition, self.names) for partition in self.partitions}

    def read(
        self,
        partition: interface.ConnectorPartition,
        columns: tuple[str, ...],
        predicate: RowPredicate | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        request = interface.ExternalScanRequest(columns, self.table.arrow_schema, predicate or RowPredicate(), limit)
        rows = needed_rows(self.connector, _TABLE, self.columns, partition, request, self.context, checks_values=False)
        found = list(rows)
        ordered = pa.schema([field for field in self.table.arrow_schema if field.name in columns])
        return pa.concat_tables([empty_table(ordered), *found])

    def check_partitions(self) -> None:
        for partition in self.partitions:
            rows = self.rows[partition.key]
            found = difference(self.read(partition, self.names), rows, ordered=False)
            _check(found is None, f"partition {partition.key!r} has other rows when it is read again: {found}")
            for name, said in partition.values.items():
                kind = self.table.column(name).type
                for value in dict.fromkeys(rows.column(name).to_pylist()):
                    _check(
                        said.holds(coerce(value, kind, column=name)),
                        (
                            f"partition {partition.key!r} holds the value {value!r} in column {name} and does not"
                            " declare it: statements with it lose it"
                        ),
                    )

    def check_columns(self) -> None:
        wanted = [(name,) for name in self.names] + [tuple(reversed(self.names))]
        for columns in wanted:
            for partition in self.partitions:
                rows = self.rows[partition.key].select([name for name in self.names if name in columns])
                found = difference(self.read(partition, columns), rows, ordered=False)
                _check(found is None, f"partition {partition.key!r}, with the columns {columns}: {found}")

    def check_predicates(self) -> None:
        whole = pa.concat_tables([empty_table(self.table.arrow_schema), *self.rows.values()])
        for column in self.columns:
            for predicate, condition in _predicates(column, whole):
                kept = needed_partitions(self.partitions, predicate)
                read = [self.read(partition, self.names, predicate) for partition in kept]
                pruned = pa.concat_tables([empty_table(self.table.arrow_schema), *read])
                found = difference(self.filtered(pruned, condition), self.filtered(whole, condition), ordered=False)
                _check(found is None, f"WHERE {condition}, reading {[part.key for part in kept]}: {found}")

    def check_limits(self) -> None:
        for partition in self.partitions:
            count = self.rows[partition.key].num_rows
            for limit in (1, count):
                rows = self.read(partition, self.names, limit=limit).num_rows
                _check(
                    rows == min(limit, count),
                    (f"partition {partition.key!r} has {count} rows, and gave {rows} when {limit} were wanted"),
                )

    def filtered(self, rows: pa.Table, condition: str) -> pa.Table:
        """The rows for which a condition of SQL holds, from DuckDB."""
        types = {column.name: column.type for column in self.columns}
        sql = f"SELECT * FROM {_TABLE} WHERE {condition}"
        fragment = Fragment.over(sql, {_TABLE: types}, [(name, str(kind)) for name, kind in types.items()])
        return run(fragment, {_TABLE: rows}, ())


def _predicates(column: Column, rows: pa.Table) -> Iterator[tuple[RowPredicate, str]]:
    """Predicates on a column, and the same as conditions of SQL."""
    name, kind = quoted(column.name), column.type
    yield RowPredicate(nulls=(column.name,)), f"{name} IS NULL"
    if not (kind.is_integer or kind.kind in _COMPARED):
        return
    distinct = {value for value in rows.column(column.name).to_pylist() if value is not None}
    values: list[Any] = sorted(coerce(value, kind, column=column.name) for value in distinct)
    step = max(1, len(values) // _VALUES_MAX)
    for value in values[::step]:
        literal = f"CAST('{str(value).replace(chr(39), chr(39) * 2)}' AS {kind})"
        for domain, condition in (
            (points([value]), f"{name} = {literal}"),
            (within([Span(value, None, False)]), f"{name} > {literal}"),
            (within([Span(None, value)]), f"{name} <= {literal}"),
            (points([value]).complement(), f"{name} <> {literal}"),
        ):
            yield RowPredicate((({column.name: domain},),)), condition


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
