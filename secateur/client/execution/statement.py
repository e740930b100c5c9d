"""The answer of the controller's ``prepare``: a finished statement, or what the client has still to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from secateur.client.copy.file_options import FileOptions
from secateur.client.dbapi.parameters import ordered_values
from secateur.client.dbapi.rows import ResultColumn
from secateur.client.execution.insert_template import InsertTemplate, Literal
from secateur.client.execution.pruning import Pruning
from secateur.client.execution.statement_timeout import StatementTimeout
from secateur.errors import ProtocolError
from secateur.partitioning.pruning.tree import PartitionTree
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.codec import typed_parts
from secateur.protocol.query import PreparedAnswer
from secateur.wire import Answer, decode_table, decode_tables

__all__ = [
    "ChangeStatement",
    "CopyFrom",
    "CopyTo",
    "CreateTableAs",
    "Done",
    "InsertRows",
    "InsertSelect",
    "ManyRows",
    "Materialized",
    "PlanText",
    "Prepared",
    "Scan",
    "SelectStatement",
    "SetPlanOption",
    "SetPruning",
    "SetTimeout",
    "ShowSettings",
    "Step",
    "StepUse",
    "WholeChange",
    "read_prepared",
]


@dataclass(frozen=True, slots=True)
class Scan:
    """One reference to a table.

    Attributes:
        table: The table's name.
        alias: The name by which the statement calls it.
        table_id: The table's id, never reused.
        table_version: The version of the table for which the tree was made; it grows with every ALTER TABLE.
        group: The affinity group, by which the topology knows the owners.
        replicated: Whether every member has a full copy.
        tree: The required partitions, open in the parameters.
    """

    table: str
    alias: str
    table_id: int
    table_version: int
    group: str
    replicated: bool
    tree: PartitionTree


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A planned SELECT: what a client needs to route it.

    Attributes:
        plan_id: The id by which members know the plan.
        scans: Every reference to a table.
        columns: The columns of the result.
        parameter_count: How many values a member is given: parameters of the user, then ``lists``.
        parameter_names: Their names in order, when they are named, else empty.
        empty: The answer when no partition can match; None when it depends on the parameters.
        deterministic: Whether equal data and parameters give equal rows.
        catalog_version: The catalog it was planned for.
        lists: Long lists of literals of the text, which the plan takes as parameters.
        materialized: The same query in steps, for when pruning is on; None where that gains nothing.
        is_estimated: Whether estimates of sizes had a say in the plan, so that it may be another one when tables have
            grown.
    """

    plan_id: str
    scans: tuple[Scan, ...]
    columns: tuple[ResultColumn, ...]
    parameter_count: int
    parameter_names: tuple[str, ...]
    empty: pa.Table | None
    deterministic: bool
    catalog_version: int
    lists: tuple[list[Any], ...] = ()
    materialized: Materialized | None = None
    is_estimated: bool = False

    def values(self, params: list[Any] | dict[str, Any]) -> list[Any]:
        """The values that a member is given, in order.

        Args:
            params: From :func:`~secateur.client.dbapi.parameters.plain_values`.

        Raises:
            ParameterError: They are not those of the statement.
        """
        values = ordered_values(params, self.parameter_count - len(self.lists), self.parameter_names)
        return [*values, *self.lists] if self.lists else values

    @property
    def partitions_total(self) -> int:
        return sum(scan.tree.total for scan in self.scans)


class StepUse(Enum):
    """The use that a statement makes of a step's values."""

    LIST = "list"
    """All values of its one column, as a list."""
    VALUE = "value"
    """Its one value, NULL when it has no row."""
    KEYS = "keys"
    """All values of each of its columns, a list each."""


@dataclass(frozen=True, slots=True)
class Step:
    """A subquery that runs before its statement.

    Attributes:
        statement: The subquery; its parameters are those of the whole statement, then those of the steps before it.
        use: The use that the rest of the query makes of it.
        values_max: With more rows than this the statement runs undivided.
    """

    statement: SelectStatement
    use: StepUse
    values_max: int


@dataclass(frozen=True, slots=True)
class Materialized:
    """A query whose subqueries run first.

    Attributes:
        steps: In the order of their parameters.
        outer: The rest; its parameters are those of the whole statement, then those of each step.
        watched: The scans of ``outer`` in whose rows the steps have found what is true only as long as they are the
            same; None where it does not matter.
    """

    steps: tuple[Step, ...]
    outer: SelectStatement
    watched: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that the controller has carried out, such as DDL."""

    message: str


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """``CREATE TABLE ... AS``: a query whose rows are to be the first of a table.

    Attributes:
        table: The table, which is not there yet.
        create: The statement that makes it.
        source: The query, which has the table's columns in their order; None when its rows are not wanted.
    """

    table: TableDef
    create: str
    source: SelectStatement | None


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """``COPY ... FROM``: files to read and load.

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
    """``COPY ... TO``: a query whose rows are to be written into a file."""

    source: SelectStatement
    options: FileOptions


