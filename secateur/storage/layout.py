"""The properties shared by all partitions of a table: the schema, the key order, and the check of every batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from secateur.duckdb_expressions import RowChecks
from secateur.engine_limits import EngineLimits
from secateur.errors import DataError, DuplicateKeyError, NullKeyError, TopologyChangedError
from secateur.partitioning.tables.conform import made_default_name
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.arrow_layout import empty_table
from secateur.partitioning.types.coerce import uncertain_finder
from secateur.partitioning.types.column_type import TEXTUAL, SqlType, TypeKind
from secateur.storage.key_order import KeyOrder
from secateur.wire import travels_short

_LONG_KINDS: Final = TEXTUAL | {TypeKind.VARCHAR, TypeKind.BLOB}


class PlainForm:
    """The form of rows, or of keys, that come as plain values.

    Attributes:
        columns: The columns that they have.
        schema: The same for Arrow.
        texts: The positions of those whose values have a length.
        key_positions: The positions of the primary key, in key order.
        uncertain: Finds values that are perhaps not canonical (:func:`~secateur.partitioning.types.coerce.coerce`).
        partition_of: The partition of the canonical values of one; None where it cannot be computed here.
    """

    __slots__ = ("columns", "key_positions", "partition_of", "schema", "texts", "uncertain")

    def __init__(
        self,
        columns: Sequence[Column],
        schema: pa.Schema,
        key_positions: Sequence[int],
        partition_of: Callable[[Sequence[Any]], int] | None,
    ) -> None:
        self.columns = columns
        self.schema = schema
        self.key_positions = key_positions
        self.partition_of = partition_of
        self.texts = [at for at, column in enumerate(columns) if column.type.kind in _LONG_KINDS]
        self.uncertain = uncertain_finder((column.type, column.nullable) for column in columns)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The resolved form of a table description, made once per table and member.

    Attributes:
        tdef: The description.
        schema: ``tdef.arrow_schema``: the schema of every table at rest.
        types: The types of its columns.
        hugeints: The positions of those that are HUGEINT, which Arrow gives as Decimals.
        takes_values: Whether rows may come as plain values, which represent these types completely.
        plain_rows: The form of these.
        plain_keys: The form of keys of rows to delete, in key order.
        no_rows: A table of that schema without rows; made once, because a table may have 100,000 partitions.
        positions: The positions of the columns in it, by name.
        key_schema: The key columns in key order: the schema of a table of keys to delete.
        partition_of_prefix: The partition of the leading values of the key, by how many there are; None where it cannot
            be computed here, and where these leave several partitions.
        order: The order of the rows.
        checks: The CHECKs of the table; None without any.
        may_lack: The columns that rows of an upsert may lack.
        makes_defaults: Whether a column has a default that is not constant.
        limits: Those of the member.
    """

    tdef: TableDef
    schema: pa.Schema
    types: tuple[SqlType, ...]
    hugeints: tuple[int, ...]
    takes_values: bool
    plain_rows: PlainForm
    plain_keys: PlainForm
    no_rows: pa.Table
    positions: Mapping[str, int]
    key_schema: pa.Schema
    partition_of_prefix: tuple[Callable[[Sequence[Any]], int] | None, ...]
    order: KeyOrder
    checks: RowChecks | None
    may_lack: frozenset[str]
    makes_defaults: bool
    limits: EngineLimits

    @classmethod
    def of(cls, tdef: TableDef, limits: EngineLimits | None = None) -> TableLayout:
        """Resolve a description.

        Raises:
            SchemeError: The table has no primary key.
            NotSupportedError: A key column has a type without an order.
        """
        order = KeyOrder.of(tdef)
        schema = tdef.arrow_schema
        positions = {name: position for position, name in enumerate(schema.names)}
        key_schema = pa.schema([schema.field(name) for name in order.names])
        types = tuple(column.type for column in tdef.columns)
        scheme = tdef.scheme
        is_placed = bool(scheme.columns) and scheme.is_known_function
        of_prefix = tuple(
            scheme.partition_function(order.names[:width])
            if is_placed and set(scheme.columns) <= set(order.names[:width])
            else None
            for width in range(len(order.names) + 1)
        )
        key_positions = [positions[name] for name in order.names]
        key_columns = [tdef.columns[at] for at in key_positions]
        return cls(
            tdef,
            schema,
            types,
            tuple(at for at, kind in enumerate(types) if kind.kind is TypeKind.HUGEINT),
            travels_short(types),
            PlainForm(tdef.columns, schema, key_positions, tdef.partition_of_row if is_placed else None),
            PlainForm(key_columns, key_schema, range(len(key_columns)), of_prefix[-1]),
            empty_table(schema),
            positions,
            key_schema,
            of_prefix,
            order,
            RowChecks(tdef) if tdef.checks else None,
            frozenset(column.name for column in tdef.columns if column.nullable or column.default is not None)
            - set(order.names),
            not all(default.is_constant for default in tdef.defaults.values()),
            limits or EngineLimits(),
        )

    def index_order(self, columns: Sequence[str]) -> KeyOrder:
        """The order by the columns of an index. Costs microseconds.

        Raises:
            UnknownColumnError: There is no such column.
            NotSupportedError: A column has a type without an order.
        """
        return KeyOrder.over(self.tdef, columns)

    def admit(self, rows: pa.Table | pa.RecordBatch) -> pa.Table:
        """Check rows that come from outside; the returned rows can be stored, or completed and stored.

        They may lack columns that can be NULL or have a default: rows of an upsert that keeps what they do not name.
        Everything is checked, including that offsets stay inside buffers and text is UTF-8, because the bytes may come
        from a socket and malformed ones could crash a kernel. Costs about 0.03 us a row and column.

        Raises:
            DataError: Other columns, order or types than the table's, or a malformed array.
            NullKeyError: A NULL in a NOT NULL column.
        """
        names = rows.schema.names
        if names == self.schema.names or not self.may_lack.difference(names):
            return self._admit(rows, self.schema)
        needed = []
        for field in self.schema:
            if field.name in names or field.name not in self.may_lack:
                needed.append(field)
            elif (made := made_default_name(field.name)) in names:
                needed.append(pa.field(made, field.type))
        return self._admit(rows, pa.schema(needed))

    def is_complete(self, rows: pa.Table) -> bool:
        """Whether admitted rows have all columns."""
        return bool(rows.num_columns == len(self.schema)) and (
            not self.makes_defaults or rows.schema.names == self.schema.names
        )

    def check_stored(self, rows: pa.Table) -> None:
        """Check complete rows against the CHECKs of the table, before they are stored.

        Raises:
            CheckFailedError: One is FALSE for one of them.
        """
        if self.checks is not None:
            self.checks.check(rows)

    def admit_keys(self, keys: pa.Table | pa.RecordBatch) -> pa.Table:
        """Check keys to delete: a table with at least the key columns, in any order; the others are ignored.

        Raises:
            DataError: A key column is missing, of another type, or malformed.
            NullKeyError: A NULL in a key.
        """
        needed = self.key_schema.names
        missing = [name for name in needed if name not in keys.schema.names]
        if missing:
            raise DataError(
                f"{self.tdef.name}: keys to delete need the columns {', '.join(needed)}; missing {', '.join(missing)}",
                table=self.tdef.name,
            )
        return self._admit(keys.select(needed), self.key_schema)

    def column_positions(self, columns: Sequence[str]) -> list[int]:
        """Positions of columns in :attr:`schema`, found without regard to case.

        Raises:
            UnknownColumnError: No such column.
        """
        try:
            return list(map(self.positions.__getitem__, columns))
        except KeyError:
            return [self.positions[self.tdef.column(name).name] for name in columns]

    def duplicate(self, rows: pa.Table, row: int, what: str) -> DuplicateKeyError:
        """Return the error for a row whose key exists already; ``what`` ends the sentence that begins with the key."""
        return DuplicateKeyError(
            f"{self.tdef.name}: key {self.order.describe(rows, row)} {what}",
            table=self.tdef.name,
            key=self.order.plain(rows, row),
        )

    def null_in(self, column: str, nulls: int, rows: int) -> NullKeyError:
        """Return the error for some rows that have NULL in a NOT NULL column."""
        return NullKeyError(
            f"{self.tdef.name}.{column} is NOT NULL, but {nulls} of {rows} rows have NULL there; fill or drop them",
            table=self.tdef.name,
            column=column,
        )

    def plain(self, values: list[Any]) -> list[Any]:
        """The values of a row as Arrow gives them, in canonical form."""
        for position in self.hugeints:
            if values[position] is not None:
                values[position] = int(values[position])
        return values

    def as_in_arrow(self, values: list[Any]) -> list[Any]:
        """The canonical values of a row as Arrow gives them: the other way round than :meth:`plain`."""
        for position in self.hugeints:
            if values[position] is not None:
                values[position] = Decimal(values[position])
        return values

    def check_partition(self, rows: pa.Table, partition: int) -> None:
        """Check on three rows, or on all for a catch-all, that the sender computes the same partitions as this member.

        A row in the wrong partition is found by full scans and missed by pruned ones: a silent wrong answer for ever
        after. Senders go wrong for all rows (another scheme, another function), therefore the first, middle and last
        row are enough. Costs about 5 us. Only the contents of a catch-all depend on the other ranges: a sender that
        does not know a new range goes wrong for the rows of that range alone. Costs 50 ns a row there.

        Raises:
            TopologyChangedError: One belongs elsewhere.
            NoRangeError: No range holds one of them.
        """
        scheme = self.tdef.scheme
        columns, count = scheme.columns, rows.num_rows
        if not columns or not count or not scheme.is_known_function:
            return
        suspects = {0, count // 2, count - 1}
        if scheme.is_catch_all(partition):
            suspects.update(np.flatnonzero(scheme.partitions_of(rows) != partition)[:1].tolist())
        for row in sorted(suspects):
            try:
                values = {name: rows.column(name)[row].as_py() for name in columns}
            except (OverflowError, ValueError):
                # A date or timestamp outside the years of Python, which no Python function can place.
                continue
            expected = scheme.partition_of(values)
            if expected != partition:
                message = (
                    f"{self.tdef.name}: the row with key {self.order.describe(rows, row)} belongs to"
                    f" partition {expected}, not {partition}; the sender used an outdated partition scheme:"
                    " fetch the table's description again and retry"
                )
                raise TopologyChangedError(message, table=self.tdef.name, partition=partition)

    def _admit(self, rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
        given = rows.schema
        is_same = isinstance(rows, pa.Table) and given.equals(schema, check_metadata=True)
        if not is_same and (given.names != schema.names or given.types != schema.types):
            expected = ", ".join(f"{field.name} {field.type}" for field in schema)
            actual = ", ".join(f"{field.name} {field.type}" for field in given)
            raise DataError(
                f"{self.tdef.name}: expected the columns ({expected}), got ({actual}); conform the rows to the table"
                " first",
                table=self.tdef.name,
            )
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.tdef.name}: the rows are malformed: {error}", table=self.tdef.name) from error
        for position, field in enumerate(schema):
            if not field.nullable and (nulls := rows.column(position).null_count):
                raise self.null_in(field.name, nulls, rows.num_rows)
        return rows if is_same else pa.Table.from_arrays(rows.columns, schema=schema)
