"""Checks that the stages of a placed statement, put together again, are equivalent to that statement.

Placement divides a statement in many steps: references to common table expressions are replaced, queries become rows of
their own, scans move with their filters and without unnamed columns, correlated subqueries become look-ups by key. Here
DuckDB parses the text that each stage runs, and the stages are put together from the last one: each relation of moved
rows must be equivalent to the part of the user's own text that it replaces, in DuckDB's tree. Both trees must be equal
clause by clause, except for deliberate replacements, and each of those is checked by its own claim:

* moved rows of a scan are columns of that scan by their names, those that are left out are named nowhere, and a
  condition that they have passed, or a semi-join, is one of the statement's;
* a condition is left out only where rows have passed it before an inner join, and one is added only where all rows
  pass it;
* other moved rows are those of the subquery or of the definition of the common table expression that they replace,
  with its names;
* the two parts of a split SELECT are that SELECT (:mod:`~secateur.planner.checks.recomposed`);
* a look-up has the keys that its subquery equates with outer columns, and leaves out only keys that no outer row has;
* a clock is replaced by the parameter that holds its time.

The check does not depend on how the texts were made, so a defect of any step, of the printer or of sqlglot's parser
shows as a difference. Where rows are, and whether a member may compute its part of the statement separately, cannot be
read from texts and is not checked here.

Source: translation validation (Pnueli, Siegel, Singerman, 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from secateur.engine.processors.row_limit import RowLimit
from secateur.engine.processors.sort_key import SortKey
from secateur.planner.binding.query import TableReference
from secateur.planner.checks.columns_by_position import read_by_position
from secateur.planner.checks.conjuncts import (
    Equalities,
    base_of,
    conditions_of,
    flat_and,
    inner_leaves,
    leaves,
    references,
    said_in,
)
from secateur.planner.checks.recomposed import tree_difference
from secateur.planner.checks.select_node import Node, is_plain_star
from secateur.planner.fragments.partial_final import PartialFinal
from secateur.planner.fragments.unstable import CLOCKS
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.folding import folded
from secateur.planner.text.parser_cross_check import DuckDBParse, read_statements

__all__ = ["Cutting", "PlacedText", "Source", "clocks_difference", "placed_difference", "unsaid_filters"]

_QUERIES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_APART: Final = frozenset({"type", "cte_map", "from_table", "where_clause"})
_CLAUSES: Final = ("modifiers", "group_expressions", "group_sets", "having", "sample", "qualify")


@dataclass(frozen=True, slots=True)
class Source:
    """A scan of the statement.

    Attributes:
        columns: The names of those columns that the statement may need, in the order of the table.
        never_null: Those of them that have no NULLs.
        rows: Equal for scans that read the same rows.
    """

    columns: tuple[str, ...]
    never_null: frozenset[str]
    rows: object

    @classmethod
    def of(cls, scan: TableReference, rows: object = None) -> Source:
        """Make the source of a scan; ``rows`` identifies the rows that it reads."""
        return cls(scan.columns, frozenset(column.name for column in scan.table.columns if not column.nullable), rows)


@dataclass(frozen=True, slots=True)
class Cutting:
    """The claim about a relation of which a SELECT is the final part.

    Attributes:
        whole: The SELECT before it was split.
        partial_final: The two parts.
        star: The columns that a ``*`` of its SELECT list stands for.
    """

    whole: str
    partial_final: PartialFinal
    star: Callable[[Node], Sequence[Node]]


@dataclass(frozen=True, slots=True)
class PlacedText:
    """The text of a stage.

    Attributes:
        sql: The text.
        columns: The names of its columns.
        scans: Whether its rows are those of a scan.
        cutting: The split of which it is the partial part, or None.
        keyed: The decorrelated query whose rows by key it has, or None.
        order: The order of its rows, for a merge.
        limit: How many of its rows are the answer, if its text does not contain the limit.
    """

    sql: str
    columns: tuple[str, ...]
    scans: bool = False
    cutting: Cutting | None = None
    keyed: str | None = None
    order: tuple[SortKey, ...] = ()
    limit: RowLimit | None = None


def placed_difference(
    user: DuckDBParse, texts: Sequence[PlacedText], sources: Mapping[str, Source], clock: int | None
) -> str | None:
    """Return the part of a statement in which the texts of its stages differ from it.

    Args:
        user: DuckDB's parse tree of the user's own text over the relations of its scans.
        texts: Those of the stages; the rows of the n-th are the relation ``x<n>``, the last one is the answer.
        sources: The scans by their relations.
        clock: The number of the parameter that holds the time, counted from 1; None where there is none.

    Returns:
        The difference, in SQL's words; None if there is none.

    Cost: one call of DuckDB's parser, then about linear in the trees.
    """
    asked = {text.sql for text in texts}
    asked |= {sql for text in texts if text.cutting is not None for sql in _texts_of(text.cutting)}
    asked |= {text.keyed for text in texts if text.keyed is not None}
    ordered = sorted(asked)
    readings = dict(zip(ordered, read_statements(ordered), strict=True))
    trees = {sql: reading.tree for sql, reading in readings.items() if reading is not None}
    if len(trees) < len(ordered):
        return "the text of a stage"
    check = _Placed(user, texts, sources, clock, trees)
    return None if check.is_statement() else check.first or "the statement"


def unsaid_filters(user: DuckDBParse, filters: Mapping[str, str], sources: Mapping[str, Source]) -> frozenset[str]:
    """Return the scans whose filters are not conditions of the statement.

    Args:
        user: As for :func:`placed_difference`.
        filters: The filter of some scans, by their relations.
        sources: As there.
    """
    read = read_statements([f"SELECT 1 FROM {relation} WHERE {where}" for relation, where in filters.items()])
    check = _Placed(user, (), sources, None, {})
    said = {
        relation
        for relation, reading in zip(filters, read, strict=True)
        if reading is not None and check.says(relation, reading.tree)
    }
    return frozenset(filters) - said


def clocks_difference(user: DuckDBParse, settled: DuckDBParse | None, clock: int) -> str | None:
    """Return the difference of a text in which a parameter replaces the clocks, other than these.

    Arguments and result are as for :func:`placed_difference`.
    """
    if settled is None:
        return "the statement"
    check = _Placed(user, (), {}, clock, {})
    return None if check.is_query(settled.tree) else check.first or "the statement"


def _texts_of(cutting: Cutting) -> list[str]:
    partial_final = cutting.partial_final
    return [
        cutting.whole,
        *(
            [partial_final.partial, partial_final.final, partial_final.passing]
            if partial_final.passing is not None
            else []
        ),
    ]


@dataclass(frozen=True)
class _Around:
    """The context of a part of the user's text.

    Attributes:
        definitions: The visible common table expressions, by their folded names: each with those that were visible to
            it, None for one that is being defined.
        select: The SELECT around, or None.
    """

    definitions: Mapping[str, tuple[Node, _Around] | None] = field(default_factory=dict)
    select: Node | None = None


class _Placed:
    def __init__(
        self,
        user: DuckDBParse,
        texts: Sequence[PlacedText],
        sources: Mapping[str, Source],
        clock: int | None,
        trees: Mapping[str, Node],
    ) -> None:
        self.first: str | None = None
        self._user = user = user if clock is None else DuckDBParse(_settled(user.tree, clock))
        self._texts = {f"x{number}": text for number, text in enumerate(texts)}
        self._sources = sources
        self._trees = trees
        self._by_position = read_by_position(user)
        self._conjuncts = [conjunct for node in user.nodes for conjunct in conditions_of(node)]
        self._known: dict[tuple[int, int, int], bool] = {}
        self._kept: list[object] = []

    def is_query(self, other: Node) -> bool:
        """Whether a query over the scans themselves is equivalent to the statement."""
        return self._is_query(self._user.tree, other, _Around())

    def is_statement(self) -> bool:
        """Whether the stages are equivalent to the statement."""
        last = f"x{len(self._texts) - 1}"
        return self._is_query(
            self._user.tree, self._trees[self._texts[last].sql], _Around(), limit=self._texts[last].limit
        )

    def says(self, relation: str, filtered: Node) -> bool:
        """Whether all conditions of a query of a scan are conditions of the statement."""
        source = self._sources[relation]
        return _is_plain(filtered) and all(
            self._is_said(conjunct, source) for conjunct in flat_and(filtered["where_clause"])
        )

    def _differs(self, what: str) -> bool:
        self.first = self.first or what
        return False

    # Queries

    def _is_query(self, was: Node, now: Node, around: _Around, limit: RowLimit | None = None) -> bool:
        """Whether a query of the stages is equivalent to one of the user's."""
        key = id(was), id(now), id(around.definitions)
        if key not in self._known:
            self._kept += [was, now, around.definitions]  # an id is that of one object as long as this lives
            before = self.first
            self._known[key] = self._query(was, now, around, limit)
            if self._known[key]:
                self.first = before
        return self._known[key]

    def _query(self, was: Node, now: Node, around: _Around, limit: RowLimit | None) -> bool:
        moved = self._moved(now.get("from_table"))
        if moved is not None and moved.cutting is not None:
            whole = self._trees[moved.cutting.whole]
            return self._is_cut(moved, moved.cutting, whole, now, limit) and self._is_query(was, whole, around)
        if limit is not None:
            return self._differs("LIMIT")
        if self._is_block(was, now, around):
            return True
        if not _passes_on(now):
            return False
        # The unchanged rows of a query, or some of them, perhaps in another order.
        inside, names = None, None
        source = now["from_table"]
        if moved is not None and not moved.scans and not source["alias"] and not source["column_name_alias"]:
            inside, names = self._trees[moved.sql], moved.columns
        elif source.get("type") == "SUBQUERY" and source["alias"] == "q" and source["column_name_alias"]:
            inside, names = source["subquery"]["node"], tuple(source["column_name_alias"])
        if inside is None or names is None:
            return False
        behind = now["modifiers"]
        kept = len(was["modifiers"]) - len(behind)
        if kept < 0 or not self._same(was["modifiers"][kept:], behind, around):
            return self._differs("ORDER BY or LIMIT")
        bare = {**was, "modifiers": was["modifiers"][:kept]} if behind else was
        return self._is_query(bare, inside, around) and (
            _are_names(bare, names) or self._differs("the names of columns")
        )

    def _is_block(self, was: Node, now: Node, around: _Around) -> bool:
        if was.get("type") != now.get("type"):
            return self._differs("a query")
        if now["cte_map"]["map"]:
            return self._differs("a common table expression")
        inside = _with_definitions(was, around)
        match was["type"]:
            case "SELECT_NODE":
                return self._is_select(was, now, _Around(inside.definitions, was))
            case "SET_OPERATION_NODE":
                left, right = was["children"], now["children"]
                rest = [key for key in was if key not in ("children", "cte_map")]
                return (
                    (len(left) == len(right) or self._differs("a set operation"))
                    and all(self._same(was[key], now[key], inside) for key in rest)
                    and all(self._is_query(one, other, inside) for one, other in zip(left, right, strict=True))
                )
            case _:
                return all(self._same(was[key], now[key], inside) for key in was if key != "cte_map")

    def _is_select(self, was: Node, now: Node, around: _Around) -> bool:
        if not self._is_from(was["from_table"], now["from_table"], around):
            return False
        moved, inner = self._scans_in(leaves(now["from_table"])), self._scans_in(inner_leaves(now["from_table"]))
        if not self._are_conditions(was["where_clause"], now["where_clause"], inner, around):
            return self._differs("WHERE")
        clause = next((key for key in was if key not in _APART and not self._same(was[key], now[key], around)), None)
        if clause is not None:
            return self._differs("the SELECT list" if clause == "select_list" else clause.replace("_", " "))
        return all(self._has_columns(table, text, now) for table, text in moved) or self._differs(
            "which columns it looks at"
        )

    def _moved(self, table: Any) -> PlacedText | None:
        return (
            self._texts.get(table["table_name"])
            if isinstance(table, dict) and table.get("type") == "BASE_TABLE"
            else None
        )

    # What is split in two

    def _is_cut(self, moved: PlacedText, cutting: Cutting, whole: Node, final: Node, limit: RowLimit | None) -> bool:
        partial_final, partial = cutting.partial_final, self._trees[moved.sql]
        if tuple(item.get("alias") for item in partial.get("select_list", ())) != moved.columns:
            return self._differs("the columns of the part at the members")
        if moved.order or limit is not None:
            if (
                partial_final.passing is None
                or limit != partial_final.limit
                or not self._is_sorted(moved, partial_final, partial)
            ):
                return self._differs("ORDER BY or LIMIT")
            if final != self._trees[partial_final.passing]:
                return self._differs("the part at the coordinator")
            partial, final = self._trees[partial_final.partial], self._trees[partial_final.final]
        found = tree_difference(whole, partial, final, partial_final, cutting.star, is_one_table=False)
        return found is None or self._differs(found)

    def _is_sorted(self, moved: PlacedText, partial_final: PartialFinal, partial: Node) -> bool:
        """Whether a stage runs the partial part, sorted as in the SELECT."""
        first = {key.column: key for key in reversed(partial_final.order)}
        wanted = [key for key in partial_final.order if first[key.column] is key]
        whole = self._trees[partial_final.partial]
        if not moved.order:
            return bool(not wanted or partial_final.limit is not None) and partial == whole
        said = [
            (
                _by_position(item["expression"], moved.columns),
                item["type"] == "DESCENDING",
                item["null_order"] == "NULLS FIRST",
            )
            for modifier in partial["modifiers"]
            for item in modifier.get("orders") or ()
        ]
        keys = [(key.column, key.descending, key.nulls_first) for key in wanted]
        is_sorted_only = [modifier["type"] for modifier in partial["modifiers"]] == ["ORDER_MODIFIER"]
        return list(moved.order) == wanted and said == keys and is_sorted_only and {**partial, "modifiers": []} == whole

    # FROM

    def _is_from(self, was: Node, now: Node, around: _Around) -> bool:
        # Not recursive: a chain of joins is a tree as deep.
        while was.get("type") == now.get("type") == "JOIN":
            if not self._is_join(was, now, around):
                return False
            was, now = was["left"], now["left"]
        match was, now:
            case {"type": "BASE_TABLE"}, {"type": "BASE_TABLE"}:
                return self._is_table(was, now, around)
            case {"type": "BASE_TABLE"}, {"type": "SUBQUERY"}:
                return self._is_definition(was, now, now["subquery"]["node"], around)
            case {"type": "SUBQUERY"}, {"type": "BASE_TABLE"}:
                moved = self._moved(now)
                alike = folded(was["alias"]) == folded(now["alias"]) and _names(was["column_name_alias"]) == _names(
                    now["column_name_alias"]
                )
                if moved is None or moved.scans or not alike or was["sample"] != now["sample"]:
                    return self._differs("FROM")
                return self._is_rows(was["subquery"]["node"], moved, around)
            case _:
                return self._same_parts(was, now, around) or self._differs("FROM")

    def _is_join(self, was: Node, now: Node, around: _Around) -> bool:
        """Whether a join is one of the user's, apart from its left side."""
        # ON of a join whose right side is the scan is evaluated on its own rows, whatever happens to the left side.
        is_about_right = now["join_type"] in ("LEFT", "SEMI", "ANTI") and now["ref_type"] == "REGULAR"
        met = self._scans_in([now["right"]] if is_about_right else inner_leaves(now))
        rest = [key for key in was if key not in ("left", "right", "condition")]
        return (
            self._is_from(was["right"], now["right"], around)
            and (all(self._same(was[key], now[key], around) for key in rest) or self._differs("a join"))
            and (self._are_conditions(was["condition"], now["condition"], met, around) or self._differs("ON"))
        )

    def _scans_in(self, tables: Iterable[Node]) -> list[tuple[Node, PlacedText]]:
        """The moved scans among some items of FROM."""
        return [(table, text) for table in tables if (text := self._moved(table)) is not None and text.scans]

    def _is_table(self, was: Node, now: Node, around: _Around) -> bool:
        moved, name = self._moved(now), folded(was["table_name"])
        definition = around.definitions.get(name)
        if len(was["qualified_name"]["path"]) == 1 and definition is not None:
            return self._is_definition(was, now, None, around)
        rest = [key for key in was if key not in ("table_name", "qualified_name", "alias")]
        if any(was[key] != now[key] for key in rest) or (was["alias"] or was["table_name"]) != (
            now["alias"] or now["table_name"]
        ):
            return self._differs("FROM")
        if was["table_name"] == now["table_name"]:
            return was["qualified_name"] == now["qualified_name"]
        if moved is None or not moved.scans or name in around.definitions:
            return self._differs("FROM")
        return self._is_scan(was["table_name"], moved)

    def _is_definition(self, was: Node, now: Node, query: Node | None, around: _Around) -> bool:
        """Whether the replacement of a reference is equivalent to the common table expression."""
        found = around.definitions.get(folded(was["table_name"]))
        if found is None:
            return self._differs("FROM")
        definition, reached = found
        given = was["column_name_alias"]
        aliases = [*given, *definition["aliases"][len(given) :]]
        if (
            _alias(was) != _alias(now)
            or _names(now["column_name_alias"]) != _names(aliases)
            or was["sample"] != now["sample"]
        ):
            return self._differs("the names of a common table expression")
        node = definition["query_node"]
        if query is not None:
            return self._is_query(node, query, reached)
        moved = self._moved(now)
        if moved is None or moved.scans:
            return self._differs("FROM")
        if self._trees[moved.sql]["cte_map"]["map"]:
            return self._is_recursion(was, definition, moved, reached)
        return self._is_rows(node, moved, reached)

    def _is_recursion(self, was: Node, definition: Node, moved: PlacedText, reached: _Around) -> bool:
        now = self._trees[moved.sql]
        entries, source = now["cte_map"]["map"], now.get("from_table", {})
        if (
            len(entries) != 1
            or not _passes_on(now)
            or now["modifiers"]
            or source.get("table_name") != entries[0]["key"]
            or source["column_name_alias"]
        ):
            return self._differs("a recursion")
        entry = entries[0]["value"]
        inside = _Around({**reached.definitions, folded(was["table_name"]): None}, None)
        same = folded(entries[0]["key"]) == folded(was["table_name"]) and _names(entry["aliases"]) == _names(
            definition["aliases"]
        )
        rest = [key for key in definition if key not in ("aliases", "query_node")]
        if not same or any(definition[key] != entry[key] for key in rest):
            return self._differs("a recursion")
        query = definition["query_node"]
        return self._is_query(query, entry["query_node"], inside) and (
            _are_names(query, moved.columns, definition["aliases"]) or self._differs("the names of columns")
        )

    def _is_rows(self, was: Node, moved: PlacedText, around: _Around) -> bool:
        """Whether moved rows are those of one of the user's queries."""
        return self._is_query(was, self._trees[moved.sql], around) and (
            _are_names(was, moved.columns) or self._differs("the names of columns")
        )

    # Scans

    def _is_scan(self, relation: str, moved: PlacedText) -> bool:
        tree, source = self._trees[moved.sql], self._sources.get(relation)
        if source is None or tree.get("type") != "SELECT_NODE" or _listed(tree) != moved.columns or not _is_plain(tree):
            return self._differs("the rows of a scan")
        if relation in self._by_position and moved.columns != source.columns:
            return self._differs("which columns it looks at")
        return self._is_reduced(relation, source, tree)

    def _is_reduced(self, relation: str, source: Source, tree: Node) -> bool:
        """Whether FROM and WHERE of a SELECT only leave out rows of a scan that the statement does not need."""
        item = tree["from_table"]
        joins: list[Node] = []
        while item.get("type") == "JOIN":
            joins.append(item)
            item = item["left"]
        named = item.get("table_name", "")
        there = self._sources.get(named)
        if (
            item.get("type") != "BASE_TABLE"
            or there is None
            or there.rows != source.rows
            or item["sample"] is not None
            or item["column_name_alias"]
        ):
            return self._differs("the rows of a scan")
        if not all(self._is_semi_join(relation, named, join) for join in joins):
            return self._differs("a semi-join")
        return all(self._is_said(conjunct, source) for conjunct in flat_and(tree["where_clause"])) or self._differs(
            "the rows of a scan"
        )

    def _is_semi_join(self, relation: str, base: str, join: Node) -> bool:
        right = join["right"]
        if (
            join["join_type"] != "SEMI"
            or join["ref_type"] != "REGULAR"
            or right.get("type") != "SUBQUERY"
            or join["using_columns"]
        ):
            return False
        tree = right["subquery"]["node"]
        other = base_of(tree.get("from_table"))
        there, listed = self._sources.get(other), _listed(tree)
        if there is None or listed is None or not set(listed) <= set(there.columns) or not _is_plain(tree):
            return False
        others = [name for name, source in self._sources.items() if source.rows == there.rows]
        names = _names(listed)
        for conjunct in flat_and(join["condition"]):
            sides = [
                [folded(name) for name in conjunct.get(side, {}).get("column_names", ())] for side in ("left", "right")
            ]
            if conjunct.get("type") != "COMPARE_EQUAL" or [side[:-1] for side in sides] != [
                [base],
                [folded(right["alias"])],
            ]:
                return False
            if sides[1][-1] not in names or not any(
                self._equalities.are_equal((relation, sides[0][-1]), (name, sides[1][-1])) for name in others
            ):
                return False
        return self._is_reduced(other, there, tree)

    @cached_property
    def _equalities(self) -> Equalities:
        return Equalities(self._user.nodes, {relation: source.columns for relation, source in self._sources.items()})

    def _is_said(self, conjunct: Node, source: Source) -> bool:
        """Whether a condition on the rows of a scan is one of the statement's.

        If a scan replaces several references, each of them must have it, or one of those that it has must.
        """
        if any(said_in(conjunct, own, source.columns) for own in self._conjuncts):
            return True
        match conjunct:
            case {"type": "CONJUNCTION_OR" | "CONJUNCTION_AND", "children": children}:
                return all(self._is_said(child, source) for child in children)
            case _:
                return False

    def _has_columns(self, table: Node, moved: PlacedText, select: Node) -> bool:
        """Whether a SELECT names no columns that were left out of a scan which it reads."""
        base = self._base(moved)
        left_out = (
            {folded(name) for name in self._sources[base].columns} - {folded(name) for name in moved.columns}
            if base in self._sources
            else set()
        )
        return not left_out or left_out.isdisjoint(_named_in(select))

    def _base(self, moved: PlacedText) -> str:
        return base_of(self._trees[moved.sql].get("from_table"))

    # Conditions

    def _are_conditions(
        self, was: Node | None, now: Node | None, moved: Sequence[tuple[Node, PlacedText]], around: _Around
    ) -> bool:
        """Whether a condition is the user's, apart from conditions that the rows of moved scans have passed.

        Conditions that all rows pass may be added.
        """
        left, right = list(flat_and(was)), list(flat_and(now))
        position = 0
        for conjunct in left:
            other = right[position] if position < len(right) else None
            if other is None:
                return False
            if not self._same(conjunct, other, around) and not (_is_true(other) and self._is_met(conjunct, moved)):
                return False
            position += 1
        return all(self._is_always_met(conjunct, moved) for conjunct in right[position:])

    def _is_met(self, conjunct: Node, moved: Sequence[tuple[Node, PlacedText]]) -> bool:
        """Whether all rows of a moved scan have passed a condition."""
        for table, text in moved:
            tree, base = self._trees[text.sql], self._base(text)
            columns = self._sources[base].columns if base in self._sources else ()
            alias, renamed = _alias(table), _renamed(table, text.columns)
            own = all(
                len(names) == 1 or folded(names[-2]) == alias
                for reference in references(conjunct)
                for names in [reference["column_names"]]
            )
            if own and any(
                said_in(met, conjunct, columns, exactly=True, renamed=renamed) for met in flat_and(tree["where_clause"])
            ):
                return True
        return False

    def _is_always_met(self, conjunct: Node, moved: Sequence[tuple[Node, PlacedText]]) -> bool:
        match conjunct:
            case {
                "type": "OPERATOR_NOT",
                "children": [
                    {"type": "OPERATOR_IS_NULL", "children": [{"class": "COLUMN_REF", "column_names": [alias, name]}]}
                ],
            }:
                return any(
                    _alias(table) == folded(alias) and name in self._sources[base].never_null
                    for table, text in moved
                    if (base := self._base(text)) in self._sources
                )
            case _:
                return False

    # Expressions

    @on_segmented_stack
    def _same(self, was: Any, now: Any, around: _Around) -> bool:
        pending: list[tuple[Any, Any]] = [(was, now)]
        while pending:
            was, now = pending.pop()
            if isinstance(was, dict) and isinstance(now, dict):
                if was.get("type") in _QUERIES:
                    if not self._is_query(was, now, around):
                        return False
                elif was.get("type") in ("BASE_TABLE", "JOIN") or (
                    was.get("type") == "SUBQUERY" and "class" not in was
                ):
                    if not self._is_from(was, now, around):
                        return False
                elif self._is_lookup(was, now, around):
                    continue
                elif was.keys() != now.keys():
                    return False
                else:
                    pending.extend((was[key], now[key]) for key in was)
            elif isinstance(was, list) and isinstance(now, list):
                if len(was) != len(now):
                    return False
                pending.extend(zip(was, now, strict=True))
            elif type(was) is not type(now) or was != now:
                return False
        return True

    def _same_parts(self, was: Node, now: Node, around: _Around) -> bool:
        return was.keys() == now.keys() and all(self._same(was[key], now[key], around) for key in was)

    # Look-ups

    def _is_lookup(self, was: Node, now: Node, around: _Around) -> bool:
        """Whether a subquery is a look-up by key that replaces a correlated one of the user's."""
        if was.get("class") != "SUBQUERY" or now.get("class") != "SUBQUERY":
            return False
        inside, asked = was["subquery"]["node"], now["subquery"]["node"]
        moved = self._moved(asked.get("from_table"))
        if (
            moved is None
            or moved.keyed is None
            or inside.get("type") != "SELECT_NODE"
            or was["subquery_type"] not in ("SCALAR", "EXISTS")
        ):
            return False
        if (
            any(was[key] != now[key] for key in was if key != "subquery")
            or not _is_plain(asked)
            or not _is_plain(inside)
        ):
            return self._differs("a correlated subquery")
        rows, is_value = self._trees[moved.keyed], was["subquery_type"] == "SCALAR"
        reached = _Around(_with_definitions(inside, around).definitions, inside)
        if not self._is_keyed(inside, asked, rows, is_value, reached, around):
            return self._differs("a correlated subquery")
        names = (*(f"k{number}" for number in range(len(rows["select_list"]) - is_value)), *(["v"] if is_value else []))
        return moved.columns == names and self._is_query(rows, self._trees[moved.sql], _Around())

    def _is_keyed(
        self, inside: Node, asked: Node, rows: Node, is_value: bool, reached: _Around, around: _Around
    ) -> bool:
        """Whether rows by key are those of a correlated subquery, looked up by its keys."""
        items = [{**item, "alias": ""} for item in rows["select_list"]]
        keys = items[:-1] if is_value else items
        count = len(keys)
        aliases = [item["alias"] for item in rows["select_list"]]
        if aliases != [*(f"k{number}" for number in range(count)), *(["v"] if is_value else [])]:
            return False
        shown = asked["select_list"]
        if len(shown) != 1 or (
            shown[0].get("column_names") != ["v"]
            if is_value
            else shown[0].get("literal") != {"kind": "INTEGER", "text": "1"}
        ):
            return False
        # One row for each key: groups, or no duplicates.
        groups = [node["literal"]["text"] for node in rows["group_expressions"] if node.get("class") == "CONSTANT"]
        by_key = (
            groups == [str(number + 1) for number in range(count)]
            and rows["group_sets"] == [list(range(count))]
            and not rows["modifiers"]
        )
        distinct = [modifier["type"] for modifier in rows["modifiers"]] == ["DISTINCT_MODIFIER"] and not rows[
            "modifiers"
        ][0]["distinct_on_targets"]
        if not (by_key if is_value else distinct and not rows["group_expressions"]) or any(
            rows[key] for key in ("having", "sample", "qualify")
        ):
            return False
        if is_value and not self._same({**inside["select_list"][0], "alias": ""}, items[-1], reached):
            return False
        outer = []
        for number, conjunct in enumerate(flat_and(asked["where_clause"])):
            if conjunct.get("type") != "COMPARE_EQUAL" or conjunct["left"].get("column_names") != [f"k{number}"]:
                return False
            outer.append(conjunct["right"])
        if len(outer) != count or not self._is_from(inside["from_table"], rows["from_table"], reached):
            return False
        own, position = list(flat_and(rows["where_clause"])), 0
        pairs = list(zip(keys, outer, strict=True))
        for conjunct in flat_and(inside["where_clause"]):
            if (
                pairs
                and conjunct.get("type") == "COMPARE_EQUAL"
                and [conjunct["left"], conjunct["right"]] in (list(pairs[0]), list(pairs[0])[::-1])
            ):
                pairs.pop(0)
            elif position < len(own) and self._same(conjunct, own[position], reached):
                position += 1
            else:
                return False
        asked_keys = list(zip(keys, outer, strict=True))
        return not pairs and all(
            any(self._is_asked(conjunct, key, value, around) for key, value in asked_keys)
            for conjunct in own[position:]
        )

    def _is_asked(self, conjunct: Node, key: Node, outer: Node, around: _Around) -> bool:
        """Whether a condition on a key leaves out only keys that no outer row has."""
        select = around.select
        if select is None:
            return False
        conditions = list(flat_and(select["where_clause"]))
        if any(
            self._same(of_key, conjunct, around)
            for condition in conditions
            if (of_key := _about(condition, outer, key)) is not None
        ):
            return True
        if (
            conjunct.get("subquery_type") != "ANY"
            or conjunct["comparison_type"] != "COMPARE_EQUAL"
            or conjunct["child"] != key
        ):
            return False
        query = conjunct["subquery"]["node"]
        if query.get("type") != "SELECT_NODE" or query["select_list"] != [outer]:
            return False
        tables = leaves(select["from_table"])
        if [modifier["type"] for modifier in query["modifiers"]] != ["DISTINCT_MODIFIER"] or query["modifiers"][0][
            "distinct_on_targets"
        ]:
            return False
        if any(query[clause] for clause in _CLAUSES if clause != "modifiers"):
            return False
        return any(self._is_from(table, query["from_table"], around) for table in tables) and all(
            any(self._same(condition, met, around) for condition in conditions)
            for met in flat_and(query["where_clause"])
        )


