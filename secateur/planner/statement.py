"""What a SQL text can be, once planned: a closed union of frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from secateur.engine.plan import SelectPlan
from secateur.partitioning.range_changes import RangeChange
from secateur.partitioning.table import TableDef
from secateur.planner.scan_bounds import ScanBounds

__all__ = [
    "AlterTable",
    "CreateTable",
    "DropTable",
    "ExplainFormat",
    "ExplainStatement",
    "InsertMode",
    "InsertRows",
    "InsertSelect",
    "SelectStatement",
    "SetOption",
    "Statement",
]


class InsertMode(Enum):
    """What an INSERT does with a key that is there already. The value is the mode's name in the storage API."""

    APPEND = "append"
    """It is an error."""
    UPSERT = "upsert"
    """The new row replaces the old one: ``INSERT OR REPLACE``."""


class ExplainFormat(Enum):
    """The forms of EXPLAIN."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A query.

    Attributes:
        plan: What travels to members and clients.
        bounds: Per scan what its predicates say about the keys; EXPLAIN shows it, nothing executes it.
        params: The values of this call, in order of parameter index; None when none were given to a query that has parameters.
        lists: Values of hidden parameters that were lifted out of the text (:mod:`~secateur.planner.long_lists`); ``params`` ends with them.
    """

    plan: SelectPlan
    bounds: tuple[ScanBounds, ...]
    params: tuple[object, ...] | None
    lists: tuple[list[object], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``tdef.table_id`` is 0: the catalog gives the id."""

    tdef: TableDef
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AlterTable:
    """An ALTER TABLE: the table as it was when the changes to its ranges were checked against it."""

    table: TableDef
    changes: tuple[RangeChange, ...]


@dataclass(frozen=True, slots=True)
class DropTable:
    """A DROP TABLE."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class InsertRows:
    """INSERT ... VALUES, evaluated: ``rows`` are exactly in the schema of ``table``."""

    table: TableDef
    rows: pa.Table
    mode: InsertMode


@dataclass(frozen=True, slots=True)
class InsertSelect:
    """INSERT ... SELECT: the query's columns, by position, are the ``columns`` of ``table``; columns that are not named become NULL."""

    table: TableDef
    columns: tuple[str, ...]
    select: SelectStatement
    mode: InsertMode


@dataclass(frozen=True, slots=True)
class SetOption:
    """``SET name = value``, checked: the name is known and the value is one of its values."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """``EXPLAIN [ANALYZE] [(FORMAT JSON)] target``."""

    target: Statement
    format: ExplainFormat
    analyze: bool


Statement: TypeAlias = SelectStatement | CreateTable | AlterTable | DropTable | InsertRows | InsertSelect | SetOption | ExplainStatement