@dataclass(frozen=True, slots=True)
class InsertRows:
    """Rows to load: ``INSERT ... VALUES``, evaluated.

    Attributes:
        table: The table.
        rows: In its schema.
        mode: The treatment of keys that exist already.
        template: Makes the rows for other parameters, if the client can do that alone; else None.
    """

    table: TableDef
    rows: pa.Table
    mode: str
    template: InsertTemplate | None = None


@dataclass(frozen=True, slots=True)
class InsertSelect:
    """``INSERT ... SELECT``: a query whose result is to be loaded into the named columns."""

    table: TableDef
    columns: tuple[str, ...]
    source: SelectStatement
    mode: str


@dataclass(frozen=True, slots=True)
class ChangeStatement:
    """``UPDATE`` or ``DELETE``: a query whose rows replace, or whose keys remove, rows of a table.

    Attributes:
        table: The table.
        source: The query; its first scan is the table, further ones are of replicated tables.
        operation: ``"upsert"`` or ``"delete"``.
    """

    table: TableDef
    source: SelectStatement
    operation: str

    @property
    def catalog_version(self) -> int:
        return self.source.catalog_version

    @property
    def is_estimated(self) -> bool:
        return self.source.is_estimated


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
    """A change that one member works out for all partitions, such as ``MERGE`` or ``UPDATE ... FROM``.

    Attributes:
        table: The table that is changed.
        source: The query for what becomes of its rows.
        duplicate_match: The treatment of a row that is found twice; for members.
        returning: The query for the rows of RETURNING, None without it: only its columns and its id
            matter here.
        names_action: Whether that has the action of the row as a parameter more; for members.
        is_single_partition: Whether the primary of a partition can carry it out by itself, when the first scan of the
            query is of that one.
        many: How to say it for many sets of parameters at once; None where that cannot be said.
    """

    table: TableDef
    source: SelectStatement
    duplicate_match: str
    returning: SelectStatement | None
    names_action: bool
    is_single_partition: bool
    many: ManyRows | None = None

    @property
    def catalog_version(self) -> int:
        return self.source.catalog_version

    @property
    def is_estimated(self) -> bool:
        return self.source.is_estimated


@dataclass(frozen=True, slots=True)
class SetPruning:
    """``SET pruning = ...``: a setting of this session."""

    value: Pruning