def _settled(part: Any, clock: int) -> Any:
    """Replace each clock in a part of a tree by a parameter: the statement's start time as a TIMESTAMPTZ."""
    if isinstance(part, list):
        return [_settled(item, clock) for item in part]
    if not isinstance(part, dict):
        return part
    match part:
        case {"class": "COLUMN_REF", "column_names": [name]} | {
            "class": "FUNCTION",
            "function_name": name,
            "arguments": [],
        } if folded(name) in CLOCKS:
            parameter = {"class": "PARAMETER", "type": "VALUE_PARAMETER", "alias": "", "identifier": str(clock)}
            kind = CLOCKS[folded(name)]
            shown = _cast(parameter, "TIMESTAMP WITH TIME ZONE")
            return {**(shown if kind == "TIMESTAMPTZ" else _cast(shown, kind)), "alias": part["alias"]}
        case _:
            return {key: _settled(value, clock) for key, value in part.items()}


def _cast(value: Node, kind: str) -> Node:
    type_ = {"class": "TYPE", "children": [], "name": kind}
    return {
        "class": "CAST",
        "type": "OPERATOR_CAST",
        "alias": "",
        "child": value,
        "try_cast": False,
        "type_expr": type_,
    }


def _about(condition: Node, outer: Node, key: Node) -> Node | None:
    """Apply a membership condition on one value to another value; None for any other condition."""
    if condition.get("subquery_type") == "ANY" and condition["child"] == outer:
        return {**condition, "child": key}
    if str(condition.get("type")).startswith("COMPARE_IN") and condition["children"][0] == outer:
        return {**condition, "children": [key, *condition["children"][1:]]}
    return None


