"""Scans with the conditions on them, read from the plans that DuckDB binds for statements over empty tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

import duckdb
import msgspec

from secateur.partitioning.pruning.operand import expressions_in, numbered, places
from secateur.partitioning.tables import TableDef
from secateur.planner.constrain import ScanConditions
from secateur.planner.prune import ScanBounds, bound_scan
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.protocol import json_decoder

DECODER = json_decoder(rel.AnyRelation)
PLAN = """
SELECT json_serialize_plan(?, skip_null := true, skip_empty := true, skip_default := true, optimize := false)::VARCHAR
"""
TOKENS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|\$(?P<number>[0-9]+)|\$(?P<name>[A-Za-z_]\w*)|(?P<mark>\?)")


class NotPlainError(Exception):
    """A statement has more than one scan with conditions above it, or DuckDB does not bind it."""


@dataclass
class BoundPlans:
    """An in-memory DuckDB with the columns of some tables."""

    duck: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    tables: dict[str, TableDef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.duck.execute("SET TimeZone = 'UTC'")

    def define(self, table: TableDef) -> None:
        columns = ", ".join(
            f'"{column.name}" {column.type}{"" if column.nullable else " NOT NULL"}' for column in table.columns
        )
        self.duck.execute(f'CREATE OR REPLACE TABLE "{table.name}" ({columns})')
        self.tables[table.name.casefold()] = table

    def plan(self, sql: str, params: Sequence[Any]) -> rel.AnyRelation:
        try:
            (found,) = self.duck.execute(PLAN, [with_types(sql, params)]).fetchall()
        except duckdb.Error as error:
            raise NotPlainError(str(error)) from error
        text = found[0]
        if text.startswith('{"error":true'):
            raise NotPlainError(text)
        try:
            return DECODER.decode(text[text.index('"plans":[') + len('"plans":[') : text.rindex("]")])
        except msgspec.DecodeError as error:  # an infinite number has no form in JSON
            raise NotPlainError(str(error)) from error

    def scan(self, sql: str, params: Sequence[Any] = ()) -> tuple[TableDef, list[str], list[ex.AnyExpression]]:
        """The only scan of a statement: its table, the names of its columns, and the conditions directly above it."""
        plan = self.plan(sql, params)
        nodes = list(_within(plan))
        scans = [node for node in nodes if isinstance(node, rel.LogicalScan)]
        filters = [node for node in nodes if isinstance(node, rel.LogicalFilter)]
        if len(scans) != 1 or scans[0].table is None or len(filters) > 1:
            raise NotPlainError("not one scan under one filter")
        (scan,) = scans
        conditions: list[ex.AnyExpression] = []
        if filters:
            if filters[0].children[0] is not scan:
                raise NotPlainError("the filter is not directly above the scan")
            conditions = list(filters[0].expressions)
        read = scan.column_indexes
        kept = [read[index] for index in scan.projection_ids] if scan.projection_ids else read
        names = ["rowid" if column.index >= len(scan.names) else scan.names[column.index] for column in kept]
        return self.tables[scan.table.casefold()], names, conditions

    def bounds(self, sql: str, params: Sequence[Any] = ()) -> ScanBounds:
        """The bounds of the only scan of a statement, whose expressions have their places."""
        table, names, conditions = self.scan(sql, params)
        integers = frozenset(index for index, value in enumerate(params) if type(value) is int)
        held = ScanConditions(tuple(names), tuple(conditions), frozenset(range(len(conditions))))
        found = bound_scan(table, held, integers=integers)
        return with_places(found, len(params))


def with_places(bounds: ScanBounds, first: int) -> ScanBounds:
    """The bounds, whose expressions have places behind so many parameters."""
    at = places((bounds.tree, bounds.keys), first)
    return ScanBounds(
        bounds.factors, numbered(bounds.tree, at), numbered(bounds.keys, at), bounds.reason, bounds.residual
    )


def expressions_of(bounds: ScanBounds) -> Any:
    return expressions_in((bounds.tree, bounds.keys))


def with_types(sql: str, params: Sequence[Any]) -> str:
    """A statement in which each parameter has the type of a value."""
    names: list[str] = []
    marks = count()

    def typed(found: re.Match[str]) -> str:
        if found["number"]:
            index = int(found["number"]) - 1
        elif found["mark"]:
            index = next(marks)
        elif found["name"]:
            if found["name"] not in names:
                names.append(found["name"])
            index = names.index(found["name"])
        else:
            return found[0]
        type_ = type_of(params[index]) if index < len(params) else None
        return f"${index + 1}" if type_ is None else f"CAST(${index + 1} AS {type_})"

    return TOKENS.sub(typed, sql)


def type_of(value: Any) -> str | None:
    """The type of a value in DuckDB; None where it has none."""
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "INTEGER" if -(2**31) <= value < 2**31 else "BIGINT" if -(2**63) <= value < 2**63 else "HUGEINT"
        case float():
            return "DOUBLE"
        case Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return f"DECIMAL({max(len(digits) + max(int(exponent), 0), scale, 1)},{scale})"
        case str():
            return "VARCHAR"
        case bytes():
            return "BLOB"
        case datetime():
            return "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        case date():
            return "DATE"
        case UUID():
            return "UUID"
        case [first, *_]:
            element = type_of(first)
            return None if element is None else f"{element}[]"
        case _:
            return None


def _within(relation: rel.AnyRelation) -> Iterator[rel.AnyRelation]:
    yield relation
    for child in relation.children:
        yield from _within(child)
