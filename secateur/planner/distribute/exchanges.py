"""The stages of a query: a relation is cut, and its rows are sent to where they are needed.

Rows of ORDER BY may be sorted where they are, and merged. Rows that are needed twice are computed and sent once.

Source: Spark's ``ReuseExchange``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeAlias

from secateur.engine.kernels.duckdb.result_types import is_restored
from secateur.engine.processors.order_and_limit import RowLimit, SortKey
from secateur.engine.sql.stage import stage_relation
from secateur.partitioning.types.column_type import SqlType
from secateur.partitioning.types.sql_text import quoted
from secateur.planner.binding.bound_plan import BoundPlan
from secateur.planner.distribute.placed import AtCoordinator, AtMembers, Key, Placed
from secateur.planner.tree import expressions as ex
from secateur.planner.tree import relations as rel
from secateur.planner.tree.columns import column_types, relations_in
from secateur.planner.tree.expression_sql import Unprintable
from secateur.planner.tree.rewriting import picked, put_back, within
from secateur.planner.tree.sql import sql_of
from secateur.planner.tree.stability import is_repeatable

Schema = Mapping[str, SqlType | str]
_ORDERED_ALIKE: Final = frozenset(
    {
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        *("VARCHAR", "BLOB", "UUID", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
    }
)
"""Types whose values DuckDB orders in a relation that has travelled as it orders them in the table."""


@dataclass(frozen=True, slots=True)
class Route:
    """How rows reach their consumers at the members.

    Attributes:
        columns: By name, the columns that say where a row goes.
        anchor: The scan whose partitions they are; None for a shuffle by hash.
        keeps_unmatched: Whether rows whose partition is not read are sent too, to any member.
    """

    columns: tuple[str, ...]
    anchor: str | None
    keeps_unmatched: bool = False


MakeRoute: TypeAlias = Callable[[Sequence[str]], Route]
"""Makes the route of rows of the names of all of their columns."""


def route_by(key: Key, anchor: str | None, *, keeps_unmatched: bool = False) -> MakeRoute:
    """Makes the route by some columns."""
    return lambda names: Route(tuple(names[column] for column in key), anchor, keeps_unmatched)


@dataclass(frozen=True, slots=True)
class UndividedRows:
    """Rows that the coordinator gets as they are.

    Attributes:
        names: The user's names of their tables.
        reason: Why, in the user's terms.
        location: Where the text needs them, if that is known.
    """

    names: tuple[str, ...]
    reason: str
    location: int | None


@dataclass(slots=True)
class Draft:
    """A stage.

    Attributes:
        title: For EXPLAIN.
        relation: What it computes.
        sql: Its text.
        relations: The scans and earlier stages that it reads, by the names of their relations.
        columns: Name and SQL type text of each of its columns.
        at_coordinator: Whether it runs once.
        nbytes: Their estimated bytes.
        is_pipelineable: Whether each of its rows comes from one row of its one relation.
        is_filtered: Whether it leaves out rows.
        is_of_one: Whether it reads one relation, once.
        is_scan: Whether its rows are those of one scan that pass its predicates.
        route: How its rows are sent; None where all go to all, or to the coordinator.
        order: The order in which each member sends its rows.
        limit: Of the last stage: how many of its rows are the answer.
    """

    title: str
    relation: rel.AnyRelation
    sql: str
    relations: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    at_coordinator: bool
    nbytes: float
    is_pipelineable: bool
    is_filtered: bool
    is_of_one: bool
    is_scan: bool
    route: Route | None = None
    order: tuple[SortKey, ...] = ()
    limit: RowLimit | None = None


@dataclass(slots=True)
class Exchanges:
    """The stages so far.

    Attributes:
        plan: The bound query.
        schemas: The columns of each scan.
        aliases: The user's name of each scan.
        describe: DuckDB's binder.
        twins: For each scan the first one that reads the same partitions and key ranges of the same table.
        drafts: The stages, in an order in which they can run.
        gathered: What the coordinator gets as it is.
        numbers: Numbers for what needs one of its own; none is that of a common table expression of the query.
    """

    plan: BoundPlan
    schemas: Mapping[str, Schema]
    aliases: Mapping[str, str]
    describe: Callable[[str, Mapping[str, Schema]], tuple[tuple[str, str], ...]]
    twins: Mapping[str, str] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    gathered: list[UndividedRows] = field(default_factory=list)
    _known: dict[tuple[str, bool, Route | None], int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(-1, -1))

    def send(
        self,
        placed: Placed,
        needed: Iterable[int],
        route: MakeRoute | None = None,
        *,
        may_be_shared: bool = True,
    ) -> rel.AnyRelation:
        """Cut a relation: its rows, as their consumer reads them.

        Args:
            placed: The relation.
            needed: The columns that the consumer reads; the others are NULL there.
            route: Makes their route; None for all rows to all.
            may_be_shared: Whether they may be those of a stage that has the same rows.

        Raises:
            NotDivided: Its rows cannot be sent, or its text does not mean the same.
        """
        types = column_types(placed.relation)
        wanted = sorted(set(needed)) or [0]  # of rows without columns, any column says how many they are
        sent = picked(placed.relation, wanted)
        draft = self.add(placed.with_columns(sent, [(index, position) for position, index in enumerate(wanted)]))
        names = tuple(name for name, _ in draft.columns)
        if route is not None:
            draft.route = route([names[wanted.index(index)] if index in wanted else "" for index in range(len(types))])
        relation = stage_relation(self._computed_once(draft) if may_be_shared else len(self.drafts) - 1)
        rows = rel.LogicalStageRows(name=relation, names=names, types=tuple(types[index] for index in wanted))
        return put_back(rows, wanted, types)

    def _computed_once(self, draft: Draft) -> int:
        """The number of the last stage, or, in its place, of one before it that has the same rows."""
        last = len(self.drafts) - 1
        if not is_same_again(draft.relation):
            return last
        text = draft.sql
        if any(self.twins.get(name, name) != name for name in draft.relations):
            text = self._text(draft.relation, lambda name: quoted(self.twins.get(name, name)))
        known = self._known.setdefault((text, draft.at_coordinator, draft.route), last)
        if known < last:
            del self.drafts[last]
        return known

    def gather(
        self, placed: Placed, needed: Iterable[int], reason: str, by: Iterable[ex.AnyExpression]
    ) -> rel.AnyRelation:
        """Cut a relation whose rows the coordinator gets as they are, and note why, and what needs them."""
        names = tuple(
            dict.fromkeys(
                self.aliases[name_of(leaf)] for leaf in leaves_of(placed.relation) if isinstance(leaf, rel.LogicalScan)
            )
        )
        locations = (one.query_location for expression in by for one in within(expression))
        self.gathered.append(
            UndividedRows(names, reason, next((place for place in locations if place is not None), None))
        )
        return self.send(placed, needed)

    def send_in_order(
        self, placed: Placed, needed: Iterable[int], order: Sequence[tuple[int, bool, bool]]
    ) -> tuple[rel.AnyRelation, bool]:
        """Cut a sorted relation; also whether its rows are merged in their order.

        Args:
            placed: The relation, sorted.
            needed: As for :meth:`send`.
            order: The columns by which it is sorted, each with whether it is descending, and NULL first.
        """
        wanted = sorted(set(needed))
        sent = self.send(placed, wanted, may_be_shared=False)
        draft = self.drafts[-1]
        keys = [
            SortKey(draft.columns[wanted.index(index)][0], descending=descending, nulls_first=nulls_first)
            for index, descending, nulls_first in order
        ]
        draft.order = merge_keys(keys, draft.columns)
        return sent, bool(draft.order)

    def computed_first(
        self, relation: rel.AnyRelation, over: Callable[[rel.AnyRelation], rel.AnyRelation]
    ) -> rel.AnyRelation:
        """A relation over the rows of another, which the kernel call computes and counts before it goes on."""
        index, types = next(self.numbers), column_types(relation)
        names = tuple(f"c{position}" for position in range(len(types)))
        rows = rel.LogicalWithReference(cte_index=index, chunk_types=types, bound_columns=names)
        return rel.LogicalWith(
            children=(relation, over(rows)),
            table_index=index,
            column_count=len(types),
            ctename=f"w{-index}",
            materialize="CTE_MATERIALIZE_ALWAYS",
        )

    def at_coordinator(self, placed: Placed, needed: Iterable[int]) -> Placed:
        """The same rows in one place."""
        is_sent = isinstance(placed.place, AtMembers)
        return placed.over(self.send(placed, needed) if is_sent else placed.relation, place=AtCoordinator())

    def add(self, placed: Placed, title: str | None = None, *, is_answer: bool = False) -> Draft:
        """A stage that computes a relation where it is placed."""
        leaves = list(leaves_of(placed.relation))
        relations = tuple(dict.fromkeys(name_of(leaf) for leaf in leaves))
        text = self._text(placed.relation)
        columns = self.describe(text, self._schemas(relations))
        types = [type_.sql for type_ in column_types(placed.relation)]
        if any(
            kind.replace('"', "") != type_.replace('"', "") and not (type_ == '"NULL"' and kind == "INTEGER")
            for (_, kind), type_ in zip(columns, types, strict=True)
        ):
            raise NotDivided("its stages return other types than the statement: CAST the columns of the result")
        if not is_answer:
            lost = next((kind for _, kind in columns if not is_restored(kind)), None)
            if lost is not None:
                raise NotDivided(
                    f"values of type {lost} cannot be sent between stages without loss: CAST them to VARCHAR"
                )
        draft = Draft(
            self._title(leaves) if title is None else title,
            placed.relation,
            text,
            relations,
            columns,
            isinstance(placed.place, AtCoordinator),
            placed.nbytes(range(len(types))),
            len(leaves) == 1 and is_row_by_row(placed.relation),
            any(isinstance(one, rel.LogicalFilter) for one in relations_in(placed.relation)),
            len(leaves) == 1,
            len(leaves) == 1 and isinstance(leaves[0], rel.LogicalScan) and is_row_by_row(placed.relation),
        )
        self.drafts.append(draft)
        return draft

    def _text(self, relation: rel.AnyRelation, named: Callable[[str], str] = quoted) -> str:
        try:
            return sql_of(relation, lambda scan: named(name_of(scan)), self.plan.text)
        except Unprintable as error:
            raise NotDivided(f"{error} has no text of its own: filter by the partitioning key to gather less") from None

    def _sent(self) -> dict[str, Draft]:
        """The stages so far, by the names of their rows."""
        return {stage_relation(index): draft for index, draft in enumerate(self.drafts)}

    def _schemas(self, relations: Sequence[str]) -> dict[str, Schema]:
        sent = self._sent()
        return {name: dict(sent[name].columns) if name in sent else self.schemas[name] for name in relations}

    def _title(self, leaves: Sequence[rel.LogicalScan | rel.LogicalStageRows]) -> str:
        name = self._table_of([name_of(leaf) for leaf in leaves])
        if len(leaves) > 1:
            return f"join {name}"
        return f"scan {name}" if leaves and isinstance(leaves[0], rel.LogicalScan) else f"rows of {name}"

    def _table_of(self, relations: Sequence[str]) -> str:
        """The user's name of the first table of a stage, or of the first stage that it reads."""
        if not relations:
            return "constants"
        scanned = next((self.aliases[name] for name in relations if name in self.aliases), None)
        return self._table_of(self._sent()[relations[0]].relations) if scanned is None else scanned