def _with_definitions(query: Node, around: _Around) -> _Around:
    entries = query["cte_map"]["map"]
    if not entries:
        return around
    reached = around
    for entry in entries:
        reached = _Around({**reached.definitions, folded(entry["key"]): (entry["value"], reached)}, around.select)
    return reached


def _passes_on(select: Node) -> bool:
    """Whether a query selects all columns of its relation."""
    if select.get("type") != "SELECT_NODE" or select["where_clause"] is not None or len(select["select_list"]) != 1:
        return False
    item = select["select_list"][0]
    return (
        is_plain_star(item)
        and not item["relation_name"]
        and not any(select[clause] for clause in _CLAUSES if clause != "modifiers")
    )


def _is_plain(select: Node) -> bool:
    """Whether a SELECT has only the clauses FROM and WHERE."""
    plain = select["aggregate_handling"] == "STANDARD_HANDLING" and not select["cte_map"]["map"]
    return plain and not any(select[clause] for clause in _CLAUSES)


def _listed(select: Node) -> tuple[str, ...] | None:
    """The names of the columns that a SELECT lists, if that is all that its list has."""
    items = select.get("select_list") or ()
    plain = all(
        item.get("class") == "COLUMN_REF" and len(item["column_names"]) == 1 and not item["alias"] for item in items
    )
    return tuple(item["column_names"][0] for item in items) if plain else None


