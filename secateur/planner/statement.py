"""The kinds of planned statements: frozen values of subclasses of :class:`~secateur.protocol.statements.Statement`.

The controller carries out a :data:`Command`; a client executes each of the others. A statement that contains a query
has a :class:`PlannedSelect` here. The controller's reply to the client
(:mod:`secateur.cluster.controller.statement_replies`) turns a PlannedSelect into a SelectStatement, an EvaluatedInsert
into InsertRows, an ExplainStatement into a PlanText, and a command that it has carried out into Done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.schemes.range_changes import RangeChange
from secateur.partitioning.tables.alteration import ColumnChange
from secateur.partitioning.tables.table import IndexDef, NamedType, TableDef
from secateur.planner.prune.bounds import ScanBounds
from secateur.planner.text.parameters import NO_USES, TypeUses
from secateur.planner.views import ViewDef
from secateur.protocol.access import PolicyCommand, ResourceGroup, Rights, RowCondition
from secateur.protocol.hello import Pruning
from secateur.protocol.query_parts import SubqueryUse
from secateur.protocol.statements import Statement, TextualParameters
from secateur.protocol.tokens import TableGrant, TokenRole


class ExplainFormat(Enum):
    """The forms of EXPLAIN."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class PlannedSelect(Statement):
    """A query.

    Attributes:
        plan: The part that is sent to members and clients.
        bounds: For each scan the bounds on its keys; EXPLAIN shows them, nothing executes them.
        params: The values of this call, in order of parameter index; None when none were given to a query that has
            parameters.
        hidden: Values of hidden parameters: of lists that were hoisted out of the text
            (:mod:`~secateur.planner.text.hoisted_lists`), and of claims; they follow the user's in ``params``.
        materialized: The same query in steps, where that prunes more; None where it does not.
        colocated: Groups of scans whose rows meet only within partitions of one number, as names of relations.
        filters: For each scan the predicates that are tested on the rows that the search finds, as SQL; empty where
            there are none. EXPLAIN shows them.
        estimated_rows: For each scan how many rows are expected to pass its predicates; None without statistics.
        type_uses: The parameters on whose types it depends.
        textual: As of :class:`~secateur.protocol.statements.SelectStatement`.
        plan_whole: For a plan with ``is_upsert_only``, plans the query for the row changes, once; None for any other.
    """

    role = TokenRole.READ
    is_cached = True
    plan: SelectPlan
    bounds: tuple[ScanBounds, ...]
    params: tuple[object, ...] | None
    hidden: tuple[object, ...] = ()
    materialized: PlannedSteps | None = None
    colocated: tuple[tuple[str, ...], ...] = ()
    filters: tuple[str, ...] = ()
    estimated_rows: tuple[int | None, ...] = ()
    type_uses: TypeUses = NO_USES
    textual: TextualParameters = ()
    plan_whole: Callable[[], PlannedSelect] | None = field(default=None, compare=False)

    @property
    def queries(self) -> tuple[PlannedSelect, ...]:
        return (self,)

    def with_queries(self, changed: Callable[[Any], Any]) -> Any:
        return changed(self)

    def whole(self) -> PlannedSelect:
        """The query for the row changes, where only the key of their row has been planned; else the query itself.

        Raises:
            Error: It is refused.

        Cost: that of planning it, for the first call.
        """
        return self if self.plan_whole is None else replace(self.plan_whole(), params=self.params)

    def check_tables(self, rights: Rights) -> None:
        rights.check_reads(self.plan.tables_read)
        if self.materialized is not None:
            for step in self.materialized.steps:
                step.query.check_tables(rights)
            self.materialized.outer.check_tables(rights)


@dataclass(frozen=True, slots=True)
class PlannedStep:
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
    query: PlannedSelect
    use: SubqueryUse
    values_max: int
    estimate: int | None = None

    @property
    def parameter_count(self) -> int:
        """The number of parameters of the rest for which the step gives values."""
        return len(self.query.plan.columns) if self.use is SubqueryUse.KEYS else 1


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """A query whose subqueries run first, so that their values prune the scans of the rest.

    Attributes:
        steps: In the order of their parameters.
        outer: The query with parameters of its own in place of the subqueries: those of the user, then those of each
            step, lists or a value. It may have steps itself.
        watched: The scans of ``outer`` that steps have read as well: the values hold as long as their rows are the
            same. None for values that stand for the subquery, whatever has changed since.
    """

    steps: tuple[PlannedStep, ...]
    outer: PlannedSelect
    watched: tuple[int, ...] | None = None


class _Definition(Statement):
    """DDL, which concerns everybody who uses the cluster."""

    __slots__ = ()
    role = TokenRole.ADMIN
    explained = "DDL runs at the controller and reads no partition"


