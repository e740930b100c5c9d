"""Prints the CREATE TABLE statement of an existing table: the inverse of :mod:`secateur.planner.ddl.create_table`.

A table made from it has the same columns, key, ranges and backups. Its partitions may have other numbers if ranges were
added or dropped since the table was made, because numbers are assigned in the order in which ranges are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from secateur.partitioning.schemes.components import (
    HashComponent,
    IntervalPartitioning,
    IntervalUnit,
    RangeComponent,
    RangePartition,
)
from secateur.partitioning.schemes.scheme import PartitionScheme
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.sql_text import quoted, text_literal

_UNITS: Final = {IntervalUnit.MONTH: "MONTH", IntervalUnit.DAY: "DAY", IntervalUnit.MICROSECOND: "MICROSECOND"}


def table_sql(table: TableDef, *, or_replace: bool = False) -> str:
    """The statement, on one line."""
    checks = [f"CONSTRAINT {quoted(check.name)} CHECK ({check.condition})" for check in table.checks]
    key = [f"PRIMARY KEY {_names(table.declared_key)}"] if table.declared_key else []
    elements = ", ".join([*map(_column, table.visible_columns), *key, *checks])
    placed = (
        "REPLICATED" if table.replicated else f"PARTITION BY {partition_by_sql(table.scheme)} BACKUPS {table.backups}"
    )
    options = " WITH (change_feed = true)" if table.change_feed else ""
    comment = _comment(table.comment)
    made = f"CREATE {'OR REPLACE ' if or_replace else ''}TABLE {quoted(table.name)}"
    return f"{made} ({elements}) {placed}{options}{comment}"


def partition_by_sql(scheme: PartitionScheme) -> str:
    """Return the text after PARTITION BY; empty for a scheme without components."""
    parts = [_hash(component) for component in scheme.hashes]
    if scheme.range is not None:
        parts.append(f"RANGE {_names(scheme.range.columns)} {_ranges(scheme.range)}")
    return ", ".join(parts)


def range_sql(partition: RangePartition, *, is_catch_all: bool = False) -> str:
    """One range as it is written."""
    words = ["DEFAULT PARTITION" if is_catch_all else "PARTITION"]
    if partition.name is not None:
        words.append(quoted(partition.name))
    if not is_catch_all:
        lower = "" if partition.lower is None else f"{_tuple(partition.lower)} <= "
        upper = "" if partition.upper is None else f" < {_tuple(partition.upper)}"
        words.append(f"{lower}VALUES{upper}")
    if partition.hashes is not None:
        words.append(", ".join(map(_hash, partition.hashes)) or "NO HASH")
    return " ".join(words)


def _column(column: Column) -> str:
    not_null = "" if column.nullable else " NOT NULL"
    default = "" if column.default is None else f" DEFAULT {column.default}"
    return f"{quoted(column.name)} {column.type}{not_null}{default}{_comment(column.comment)}"


def _comment(text: str | None) -> str:
    return "" if text is None else f" COMMENT {text_literal(text)}"


def _ranges(component: RangeComponent) -> str:
    catch_all = [] if component.catch_all is None else [range_sql(component.catch_all, is_catch_all=True)]
    listed = [*map(range_sql, component.ranges), *catch_all]
    ranges = f"({', '.join(listed)})" if listed else ""
    return ranges if component.every is None else f"EVERY {_every(component.every)} {ranges}".rstrip()


def _every(every: IntervalPartitioning) -> str:
    unit = _UNITS.get(every.unit)
    width = str(every.count) if unit is None else f"INTERVAL {every.count} {unit}"
    return width if every.start is None else f"{width} STARTING {_literal(every.start)}"


def _hash(component: HashComponent) -> str:
    seed = f" SEED {component.seed}" if component.seed else ""
    spread = "RANDOM" if component.is_random else f"HASH {_names(component.columns)}"
    return f"{spread} PARTITIONS {component.partitions}{seed}"


def _names(columns: Sequence[str]) -> str:
    return f"({', '.join(map(quoted, columns))})"


def _tuple(values: tuple[Any, ...]) -> str:
    return f"({', '.join(map(_literal, values))})"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case UUID():
            return f"UUID '{value}'"
        case _:
            return text_literal(str(value))