def _are_names(query: Node, names: Sequence[str], aliases: Sequence[str] = ()) -> bool:
    """Whether the columns of a query can have some names.

    The query does not determine the names of a ``*`` and of expressions without an alias.

    Args:
        query: The query.
        names: The names.
        aliases: The names that stand beside the query, for its first columns.
    """
    said = _names_said(query, len(names))
    if said is None or len(aliases) > len(names):
        return False
    if _names(names[: len(aliases)]) != _names(aliases):
        return False
    return all(own is None or _is_name(name, own) for name, own in list(zip(names, said, strict=True))[len(aliases) :])


def _names_said(query: Node, count: int) -> list[str | None] | None:
    """Return the names that a query gives its columns, None for each unnamed one.

    The result is None if it cannot have so many columns.
    """
    while query.get("type") in ("SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"):
        if "NAME" in str(query.get("setop_type")):
            return [None] * count
        query = query["left"] if query["type"] == "RECURSIVE_CTE_NODE" else query["children"][0]
    items = query.get("select_list")
    if items is None:
        return [None] * count
    said = [
        item.get("alias") or (item["column_names"][-1] if item.get("class") == "COLUMN_REF" else None) for item in items
    ]
    said = [None if own is None or folded(own) in CLOCKS else own for own in said]
    # Those that stand for any number of columns.
    several = [at for at, item in enumerate(items) if item.get("function_name") == "unnest" or _has_star(item)]
    if not several:
        return said if len(said) == count else None
    before, after = said[: several[0]], said[several[-1] + 1 :]
    between = count - len(before) - len(after)
    return [*before, *[None] * between, *after] if between >= 0 else None


