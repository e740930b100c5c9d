"""The kinds of planned statements: a closed union of frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, assert_never

import pyarrow as pa

from secateur.client.copy.file_options import FileOptions
from secateur.engine.sql.row_changes import DuplicateMatchPolicy
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.schemes.range_changes import RangeChange
from secateur.partitioning.tables.index import IndexDef
from secateur.partitioning.tables.table import TableDef
from secateur.planner.scans.scan_bounds import ScanBounds
from secateur.planner.views.view import ViewDef

__all__ = [
    "AlterTable",
    "ChangeKind",
    "ChangeStatement",
    "CopyFrom",
    "CopyTo",
    "CreateIndex",
    "CreateTable",
    "CreateTableAs",
    "CreateView",
    "DropIndex",
    "DropTable",
    "DropView",
    "ExplainFormat",
    "ExplainStatement",
    "InsertMode",
    "InsertRows",
    "InsertSelect",
    "InsertShape",
    "ManyRows",
    "Materialized",
    "SelectStatement",
    "SetOption",
    "Setting",
    "ShowSettings",
    "Statement",
    "Step",
    "SubqueryUse",
    "WholeChange",
]


class InsertMode(Enum):
    """The treatment of existing keys by an INSERT. The value is the mode's name in the storage API."""

    APPEND = "append"
    """It is an error."""
    UPSERT = "upsert"
    """The new row replaces the old one: ``INSERT OR REPLACE``."""
    IGNORE = "ignore"
    """The new row is left out: ``INSERT OR IGNORE`` and ``ON CONFLICT DO NOTHING``."""


class ChangeKind(Enum):
    """The operation of an UPDATE or DELETE on the rows that its query finds.

    The value is the operation's name in the storage API.
    """

    UPDATE = "upsert"
    """They replace those with the same keys."""
    DELETE = "delete"
    """They are keys: the rows with these keys go."""


class ExplainFormat(Enum):
    """The forms of EXPLAIN."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A query.

    Attributes:
        plan: The part that is sent to members and clients.
        bounds: For each scan the bounds on its keys; EXPLAIN shows them, nothing executes them.
        params: The values of this call, in order of parameter index; None when none were given to a query that has
            parameters.
        lists: Values of hidden parameters that were hoisted out of the text
            (:mod:`~secateur.planner.text.hoisted_lists`); ``params`` ends with them.
        materialized: The same query in steps, where that prunes more; None where it does not.
        rewrites: The names of the applied rewrite rules, in their order.
        colocated: Groups of scans whose rows meet only within partitions of one number, as names of relations.
    """

    plan: SelectPlan
    bounds: tuple[ScanBounds, ...]
    params: tuple[object, ...] | None
    lists: tuple[list[object], ...] = ()
    materialized: Materialized | None = None
    rewrites: tuple[str, ...] = ()
    colocated: tuple[tuple[str, ...], ...] = ()


class SubqueryUse(Enum):
    """The use that a statement makes of a subquery. The value is its name on the wire."""

    LIST = "list"
    """The distinct values of its one column, NULL among them: ``x IN (subquery)``."""
    VALUE = "value"
    """Its one value, NULL when it has no row: ``x = (subquery)``."""
    KEYS = "keys"
    """The distinct values of each of its columns, a list each: a query of the planner for the keys that one side of a
    join has.
    """

    @property
    def values_max(self) -> int:
        """The maximum number of values; with more the statement runs undivided.

        A longer list costs more to send than it can prune.
        """
        match self:
            case SubqueryUse.LIST:
                return _LIST_VALUES_MAX
            case SubqueryUse.VALUE:
                return 1
            case SubqueryUse.KEYS:
                return _KEYS_MAX
            case _:
                assert_never(self)


_LIST_VALUES_MAX: Final = 10_000
"""A list of so many keys is hashed in milliseconds, and is as many keys as 1,250 partitions can tell apart before they
count as all of them.
"""
_KEYS_MAX: Final = 2_000
"""The statement runs as well without these, and every one costs the client and each member half a microsecond for each
scan.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A subquery that runs before the statement in which it stands.

    Attributes:
        text: The user's text, with its parameters numbered.
        query: The subquery, bounded to one row more than ``values_max``; its parameters are those of the whole
            statement, then those of the steps before it.
        use: The use that the statement makes of it.
        values_max: With more values than this the statement runs undivided.
        estimate: About how many values were expected; None where nothing was reckoned.
    """

    text: str
    query: SelectStatement
    use: SubqueryUse
    values_max: int
    estimate: int | None = None

    @property
    def parameter_count(self) -> int:
        """How many parameters of the rest it gives."""
        return len(self.query.plan.columns) if self.use is SubqueryUse.KEYS else 1