@dataclass(frozen=True, slots=True)
class _Drop(_Definition):
    """A DROP of what has a name of its own."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateTable(_Definition):
    """``tdef.table_id`` is 0: the catalog gives the id."""

    tdef: TableDef
    if_not_exists: bool
    or_replace: bool


@dataclass(frozen=True, slots=True)
class CreateExternalTable(_Definition):
    """A CREATE EXTERNAL TABLE: the encoded connector of its folder, and the statement as it is shown."""

    name: str
    connector: bytes
    if_not_exists: bool
    or_replace: bool
    sql: str


@dataclass(frozen=True, slots=True)
class CreateIndex(_Definition):
    """A CREATE INDEX: the table as it was when the columns were checked against it."""

    table: TableDef
    index: IndexDef
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropIndex(_Drop):
    """A DROP INDEX."""


@dataclass(frozen=True, slots=True)
class AlterTable(_Definition):
    """An ALTER TABLE: the table as it was when the changes to its ranges were checked against it."""

    table: TableDef
    changes: tuple[RangeChange, ...]


@dataclass(frozen=True, slots=True)
class AlterColumns(_Definition):
    """An ALTER TABLE of columns or of the name: the table as it was when the changes were checked against it."""

    table: TableDef
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class DropTable(_Drop):
    """A DROP TABLE."""


@dataclass(frozen=True, slots=True)
class CommentOn(_Definition):
    """A COMMENT ON a table, or on a column of it; without a comment, the one that is there goes."""

    table: TableDef
    column: str | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class CreateView(_Definition):
    """A CREATE VIEW; ``view.view_id`` is 0: the catalog gives the id."""

    view: ViewDef
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropView(_Drop):
    """A DROP VIEW."""


@dataclass(frozen=True, slots=True)
class CreateType(_Definition):
    """A CREATE TYPE; ``named.type_id`` is 0: the catalog gives the id."""

    named: NamedType
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropType(_Drop):
    """A DROP TYPE."""


@dataclass(frozen=True, slots=True)
class CreateRole(_Definition):
    """A CREATE ROLE; the name is case-folded, as all names of roles."""

    name: str
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropRole(_Drop):
    """A DROP ROLE."""


@dataclass(frozen=True, slots=True)
class GrantTables(_Definition):
    """A GRANT of privileges on tables to roles, or a REVOKE."""

    grants: tuple[TableGrant, ...]
    roles: tuple[str, ...]
    is_grant: bool


@dataclass(frozen=True, slots=True)
class SecureTable(_Definition):
    """An ALTER TABLE that switches row security on or off."""

    table: TableDef
    enables: bool


@dataclass(frozen=True, slots=True)
class CreatePolicy(_Definition):
    """A CREATE POLICY, with its conditions checked against the table as it was."""

    name: str
    table: TableDef
    command: PolicyCommand
    roles: tuple[str, ...]
    using: RowCondition | None
    check: RowCondition | None


@dataclass(frozen=True, slots=True)
class DropPolicy(_Definition):
    """A DROP POLICY."""

    name: str
    table: TableDef
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateResourceGroup(_Definition):
    """A CREATE RESOURCE GROUP."""

    group: ResourceGroup
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AlterResourceGroup(_Definition):
    """An ALTER RESOURCE GROUP: the limits that it sets, by the fields of a group, and its roles; None keeps them."""

    name: str
    limits: Mapping[str, Any]
    roles: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class DropResourceGroup(_Drop):
    """A DROP RESOURCE GROUP."""


GroupCommand: TypeAlias = CreateResourceGroup | AlterResourceGroup | DropResourceGroup
AccessCommand: TypeAlias = CreateRole | DropRole | GrantTables | SecureTable | CreatePolicy | DropPolicy | GroupCommand
"""What changes who may do what, and how much of it."""


@dataclass(frozen=True, slots=True)
class ExplainStatement(Statement):
    """``EXPLAIN [ANALYZE] [(FORMAT JSON)] target``; ``offset`` is where the target begins in the text."""

    role = TokenRole.READ
    target: Statement
    format: ExplainFormat
    analyze: bool
    offset: int

    def check_tables(self, rights: Rights) -> None:
        self.target.check_tables(rights)


@dataclass(frozen=True, slots=True)
class SetGlobalPruning(Statement):
    """``SET GLOBAL pruning = ...``: the setting of all sessions that have not set their own."""

    role = TokenRole.ADMIN
    explained = "SET GLOBAL changes a setting of the cluster and reads no partition"
    value: Pruning


@dataclass(frozen=True, slots=True)
class KillJob(Statement):
    """``KILL JOB``: stop a job, by its id or name."""

    role = TokenRole.ADMIN
    explained = "KILL JOB stops a job and reads no partition"
    job: str


@dataclass(frozen=True, slots=True)
class KillStatement(Statement):
    """``KILL``: end a running statement of any connection.

    Attributes:
        member: The member that coordinates it, or ``"controller"``.
        number: Its number there.
    """

    role = TokenRole.ADMIN
    explained = "KILL ends a statement on its member and reads no partition"
    member: str
    number: int

    @property
    def statement_id(self) -> str:
        """Its id, as ``secateur.statements`` shows it."""
        return f"{self.member}:{self.number}"


Command: TypeAlias = (
    CreateTable
    | CreateExternalTable
    | AlterTable
    | AlterColumns
    | DropTable
    | CreateView
    | DropView
    | CreateType
    | DropType
    | CreateIndex
    | DropIndex
    | CommentOn
    | AccessCommand
    | SetGlobalPruning
    | KillStatement
    | KillJob
)
"""The controller carries it out."""