@dataclass(frozen=True, slots=True)
class SetPlanOption:
    """A setting of this session that plans depend on, such as ``SET disabled_rules = ...``; empty is the default."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class SetTimeout:
    """``SET statement_timeout = ...``."""

    value: StatementTimeout


@dataclass(frozen=True, slots=True)
class ShowSettings:
    """``SHOW name`` of one setting, or ``SHOW ALL``.

    Attributes:
        settings: Name, default and description of each.
        is_single: Whether one value is the answer, under the name of its setting.
    """

    settings: tuple[tuple[str, str, str], ...]
    is_single: bool


@dataclass(frozen=True, slots=True)
class PlanText:
    """``EXPLAIN``: a result that is there already.

    Attributes:
        columns: One VARCHAR column, ``plan``.
        table: Its lines; a single one, the whole document, for ``FORMAT JSON``.
        is_json: Whether it is that.
        analyzed: For ``EXPLAIN ANALYZE`` the text of the statement to run, else None.
        planning_ms: Milliseconds that the planner took for that.
    """

    columns: tuple[ResultColumn, ...]
    table: pa.Table
    is_json: bool = False
    analyzed: str | None = None
    planning_ms: float = 0.0


Prepared: TypeAlias = (
    SelectStatement
    | Done
    | CreateTableAs
    | CopyFrom
    | CopyTo
    | InsertRows
    | InsertTemplate
    | InsertSelect
    | ChangeStatement
    | WholeChange
    | SetPruning
    | SetPlanOption
    | SetTimeout
    | ShowSettings
    | PlanText
)


def read_prepared(answer: Answer[PreparedAnswer]) -> Prepared:
    """Read the controller's answer.

    Raises:
        ProtocolError: It has a form that this client does not know.
    """
    try:
        statement = answer.message.statement
        match statement["kind"]:
            case "select":
                return _select(statement)
            case "create_table_as":
                source_select = statement["source_select"]
                return CreateTableAs(
                    typed_parts(statement["table"], TableDef),
                    statement["create"],
                    None if source_select is None else _select(source_select),
                )
            case "copy_from":
                return CopyFrom(
                    typed_parts(statement["table"], TableDef),
                    tuple(statement["columns"]),
                    FileOptions.from_wire(statement["options"]),
                )
            case "copy_to":
                return CopyTo(_select(statement["source_select"]), FileOptions.from_wire(statement["options"]))
            case "ddl":
                return Done(statement.get("message", ""))
            case "insert" if "source_select" in statement:
                table = typed_parts(statement["table"], TableDef)
                return InsertSelect(
                    table, tuple(statement["columns"]), _select(statement["source_select"]), statement["mode"]
                )
            case "insert":
                table = typed_parts(statement["table"], TableDef)
                return InsertRows(table, decode_tables(answer.parts), statement["mode"], _template(table, statement))
            case "change":
                return ChangeStatement(
                    typed_parts(statement["table"], TableDef),
                    _select(statement["source_select"]),
                    statement["operation"],
                )
            case "whole_change":
                table, returning = typed_parts(statement["table"], TableDef), statement["returning"]
                returned = None if returning is None else _select(returning)
                source = _select(statement["source_select"])
                many = None
                if statement["many"] is not None:
                    text, cells = statement["many"]
                    many = ManyRows(text, tuple((int(index), str(name)) for index, name in cells))
                return WholeChange(
                    table,
                    source,
                    statement["meeting"],
                    returned,
                    statement["names_action"],
                    statement["is_narrow"],
                    many,
                )
            case "set" if statement["name"] == "pruning":
                return SetPruning(Pruning(statement["value"]))
            case "set" if statement["name"] == "statement_timeout":
                text, _, milliseconds = statement["value"].partition(" = ")
                return SetTimeout(StatementTimeout(text, int(milliseconds)))
            case "set" if isinstance(statement["value"], str):
                return SetPlanOption(str(statement["name"]), str(statement["value"]))
            case "show_settings":
                return ShowSettings(
                    tuple((str(name), str(default), str(text)) for name, default, text in statement["settings"]),
                    statement["is_single"],
                )
            case "explain":
                table = decode_tables(answer.parts)
                columns = tuple(ResultColumn(name, "VARCHAR") for name in table.schema.names)
                return PlanText(
                    columns, table, statement["is_json"], statement.get("analyzed"), statement.get("planning_ms", 0.0)
                )
            case kind:
                raise ProtocolError(
                    f"the controller prepared a statement of kind {kind!r}, which this client does not know: install"
                    " the version of the cluster"
                )
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(
            f"the controller's answer to prepare does not read ({type(error).__name__}: {error}): install the version"
            " of the cluster"
        ) from error


def _template(table: TableDef, statement: dict[str, Any]) -> InsertTemplate | None:
    data = statement.get("template")
    if data is None:
        return None
    rows = tuple(tuple(cell if isinstance(cell, int) else Literal(cell[0]) for cell in row) for row in data["rows"])
    names = tuple(data["parameter_names"])
    return InsertTemplate(
        table, tuple(data["columns"]), rows, statement["mode"], data["parameter_count"], names, data["schema_version"]
    )


def _select(data: dict[str, Any]) -> SelectStatement:
    return SelectStatement(
        plan_id=data["plan_id"],
        scans=tuple(_scan(scan) for scan in data["scans"]),
        columns=tuple(ResultColumn(name, text) for name, text in data["columns"]),
        parameter_count=data["parameter_count"],
        parameter_names=tuple(data["parameter_names"] or ()),
        empty=None if data["empty"] is None else decode_table(data["empty"], ranges=False),
        deterministic=data["deterministic"],
        catalog_version=data["schema_version"],
        lists=tuple(data.get("lists", ())),
        materialized=None if data.get("materialized") is None else _materialized(data["materialized"]),
        is_estimated=data.get("estimated", False),
    )


def _scan(data: dict[str, Any]) -> Scan:
    tree = typed_parts(data["tree"], PartitionTree)
    return Scan(
        data["table"], data["alias"], data["table_id"], data["table_version"], data["group"], data["replicated"], tree
    )


def _materialized(data: dict[str, Any]) -> Materialized:
    steps = tuple(Step(_select(step["select"]), StepUse(step["use"]), step["values_max"]) for step in data["steps"])
    watched = data.get("watched")
    return Materialized(steps, _select(data["outer"]), None if watched is None else tuple(watched))
