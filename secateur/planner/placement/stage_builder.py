"""Builds the stages of a statement; DuckDB binds each of them when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from secateur.engine.processors.row_limit import RowLimit
from secateur.engine.processors.sort_key import SortKey
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.checks.claims import Cutting, PlacedText
from secateur.planner.fragments.merged_order import order_clause
from secateur.planner.fragments.qualified import NotDistributable
from secateur.planner.placement.distribution import Repartition

Schema = Mapping[str, SqlType | str]
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StageDraft:
    """A stage that is being planned.

    Attributes:
        name: For EXPLAIN.
        sql: Over ``relations``.
        relations: Scans and earlier drafts, by the names of their relations.
        columns: Name and SQL type text of each column of its rows.
        at_coordinator: Whether it runs once, at the coordinator, or at every member that owns partitions of its scans.
        is_pipelineable: Whether each row comes from one row of its one relation, independent of the other rows.
        route: How its rows reach its consumers at the members; None where all of them go to all.
        order: The order of its rows at each member, to be merged; nothing: they have no order.
        limit: How many of its rows are the answer; None for all.
        is_scan: Whether its rows are those of one scan.
        cutting: The split of which it is the partial part; None for anything else.
        keyed: The decorrelated query whose rows by key it has; None for anything else.
    """

    name: str
    sql: str
    relations: tuple[str, ...]
    columns: Columns
    at_coordinator: bool
    is_pipelineable: bool = False
    route: Repartition | None = None
    order: tuple[SortKey, ...] = ()
    limit: RowLimit | None = None
    is_scan: bool = False
    cutting: Cutting | None = None
    keyed: str | None = None

    @property
    def placed_text(self) -> PlacedText:
        """Return the text of the stage for the check."""
        names = tuple(name for name, _ in self.columns)
        return PlacedText(self.sql, names, self.is_scan, self.cutting, self.keyed, self.order, self.limit)


@dataclass(frozen=True, slots=True)
class GatheredRows:
    """Rows that the coordinator gathers unchanged.

    Attributes:
        names: The names of the tables in the statement.
        reason: Why, in the user's terms.
        node: The part of the statement that needs them, after the changes.
    """

    names: tuple[str, ...]
    reason: str
    node: exp.Expr


class StageBuilder:
    """The drafts of a statement in the order in which they can run; the rows of the n-th are the relation ``x<n>``.

    Args:
        scans: The schema of each scan, by the name of its relation.
        describe: DuckDB's binder: name and type of each result column of a text over some relations.
    """

    def __init__(self, scans: Mapping[str, Schema], describe: Callable[[str, Mapping[str, Schema]], Columns]) -> None:
        self._schemas: dict[str, Schema] = dict(scans)
        self._describe = describe
        self._described: dict[tuple[str, tuple[str, ...]], Columns] = {}
        self.drafts: list[StageDraft] = []

    @property
    def next_relation(self) -> str:
        """The relation that the next draft will be."""
        return f"x{len(self.drafts)}"

    def add(
        self,
        name: str,
        sql: str,
        relations: Sequence[str],
        columns: Columns,
        *,
        at_coordinator: bool,
        is_pipelineable: bool = False,
        route: Repartition | None = None,
        is_scan: bool = False,
        cutting: Cutting | None = None,
    ) -> str:
        """Add a draft; returns the name of the relation that its rows are.

        Raises:
            NotDistributable: Its text has other types than ``columns``.
            DatabaseError: It does not bind.
        """
        if [text for _, text in self.describe(sql, relations)] != [text for _, text in columns]:
            raise NotDistributable("its stages return other types than the statement: CAST the columns of the result")
        relation = self.next_relation
        self.drafts.append(
            StageDraft(
                name,
                sql,
                tuple(relations),
                columns,
                at_coordinator,
                is_pipelineable,
                route,
                is_scan=is_scan,
                cutting=cutting,
            )
        )
        self._schemas[relation] = dict(columns)
        return relation

    def limit(self, relation: str, limit: RowLimit) -> None:
        """Have some rows of the last draft be the answer."""
        index = int(relation[1:])
        self.drafts[index] = replace(self.drafts[index], limit=limit)

    def note_keyed(self, relation: str, query: str) -> None:
        """Record the decorrelated query whose rows by key a draft has."""
        index = int(relation[1:])
        self.drafts[index] = replace(self.drafts[index], keyed=query)

    def sort(self, relation: str, order: tuple[SortKey, ...]) -> None:
        """Have the rows of a draft come in order from each member."""
        index = int(relation[1:])
        draft = self.drafts[index]
        self.drafts[index] = replace(draft, sql=draft.sql + order_clause(order, draft.columns), order=order)

    def columns_of(self, relation: str) -> Columns:
        """The columns of the rows of a draft."""
        return self.drafts[int(relation[1:])].columns

    def schemas(self, relations: Sequence[str]) -> dict[str, Schema]:
        """The schemas of some relations."""
        return {relation: self._schemas[relation] for relation in relations}

    def describe(self, sql: str, relations: Sequence[str]) -> Columns:
        """Bind a text over some relations.

        Raises:
            DatabaseError: It does not bind.
        """
        key = sql, tuple(relations)
        found = self._described.get(key)
        if found is None:
            found = self._described[key] = self._describe(sql, self.schemas(relations))
        return found
