"""The statements that the controller prepares for a client to execute: a closed union.

A kind of statement is a class that says what others ask of it: who may execute it, what it reads and changes. Nobody
else lists kinds for that. A kind that does not say so is held for the most dangerous one.

A statement that contains a query is generic in the form of that query: the planner makes it with a
:class:`~secateur.planner.statement.PlannedSelect`, and a client gets it with a :class:`SelectStatement`, by which it
routes. The members keep the plans themselves, by their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.protocol.access import Rights
from secateur.protocol.changes import DuplicateMatchPolicy
from secateur.protocol.copy_file import CopyFile
from secateur.protocol.hello import Pruning
from secateur.protocol.query_parts import RowMerge, SteppedQuery
from secateur.protocol.tokens import Privilege, TokenRole

_FILES_REFUSED: Final = (
    "COPY, BACKUP, RESTORE and tables of files read and write files of the client's machine, and this connection"
    " executes statements of others: execute them over a connection of your own, from secateur.connect()"
)
_SET_REFUSED: Final = (
    "SET changes a connection, and this one executes statements of others: give the setting with the statement that"
    " needs it, or use SET GLOBAL for the whole cluster"
)


class Statement:
    """A statement of any kind; what a kind does not say for itself is taken in the strictest way.

    Attributes:
        role: The lowest role that may execute it.
        refused_to_others: The error where a connection executes statements of others, for whom the machine and the
            settings of the connection are not; empty for a statement that concerns the cluster alone.
        explained: What EXPLAIN says of it, in front of its query if it has one: a format of the statement.
        is_cached: Whether the planner keeps it, and gives it the values of each call.
        query_fields: The fields with its queries, the one for the rows that it is about first.
    """

    __slots__ = ()
    role: ClassVar[TokenRole] = TokenRole.CODE
    refused_to_others: ClassVar[str] = "this statement is for a connection of your own, from secateur.connect()"
    explained: ClassVar[str] = "the statement reads no partition"
    is_cached: ClassVar[bool] = False
    query_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def is_change(self) -> bool:
        """Whether it changes rows, tables or the cluster."""
        return self.role is not TokenRole.READ

    @property
    def queries(self) -> tuple[Any, ...]:
        """Its queries, in the order of ``query_fields``."""
        found = [getattr(self, name) for name in self.query_fields]
        return tuple(query for query in found if query is not None)

    def with_queries(self, changed: Callable[[Any], Any]) -> Any:
        """The statement with other queries in place of its own, such as the forms by which a client routes them."""
        return self

    def check_tables(self, rights: Rights) -> None:
        """Refuse a statement that reads or changes more tables than these rights cover. The role is checked elsewhere.

        Raises:
            AuthenticationError: The statement needs more, or nobody knows what it needs.
        """
        raise rights.refusal_of("this statement")


Q = TypeVar("Q", bound=Statement)


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
        is_guarded: Whether it has a row policy.
    """

    table: str
    alias: str
    table_id: int
    table_version: int
    group: str
    replicated: bool
    tree: PartitionTree
    duckdb: str = ""
    is_guarded: bool = False


class _Prepared(msgspec.Struct, Statement, frozen=True, tag=True):
    """A statement that a client executes; its tag is the name of its class."""

    def with_queries(self, changed: Callable[[Any], Any]) -> Any:
        queries = {name: getattr(self, name) for name in self.query_fields}
        return replace(self, **{name: changed(query) for name, query in queries.items() if query is not None})


def privileges_of(mode: InsertMode) -> tuple[Privilege, ...]:
    """What an INSERT needs with its table: to look for the keys of others is to read them."""
    changing = (Privilege.INSERT, Privilege.UPDATE) if mode is InsertMode.UPSERT else (Privilege.INSERT,)
    return changing if mode is InsertMode.APPEND else (Privilege.SELECT, *changing)


class RowChange(_Prepared, frozen=True):
    """A statement that changes rows of a table, with the rows of its queries if it has some.

    Attributes:
        table: The table.
    """

    role = TokenRole.WRITE
    refused_to_others = ""
    table: TableDef

    @property
    def needed(self) -> tuple[Privilege, ...]:
        """What it needs with the table."""
        return tuple(Privilege)

    def check_tables(self, rights: Rights) -> None:
        rights.check_write(self.table.name, self.needed)
        for query in self.queries:
            query.check_tables(rights)