@dataclass(frozen=True, slots=True)
class Materialized:
    """A query whose subqueries run first, so that their values prune the scans of the rest.

    Attributes:
        steps: In the order of their parameters.
        outer: The query with parameters of its own in place of the subqueries: those of the user, then those of each
            step, lists or a value. It may have steps itself.
        watched: The scans of ``outer`` that steps have read as well: the values hold as long as their rows are the
            same. None for values that stand for the subquery, whatever has changed since.
    """

    steps: tuple[Step, ...]
    outer: SelectStatement
    watched: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``tdef.table_id`` is 0: the catalog gives the id."""

    tdef: TableDef
    if_not_exists: bool
    or_replace: bool


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """A CREATE TABLE ... AS.

    Attributes:
        tdef: The table; its id is 0.
        if_not_exists: Whether nothing is done when there is such a table.
        or_replace: Whether the table takes the place of one of its name.
        create: The statement that makes the table, without rows.
        select: The query for its rows, with the table's columns in their order; None when they are not wanted.
    """

    tdef: TableDef
    if_not_exists: bool
    or_replace: bool
    create: str
    select: SelectStatement | None


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY ... FROM: files whose rows the client loads.

    Attributes:
        table: The table.
        columns: The columns that get the values, in order.
        options: The files.
    """

    table: TableDef
    columns: tuple[str, ...]
    options: FileOptions


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY ... TO: a query whose rows the client writes into a file."""

    select: SelectStatement
    options: FileOptions


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """A CREATE INDEX: the table as it was when the columns were checked against it."""

    table: TableDef
    index: IndexDef
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropIndex:
    """A DROP INDEX."""

    name: str
    if_exists: bool


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
class CreateView:
    """A CREATE VIEW; ``view.view_id`` is 0: the catalog gives the id."""

    view: ViewDef
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropView:
    """A DROP VIEW."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class InsertShape:
    """INSERT ... VALUES with nothing but parameters and literals.

    Attributes:
        columns: Those that get values, in order.
        cells: The index of the parameter that is a value, or None for a literal, row by row.
        parameter_count: How many parameters the statement has.
        parameter_names: Their names in order, when they are named, else empty.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[int | None, ...], ...]
    parameter_count: int
    parameter_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InsertRows:
    """INSERT ... VALUES, evaluated.

    Attributes:
        table: The table.
        rows: Exactly in the schema of the table.
        mode: The treatment of keys that exist already.
        shape: How a client makes the rows from the parameters, if it can; else None.
    """

    table: TableDef
    rows: pa.Table
    mode: InsertMode
    shape: InsertShape | None


@dataclass(frozen=True, slots=True)
class InsertSelect:
    """INSERT ...

    SELECT: the query's columns, by position, are the ``columns`` of ``table``; columns that are not named become NULL.
    """

    table: TableDef
    columns: tuple[str, ...]
    select: SelectStatement
    mode: InsertMode


@dataclass(frozen=True, slots=True)
class ChangeStatement:
    """UPDATE or DELETE: the query's rows replace or remove those with the same keys.

    Their columns have the names and types of the table's.

    Attributes:
        table: The table; the query's first scan. Further scans are of replicated tables.
        kind: The operation on the rows.
        select: Finds them: complete rows for an UPDATE, keys for a DELETE. It can be run over each partition by itself.
    """

    table: TableDef
    kind: ChangeKind
    select: SelectStatement


@dataclass(frozen=True, slots=True)
class ManyRows:
    """How an INSERT of one row of parameters is said for many rows at once.

    Attributes:
        sql: The same statement for a query, whose parameters are lists: one for each cell.
        cells: The index of the parameter and the column of each value that is a parameter; every column of the key has
            one.
    """

    sql: str
    cells: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class WholeChange:
    """A change that one member works out for all partitions: MERGE, UPDATE ...

    FROM, and all that has to look beyond the partition of its row.

    Attributes:
        table: The table that is changed.
        select: The query for what becomes of its rows, as :class:`~secateur.engine.sql.row_changes.RowChanges` reads
            it.
        duplicate_match: The treatment of a row that is found twice.
        returning: A query over the rows concerned, in place of the table; None when nothing is to be returned.
        names_action: Whether ``returning`` has one parameter more than the statement: the action of the row.
        is_single_partition: Whether the primary of a partition can carry it out by itself, when the keys that
            ``select`` names are in that one.
        many: How to say it for many sets of parameters at once; None where that cannot be said.
    """

    table: TableDef
    select: SelectStatement
    duplicate_match: DuplicateMatchPolicy
    returning: SelectStatement | None = None
    names_action: bool = False
    is_single_partition: bool = False
    many: ManyRows | None = None


@dataclass(frozen=True, slots=True)
class SetOption:
    """``SET name = value``, checked: the name is known and the value is one of its values."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a session, as SHOW tells of it; its default is said as SET takes it."""

    name: str
    default: str
    description: str


@dataclass(frozen=True, slots=True)
class ShowSettings:
    """``SHOW name`` of one setting, or ``SHOW ALL``: the session, which is the client's, has their values."""

    settings: tuple[Setting, ...]
    is_single: bool


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """``EXPLAIN [ANALYZE] [(FORMAT JSON)] target``; ``offset`` is where the target begins in the text."""

    target: Statement
    format: ExplainFormat
    analyze: bool
    offset: int


Statement: TypeAlias = (
    SelectStatement
    | CreateTable
    | AlterTable
    | DropTable
    | CreateView
    | DropView
    | CreateTableAs
    | CreateIndex
    | DropIndex
    | InsertRows
    | InsertSelect
    | ChangeStatement
    | WholeChange
    | CopyFrom
    | CopyTo
    | SetOption
    | ShowSettings
    | ExplainStatement
)