def _renamed(table: Node, columns: Sequence[str]) -> dict[str, str] | None:
    """The names of columns by those that the alias of a table gives them; None if it gives none.

    Args:
        table: The item of FROM.
        columns: All columns of the table.
    """
    given = _names(table["column_name_alias"])
    if not given:
        return None
    own = _names(columns)
    shown = [*given, *own[len(given) :]]
    return {name: column for name, column in zip(shown, own, strict=False) if shown.count(name) == 1}


def _has_star(item: Node) -> bool:
    """Whether there is a star in an item, as in ``COLUMNS(*) + 1``, and not in a query in it."""
    pending: list[Any] = [item]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending.extend(part)
        elif isinstance(part, dict):
            if part.get("class") == "STAR":
                return True
            pending.extend(value for key, value in part.items() if key != "subquery")
    return False


def _is_name(name: str, own: str) -> bool:
    """Whether a column that the query calls ``own`` can have a name: one that was there before gets a number."""
    return folded(name) == folded(own) or (
        folded(name).startswith(f"{folded(own)}_") and name.rpartition("_")[2].isdecimal()
    )


def _by_position(item: Node, columns: Sequence[str]) -> str | None:
    """The column that a number in ORDER BY means; None for anything else."""
    literal = item.get("literal") or {}
    if item.get("class") != "CONSTANT" or literal.get("kind") != "INTEGER" or not literal["text"].isdecimal():
        return None
    position = int(literal["text"])
    return columns[position - 1] if 1 <= position <= len(columns) else None


def _named_in(node: Any) -> set[str]:
    """All parts of all names of columns in a part of a tree, folded."""
    found = {folded(name) for reference in references(node) for name in reference["column_names"]}
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            found.update(map(folded, part.get("using_columns") or ()))
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return found


def _is_true(node: Node) -> bool:
    return node.get("class") == "CONSTANT" and node["literal"] == {"kind": "BOOLEAN", "text": "true"}


def _alias(table: Node) -> str:
    return folded(table["alias"] or table.get("table_name") or "")


def _names(names: Sequence[str]) -> list[str]:
    return list(map(folded, names))