class _OfSession(_Prepared, frozen=True):
    """SET or SHOW of settings of this session."""

    role = TokenRole.READ
    refused_to_others = _SET_REFUSED
    explained = "SET changes a setting of the session and reads no partition"

    def check_tables(self, rights: Rights) -> None:
        """It has no table."""


TextualParameters: TypeAlias = tuple[tuple[int, Column], ...]
"""The indexes of parameters that a client gives as values of a column of texts that are checked, and the columns."""


def as_texts(values: Sequence[Any], textual: TextualParameters) -> tuple[Any, ...]:
    """The values of a statement with the texts of those parameters.

    Raises:
        DataError: One of them is none of its column.
    """
    found = list(values)
    for index, column in textual:
        found[index] = coerce(found[index], column.type, column=column.name)
    return tuple(found)


class SelectStatement(_Prepared, frozen=True, dict=True):
    """A planned SELECT: what a client needs to route it.

    Attributes:
        plan_id: The id by which members know the plan.
        scans: Every reference to a table.
        columns: The columns of the result.
        parameter_count: How many values a member is given: parameters of the user, then ``hidden``, then the time.
        parameter_names: Their names in order, when they are named, else empty.
        empty: The answer when no partition can match, as an Arrow IPC stream; None when it depends on the parameters.
        deterministic: Whether equal data and parameters give equal rows.
        catalog_version: The catalog it was planned for.
        is_estimated: Whether estimates of sizes had a say in the plan, so that it may be another one when tables have
            grown.
        hidden: Values that the plan takes as parameters: long lists of literals of the text, then what the server has
            verified of the client, which members compare with its token.
        steps: The way to run the query in steps, for when pruning is on; None where that gains nothing.
        first_scans: The scans of the first step.
        reads_clock: Whether the last value is the time at which the statement starts.
        merge: How a client merges the rows of owners that it has asked itself; None where a member has to combine them.
        typed: The indexes of the parameters on whose types its plan depends.
        textual: The parameters that become values of a column, such as texts of JSON, before they are sent.
    """

    role = TokenRole.READ
    refused_to_others = ""
    plan_id: str
    scans: tuple[RoutedScan, ...]
    columns: tuple[ResultColumn, ...]
    parameter_count: int
    parameter_names: tuple[str, ...]
    empty: bytes | None
    deterministic: bool
    catalog_version: int
    is_estimated: bool = False
    hidden: tuple[Any, ...] = ()
    steps: SteppedQuery | None = None
    first_scans: tuple[RoutedScan, ...] = ()
    reads_clock: bool = False
    merge: RowMerge | None = None
    typed: tuple[int, ...] = ()
    textual: TextualParameters = ()

    @property
    def queries(self) -> tuple[SelectStatement, ...]:
        return (self,)

    @property
    def partitions_total(self) -> int:
        return sum(scan.tree.total for scan in self.scans)


class Done(_Prepared, frozen=True):
    """A statement that the controller has carried out, such as DDL, for whoever had the role for that."""

    role = TokenRole.READ
    refused_to_others = ""
    message: str

    @property
    def is_change(self) -> bool:
        return True


class CreateTableAs(_Prepared, Generic[Q], frozen=True):
    """``CREATE TABLE ... AS``: a query whose rows are to be the first of a table.

    Attributes:
        table: The table, which is not there yet; its id is 0.
        if_not_exists: Whether nothing is done when there is such a table.
        or_replace: Whether the table takes the place of one of its name.
        create: The statement that makes the table, without rows.
        select: The query, which has the table's columns in their order; None when its rows are not wanted.
    """

    role = TokenRole.ADMIN
    refused_to_others = ""
    explained = "CREATE TABLE {0.table.name} at the controller, and its rows from:"
    query_fields = ("select",)
    table: TableDef
    if_not_exists: bool
    or_replace: bool
    create: str
    select: Q | None