def leaves_of(relation: rel.AnyRelation) -> Iterator[rel.LogicalScan | rel.LogicalStageRows]:
    """The tables and stages that a relation reads."""
    for one in relations_in(relation):
        if isinstance(one, rel.LogicalStageRows) or (isinstance(one, rel.LogicalScan) and one.table is not None):
            yield one


def is_same_again(relation: rel.AnyRelation) -> bool:
    """Whether a relation has the same rows whenever it is computed."""
    return is_repeatable(relation) and not any(isinstance(one, rel.LogicalLimit) for one in relations_in(relation))


def name_of(leaf: rel.LogicalScan | rel.LogicalStageRows) -> str:
    """The name of the relation that a leaf reads."""
    if isinstance(leaf, rel.LogicalStageRows):
        return leaf.name
    assert leaf.table is not None
    return leaf.table


def is_row_by_row(relation: rel.AnyRelation) -> bool:
    """Whether each row comes from one row of a leaf."""
    while isinstance(relation, rel.LogicalFilter | rel.LogicalProject | rel.LogicalUnnestRows):
        (relation,) = relation.children
    return isinstance(relation, rel.LogicalScan | rel.LogicalStageRows)


class NotDivided(Exception):  # noqa: N818 - not an error: it says that a query stays whole, and why
    """A query stays whole: the reason in the user's terms, and where the part is that prevents it, if it is one."""

    def __init__(self, reason: str, location: int | None = None) -> None:
        super().__init__(reason)
        self.location = location


def merge_keys(keys: Iterable[SortKey], columns: Sequence[tuple[str, str]]) -> tuple[SortKey, ...]:
    """Return the keys by which rows are sorted and merged.

    Empty if the order of a column is not certain to be the same in both.

    Args:
        keys: The keys of ORDER BY; the second occurrence of a column has no effect.
        columns: Name and SQL type text of each column.
    """
    types = dict(columns)
    first = {key.column: key for key in reversed(list(keys))}
    ordered = tuple(key for key in keys if first.get(key.column) is key)
    alike = all(types[key.column] in _ORDERED_ALIKE or types[key.column].startswith("DECIMAL(") for key in ordered)
    return ordered if alike else ()
