"""The statements that the controller prepares for a client to execute: a closed union.

A statement that contains a query is generic in the form of that query: the planner makes it with a
:class:`~secateur.planner.statement.PlannedSelect`, and a client gets it with a :class:`SelectStatement`, by which it
routes. The members keep the plans themselves, by their ids.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.copy_file import CopyFile
from secateur.protocol.pruning import Pruning
from secateur.protocol.row_merge import RowMerge
from secateur.protocol.steps import SteppedQuery

Q = TypeVar("Q")


class InsertMode(StrEnum):
    """The treatment of existing keys by an INSERT. The value is the mode's name in the storage API."""

    APPEND = "append"
    """An existing key is an error."""
    UPSERT = "upsert"
    """The new row replaces the old one: ``INSERT OR REPLACE``."""
    IGNORE = "ignore"
    """The new row is left out: ``INSERT OR IGNORE`` and ``ON CONFLICT DO NOTHING``."""


class ChangeKind(StrEnum):
    """The operation of an UPDATE or DELETE on the rows that its query finds.

    The value is the operation's name in the storage API.
    """

    UPDATE = "upsert"
    """The rows found replace those with the same keys."""
    DELETE = "delete"
    """The query finds keys: the rows with these keys are deleted."""


class ResultColumn(NamedTuple):
    """A column of a result: its name and the SQL text of its type, which is also its PEP 249 type code."""

    name: str
    type: str


class RoutedScan(msgspec.Struct, frozen=True):
    """One reference to a table.

    Attributes:
        table: The table's name.
        alias: The name by which the statement calls it.
        table_id: The table's id, never reused.
        table_version: The version of the table for which the tree was made; it grows with every ALTER TABLE.
        group: The affinity group, by which the topology knows the owners.
        replicated: Whether every member has a full copy.
        tree: The required partitions, open in the parameters.
        duckdb: The version of DuckDB by which members compute the expressions of the tree; empty if it has none.
    """

    table: str
    alias: str
    table_id: int
    table_version: int
    group: str
    replicated: bool
    tree: PartitionTree
    duckdb: str = ""


class _Prepared(msgspec.Struct, frozen=True, tag=True):
    """A statement that a client executes; its tag is the name of its class."""


class SelectStatement(_Prepared, frozen=True, dict=True):
    """A planned SELECT: what a client needs to route it.

    Attributes:
        plan_id: The id by which members know the plan.
        scans: Every reference to a table.
        columns: The columns of the result.
        parameter_count: How many values a member is given: parameters of the user, then ``lists``, then the time.
        parameter_names: Their names in order, when they are named, else empty.
        empty: The answer when no partition can match, as an Arrow IPC stream; None when it depends on the parameters.
        deterministic: Whether equal data and parameters give equal rows.
        catalog_version: The catalog it was planned for.
        is_estimated: Whether estimates of sizes had a say in the plan, so that it may be another one when tables have
            grown.
        lists: Long lists of literals of the text, which the plan takes as parameters.
        steps: The way to run the query in steps, for when pruning is on; None where that gains nothing.
        first_scans: The scans of the first step.
        reads_clock: Whether the last value is the time at which the statement starts.
        merge: How a client merges the rows of owners that it has asked itself; None where a member has to combine them.
        typed: The indexes of the parameters on whose types its plan depends.
    """

    plan_id: str
    scans: tuple[RoutedScan, ...]
    columns: tuple[ResultColumn, ...]
    parameter_count: int
    parameter_names: tuple[str, ...]
    empty: bytes | None
    deterministic: bool
    catalog_version: int
    is_estimated: bool = False
    lists: tuple[list[Any], ...] = ()
    steps: SteppedQuery | None = None
    first_scans: tuple[RoutedScan, ...] = ()
    reads_clock: bool = False
    merge: RowMerge | None = None
    typed: tuple[int, ...] = ()
    serving: ClassVar[Any] = None
    """The form to which a client has compiled it, with the topology for which it has done so."""

    @property
    def partitions_total(self) -> int:
        return sum(scan.tree.total for scan in self.scans)


class Done(_Prepared, frozen=True):
    """A statement that the controller has carried out, such as DDL."""

    message: str


class CreateTableAs(_Prepared, Generic[Q], frozen=True):
    """``CREATE TABLE ... AS``: a query whose rows are to be the first of a table.

    Attributes:
        table: The table, which is not there yet; its id is 0.
        if_not_exists: Whether nothing is done when there is such a table.
        or_replace: Whether the table takes the place of one of its name.
        create: The statement that makes the table, without rows.
        select: The query, which has the table's columns in their order; None when its rows are not wanted.
    """

    table: TableDef
    if_not_exists: bool
    or_replace: bool
    create: str
    select: Q | None


class CopyFrom(_Prepared, frozen=True):
    """``COPY ... FROM``: files to read and load.

    Attributes:
        table: The table.
        columns: The columns that get the values, in order.
        file: The files.
    """

    table: TableDef
    columns: tuple[str, ...]
    file: CopyFile


class CopyTo(_Prepared, Generic[Q], frozen=True):
    """``COPY ... TO``: a query whose rows are to be written into a file."""

    select: Q
    file: CopyFile


class BackupTo(_Prepared, frozen=True):
    """``BACKUP``: a folder that the client writes.

    Attributes:
        path: The folder, on the machine of the client.
        tables: The names of the tables; empty for all tables and views.
    """

    path: str
    tables: tuple[str, ...]


class RestoreFrom(_Prepared, frozen=True):
    """``RESTORE``: a backup that the client reads.

    Attributes:
        path: Its folder, on the machine of the client.
        tables: The names of the tables; empty for all tables and views.
        or_replace: Whether they may take the place of tables and views of their names.
    """

    path: str
    tables: tuple[str, ...]
    or_replace: bool