class CreateTableFrom(_Prepared, frozen=True):
    """``CREATE TABLE ... AS SELECT * FROM 'file'``: the client makes the table with the columns of a file.

    Attributes:
        name: The table's name.
        primary_key: The columns of its key; none for a table without one.
        clauses: How it is partitioned and copied, as written.
        path: The file.
        if_not_exists: Whether nothing is done when there is such a table.
        or_replace: Whether the table takes the place of one of its name.
        with_data: Whether the rows are wanted.
    """

    role = TokenRole.ADMIN
    refused_to_others = _FILES_REFUSED
    explained = "CREATE TABLE {0.name} at the controller, with the columns and rows of {0.path}, which the client reads"
    name: str
    primary_key: tuple[str, ...]
    clauses: str
    path: str
    if_not_exists: bool
    or_replace: bool
    with_data: bool


class CopyFrom(RowChange, frozen=True):
    """``COPY ... FROM``: files to read and load.

    Attributes:
        columns: The columns that get the values, in order.
        file: The files.
    """

    refused_to_others = _FILES_REFUSED
    explained = "COPY: the client reads {0.file.path} and loads its rows into {0.table.name}"
    columns: tuple[str, ...]
    file: CopyFile

    @property
    def needed(self) -> tuple[Privilege, ...]:
        return (Privilege.INSERT,)


class CopyTo(_Prepared, Generic[Q], frozen=True):
    """``COPY ... TO``: a query whose rows are to be written into a file."""

    role = TokenRole.READ
    refused_to_others = _FILES_REFUSED
    explained = "COPY to {0.file.path}, written by the client, from:"
    query_fields = ("select",)
    select: Q
    file: CopyFile

    def check_tables(self, rights: Rights) -> None:
        self.select.check_tables(rights)


class BackupTo(_Prepared, frozen=True):
    """``BACKUP``: a folder that the client writes.

    Attributes:
        path: The folder, on the machine of the client.
        tables: The names of the tables; empty for all tables and views.
    """

    role = TokenRole.READ
    refused_to_others = _FILES_REFUSED
    explained = "BACKUP: the client reads the rows of each table and writes files"
    path: str
    tables: tuple[str, ...]

    def check_tables(self, rights: Rights) -> None:
        if not self.tables:
            raise rights.refusal_of("BACKUP of all tables")
        rights.check_reads(table.casefold() for table in self.tables)


class RestoreFrom(_Prepared, frozen=True):
    """``RESTORE``: a backup that the client reads.

    Attributes:
        path: Its folder, on the machine of the client.
        tables: The names of the tables; empty for all tables and views.
        or_replace: Whether they may take the place of tables and views of their names.
    """

    role = TokenRole.ADMIN
    refused_to_others = _FILES_REFUSED
    explained = "RESTORE: the client reads files, makes tables and loads their rows"
    path: str
    tables: tuple[str, ...]
    or_replace: bool


class TenantTable(NamedTuple):
    """A table with rows of tenants: its name, the column that names the tenant, and whether it has a change feed."""

    table: str
    column: str
    has_feed: bool


class ForgetTenant(_Prepared, frozen=True):
    """``FORGET TENANT``: delete the rows of a tenant from all tables with a row policy that compares a column with it.

    Attributes:
        value: The value of the claim.
        claim: The name of the claim.
        targets: The tables, as the controller knows them.
    """

    role = TokenRole.ADMIN
    refused_to_others = ""
    explained = "FORGET TENANT deletes rows by one DELETE for each table with a policy on the claim"
    value: str
    claim: str
    targets: tuple[TenantTable, ...] = ()


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


class InsertRows(RowChange, frozen=True):
    """``INSERT ... VALUES``. Its rows for the parameters of this call are the payload of the answer.

    Attributes:
        mode: The treatment of keys that exist already.
        catalog_version: The catalog it was read for.
        template: Makes the rows for other parameters, if the client can do that alone; else None.
    """

    mode: InsertMode
    catalog_version: int
    template: InsertTemplate | None = None

    @property
    def needed(self) -> tuple[Privilege, ...]:
        return privileges_of(self.mode)


@dataclass(frozen=True, slots=True)
class EvaluatedInsert(Statement):
    """An ``INSERT ... VALUES`` and its rows for some parameters, exactly in the schema of the table."""

    role = InsertRows.role
    refused_to_others = ""
    insert: InsertRows
    rows: pa.Table

    def check_tables(self, rights: Rights) -> None:
        self.insert.check_tables(rights)


class InsertSelect(RowChange, Generic[Q], frozen=True):
    """``INSERT ... SELECT``: a query whose columns, by position, are the ``columns`` of ``table``.

    Columns that are not named become NULL.
    """

    explained = "INSERT into {0.table.name} from:"
    is_cached = True
    query_fields = ("select",)
    columns: tuple[str, ...]
    select: Q
    mode: InsertMode

    @property
    def needed(self) -> tuple[Privilege, ...]:
        return privileges_of(self.mode)


class ChangeStatement(RowChange, Generic[Q], frozen=True):
    """``UPDATE`` or ``DELETE``: a query whose rows replace, or whose keys remove, rows of a table.

    Attributes:
        kind: The operation on the rows.
        select: The query: complete rows for an UPDATE, keys for a DELETE. Its first scan is the table, further ones are
            of replicated tables, so it can be run over each partition by itself.
    """

    is_cached = True
    query_fields = ("select",)
    kind: ChangeKind
    select: Q

    @property
    def needed(self) -> tuple[Privilege, ...]:
        return (Privilege.DELETE if self.kind is ChangeKind.DELETE else Privilege.UPDATE,)


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


class CoordinatedChange(RowChange, Generic[Q], frozen=True):
    """A change that one member computes for all partitions.

    MERGE and UPDATE ... FROM are such changes, and all others that read beyond the partition of a row.

    Attributes:
        select: The query for what becomes of its rows, as :class:`~secateur.engine.sql.row_changes.RowChanges` reads
            it.
        duplicate_match: The treatment of a row that is found twice; for members.
        returning: The query for the rows of RETURNING, over the rows concerned in place of the table; None without
            it. Only its columns and its id matter to a client.
        names_action: Whether ``returning`` has one parameter more than the statement: the action of the row.
        is_single_partition: Whether the primary of a partition can carry it out by itself, when the keys that
            ``select`` names are in that one.
        batch: The same change for many sets of parameters at once; None where there is no such statement.
        privileges: What it needs with the table.
        row: The query for the one row that is changed and returned, where the primary of its key can do both; None
            where it cannot, and for changes without RETURNING.
        row_operation: What becomes of what that finds, in the words of
            :class:`~secateur.protocol.changes.ChangeOnePartition`.
    """

    is_cached = True
    query_fields = ("select", "returning", "row")
    select: Q
    duplicate_match: DuplicateMatchPolicy
    returning: Q | None = None
    names_action: bool = False
    is_single_partition: bool = False
    batch: BatchInsert | None = None
    privileges: tuple[Privilege, ...] = tuple(Privilege)
    row: Q | None = None
    row_operation: str = ""

    @property
    def needed(self) -> tuple[Privilege, ...]:
        return self.privileges


class SetPruning(_OfSession, frozen=True):
    """``SET pruning = ...``: a setting of this session; None for that of the cluster."""

    value: Pruning | None


class SetTimeout(_OfSession, frozen=True):
    """``SET statement_timeout = ...``: the text of the user, such as ``5s``, and its milliseconds; 0 for none."""

    text: str
    milliseconds: int


class SetOption(_OfSession, frozen=True):
    """``SET name = value`` of a setting that plans depend on, checked; an empty value is the default."""

    name: str
    value: str


class Setting(NamedTuple):
    """A setting of a session, as SHOW tells of it; its default is written as SET takes it."""

    name: str
    default: str
    description: str


class ShowSettings(_OfSession, frozen=True):
    """``SHOW name`` of one setting, or ``SHOW ALL``: the session, which is the client's, has their values.

    Attributes:
        settings: The settings.
        is_single: Whether one value is the answer, under the name of its setting.
    """

    refused_to_others = ""
    explained = "SHOW reads settings of the session and no partition"
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

    role = TokenRole.READ
    refused_to_others = ""
    lines: tuple[str, ...]
    is_json: bool = False
    analyzed: str | None = None
    planning_ms: float = 0.0

    @property
    def is_change(self) -> bool:
        return self.analyzed is not None


PreparedStatement: TypeAlias = (
    SelectStatement
    | Done
    | CreateTableAs[SelectStatement]
    | CreateTableFrom
    | CopyFrom
    | CopyTo[SelectStatement]
    | BackupTo
    | RestoreFrom
    | ForgetTenant
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