class Literal(msgspec.Struct, frozen=True, array_like=True):
    """A value that the text of an INSERT itself gives."""

    value: Any


class InsertTemplate(msgspec.Struct, frozen=True):
    """A template from which a client makes the rows of an ``INSERT ... VALUES`` of parameters and literals only.

    Attributes:
        columns: The columns that get values, in order; the others become NULL.
        rows: The values, one row for each row of the statement: the index of a parameter, or a literal.
        parameter_count: How many parameters the statement has.
        parameter_names: Their names in order, when they are named, else empty.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int | Literal, ...], ...]
    parameter_count: int
    parameter_names: tuple[str, ...]


class InsertRows(_Prepared, frozen=True):
    """``INSERT ... VALUES``. Its rows for the parameters of this call are the payload of the answer.

    Attributes:
        table: The table.
        mode: The treatment of keys that exist already.
        catalog_version: The catalog it was read for.
        template: Makes the rows for other parameters, if the client can do that alone; else None.
    """

    table: TableDef
    mode: InsertMode
    catalog_version: int
    template: InsertTemplate | None = None


class EvaluatedInsert(NamedTuple):
    """An ``INSERT ... VALUES`` and its rows for some parameters, exactly in the schema of the table."""

    insert: InsertRows
    rows: pa.Table


class InsertSelect(_Prepared, Generic[Q], frozen=True):
    """``INSERT ... SELECT``: a query whose columns, by position, are the ``columns`` of ``table``.

    Columns that are not named become NULL.
    """

    table: TableDef
    columns: tuple[str, ...]
    select: Q
    mode: InsertMode


class ChangeStatement(_Prepared, Generic[Q], frozen=True):
    """``UPDATE`` or ``DELETE``: a query whose rows replace, or whose keys remove, rows of a table.

    Attributes:
        table: The table.
        kind: The operation on the rows.
        select: The query: complete rows for an UPDATE, keys for a DELETE. Its first scan is the table, further ones are
            of replicated tables, so it can be run over each partition by itself.
    """

    table: TableDef
    kind: ChangeKind
    select: Q


class BatchInsert(msgspec.Struct, frozen=True):
    """An INSERT of one row of parameters, for many rows at once.

    Attributes:
        sql: The same statement for a query, whose parameters are lists: one for each cell.
        cells: The index of the parameter and the column of each value that is a parameter; every column of the key has
            one.
        is_row_compiled: Whether a primary computes the statement for one row without a kernel, if its values are
            exactly of their columns' types.
    """

    sql: str
    cells: tuple[tuple[int, str], ...]
    is_row_compiled: bool = False


class CoordinatedChange(_Prepared, Generic[Q], frozen=True):
    """A change that one member computes for all partitions.

    MERGE and UPDATE ... FROM are such changes, and all others that read beyond the partition of a row.

    Attributes:
        table: The table that is changed.
        select: The query for what becomes of its rows, as :class:`~secateur.engine.sql.row_changes.RowChanges` reads
            it.
        duplicate_match: The treatment of a row that is found twice; for members.
        returning: The query for the rows of RETURNING, over the rows concerned in place of the table; None without
            it. Only its columns and its id matter to a client.
        names_action: Whether ``returning`` has one parameter more than the statement: the action of the row.
        is_single_partition: Whether the primary of a partition can carry it out by itself, when the keys that
            ``select`` names are in that one.
        batch: The same change for many sets of parameters at once; None where there is no such statement.
    """

    table: TableDef
    select: Q
    duplicate_match: DuplicateMatchPolicy
    returning: Q | None = None
    names_action: bool = False
    is_single_partition: bool = False
    batch: BatchInsert | None = None


class SetPruning(_Prepared, frozen=True):
    """``SET pruning = ...``: a setting of this session; None for that of the cluster."""

    value: Pruning | None


class SetTimeout(_Prepared, frozen=True):
    """``SET statement_timeout = ...``: the text of the user, such as ``5s``, and its milliseconds; 0 for none."""

    text: str
    milliseconds: int


class SetOption(_Prepared, frozen=True):
    """``SET name = value`` of a setting that plans depend on, checked; an empty value is the default."""

    name: str
    value: str


class Setting(NamedTuple):
    """A setting of a session, as SHOW tells of it; its default is written as SET takes it."""

    name: str
    default: str
    description: str


class ShowSettings(_Prepared, frozen=True):
    """``SHOW name`` of one setting, or ``SHOW ALL``: the session, which is the client's, has their values.

    Attributes:
        settings: The settings.
        is_single: Whether one value is the answer, under the name of its setting.
    """

    settings: tuple[Setting, ...]
    is_single: bool


class PlanText(_Prepared, frozen=True):
    """``EXPLAIN``: a result that is there already.

    Attributes:
        lines: Its lines; a single one, the whole document, for ``FORMAT JSON``.
        is_json: Whether it is that.
        analyzed: For ``EXPLAIN ANALYZE`` the text of the statement to run, else None.
        planning_ms: Milliseconds that the planner took for that.
    """

    lines: tuple[str, ...]
    is_json: bool = False
    analyzed: str | None = None
    planning_ms: float = 0.0


PreparedStatement: TypeAlias = (
    SelectStatement
    | Done
    | CreateTableAs[SelectStatement]
    | CopyFrom
    | CopyTo[SelectStatement]
    | BackupTo
    | RestoreFrom
    | InsertRows
    | InsertSelect[SelectStatement]
    | ChangeStatement[SelectStatement]
    | CoordinatedChange[SelectStatement]
    | SetPruning
    | SetTimeout
    | SetOption
    | ShowSettings
    | PlanText
)
