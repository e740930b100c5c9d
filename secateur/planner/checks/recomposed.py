"""Checks that the two texts into which a SELECT was split, put together again, are equivalent to that SELECT.

A statement that is split in two is parsed, changed and printed, so the user's own text does not run any more. Here
DuckDB parses both texts, the columns that the final reads are replaced by the expressions that the partial computes for
them, and the result must be DuckDB's tree of the SELECT before the split, clause by clause. Deliberate changes of the
split are checked by their claims:

* an aggregate in two parts has the final of its row in :mod:`~secateur.planner.aggregates`, over its states of the same
  argument, with the same filter;
* a partial that groups has exactly the keys of the whole and, for aggregates of distinct values, their arguments;
* a LIMIT of the partial takes as many rows as LIMIT and OFFSET of the whole, in the order of the whole;
* rows that are ordered or limited already are so as ORDER BY and LIMIT of the whole demand.

This check resolves positions, aliases and stars by rules of its own, from a tree without parentheses. A defect of the
split, of the printer or of sqlglot's parser therefore shows here as a difference, and the statement runs undivided.

Source: translation validation (Pnueli, Siegel, Singerman, 1998): each result of a translation is checked, instead of
    the translator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

from secateur.partitioning.tables.identifier import folded
from secateur.planner.aggregates import AGGREGATES, SPLIT, SqlAggregate
from secateur.planner.checks.conjuncts import same_tree
from secateur.planner.checks.select_node import Node, OrderItem, SelectNode
from secateur.planner.fragments.partial_final import PartialFinal
from secateur.planner.text.parse_tree import nodes_in
from secateur.planner.text.parser_cross_check import DuckDBParse, read_statement

_ANY_TYPE: Final = {"class": "TYPE", "children": [], "name": "ANY_TYPE"}
_BEHIND_WHERE: Final = ("having", "qualify", "sample")


class _Part(Enum):
    """The role of a column of the partial."""

    VALUE = "value"
    """An expression over the rows of FROM, or a key of their groups."""
    AGGREGATE = "aggregate"
    """An aggregate of the rows of one member, which the final has to combine."""
    DISTINCT_KEY = "distinct key"
    """A key that only an aggregate of distinct values is about."""


@dataclass(frozen=True, slots=True)
class _Column:
    expression: Node
    part: _Part


def difference(
    whole: DuckDBParse | None,
    partial: DuckDBParse | None,
    final: DuckDBParse | None,
    partial_final: PartialFinal,
    star: Callable[[Node], Sequence[Node]],
    *,
    is_one_table: bool,
) -> str | None:
    """Return the clause of a SELECT in which its two parts differ from it.

    Args:
        whole: DuckDB's parse tree of the SELECT before it was split.
        partial: The tree of the text that the members run.
        final: The tree of the text that combines their rows.
        partial_final: Both, with the claims about them.
        star: The columns that a ``*`` of the SELECT list stands for.
        is_one_table: Whether FROM has one table, whose alias is not used by the parts.

    Returns:
        The clause that differs, in SQL's words; None if there is none.

    Cost: linear in the trees.
    """
    if whole is None or partial is None or final is None:
        return "the statement"
    return tree_difference(whole.tree, partial.tree, final.tree, partial_final, star, is_one_table=is_one_table)


def tree_difference(
    whole: Node,
    partial: Node,
    final: Node,
    partial_final: PartialFinal,
    star: Callable[[Node], Sequence[Node]],
    *,
    is_one_table: bool,
) -> str | None:
    """:func:`difference` of DuckDB's trees of the three texts."""
    a, p, f = SelectNode.of(whole, star), SelectNode.of(partial), SelectNode.of(final)
    if a is None or p is None or f is None:
        return "the statement"
    columns = _columns_of(p, partial_final)
    if columns is None:
        return "the columns of the part at the members"
    return _Recomposition(a, p, f, columns, partial_final, is_one_table=is_one_table).difference()


def spelling_difference(
    whole: DuckDBParse | None, other: DuckDBParse | None, star: Callable[[Node], Sequence[Node]]
) -> str | None:
    """Return the clause in which another spelling of a SELECT of one table differs from it.

    Arguments and result are as for :func:`difference`.
    """
    if whole is None or other is None:
        return "the statement"
    a, f = SelectNode.of(whole.tree, star), SelectNode.of(other.tree)
    if a is None or f is None:
        return "the statement"
    source = SelectNode(
        {
            **f.node,
            "modifiers": [],
            "group_expressions": [],
            "group_sets": [],
            "aggregate_handling": "",
            **dict.fromkeys(_BEHIND_WHERE),
        },
        (),
    )
    rest = SelectNode({**f.node, "where_clause": None}, f.items)
    return _Recomposition(a, source, rest, {}, PartialFinal("", ""), is_one_table=True).difference()


def _columns_of(partial: SelectNode, partial_final: PartialFinal) -> Mapping[str, _Column] | None:
    """Return the role of each column of the partial, by name; None if names are missing or not unique."""
    groups = partial.grouping_sets
    keys = {id(expression) for keys in groups for expression in keys}
    found: dict[str, _Column] = {}
    for item in partial.items:
        name = folded(item.get("alias") or "")
        if not name or name in found:
            return None
        part = _Part.VALUE
        if partial_final.combines and id(item) not in keys:
            part = _Part.AGGREGATE
        elif partial_final.combines and name in partial_final.distinct_keys:
            part = _Part.DISTINCT_KEY
        found[name] = _Column(item, part)
    return found


class _Recomposition:
    """The whole ``a`` beside partial ``p`` and final ``f``."""

    def __init__(
        self,
        a: SelectNode,
        p: SelectNode,
        f: SelectNode,
        columns: Mapping[str, _Column],
        partial_final: PartialFinal,
        *,
        is_one_table: bool,
    ) -> None:
        self._a, self._p, self._f = a, p, f
        self._columns = columns
        self._partial_final = partial_final
        self._is_one_table = is_one_table

    def difference(self) -> str | None:
        checks: Sequence[tuple[str, Callable[[], bool]]] = (
            ("FROM", self._from),
            (
                "WHERE",
                lambda: (
                    self._same(self._a.node["where_clause"], self._p.node["where_clause"], None)
                    and self._f.node["where_clause"] is None
                ),
            ),
            ("the SELECT list", lambda: self._listed(self._a.items, self._f.items)),
            ("GROUP BY", self._groups),
            ("HAVING or QUALIFY", self._behind_where),
            ("DISTINCT", self._distinct),
            ("ORDER BY", self._order),
            ("LIMIT", self._limit),
            ("what is left out of the part at the coordinator", self._passing),
        )
        return next((name for name, holds in checks if not holds()), None)

    def _from(self) -> bool:
        was, now = self._a.node["from_table"], self._p.node["from_table"]
        if self._is_one_table and was.get("type") == now.get("type") == "BASE_TABLE":
            was, now = (
                {key: table[key] for key in ("table_name", "column_name_alias", "sample", "at_clause")}
                for table in (was, now)
            )
        gathered = self._f.node["from_table"]
        return (
            self._same(was, now, None)
            and gathered.get("type") == "BASE_TABLE"
            and not gathered["column_name_alias"]
            and gathered.get("sample") is None
        )

    def _listed(self, whole: Sequence[Node], final: Sequence[Node]) -> bool:
        return len(whole) == len(final) and all(
            self._same(was, now, self._columns) for was, now in zip(whole, final, strict=True)
        )

    def _groups(self) -> bool:
        whole, partial, final = self._a.grouping_sets, self._p.grouping_sets, self._f.grouping_sets
        by_all = self._a.groups_by_all
        if not self._partial_final.combines:
            if partial:
                # Groups that no two members share.
                return (
                    not final
                    and not self._f.groups_by_all
                    and self._p.groups_by_all == by_all
                    and self._same_sets(whole, partial, None)
                )
            if self._p.groups_by_all:
                return by_all and not final and not self._f.groups_by_all
            return self._f.groups_by_all == by_all and self._same_sets(whole, final, self._columns)
        if self._p.groups_by_all or self._f.groups_by_all or len(partial) > 1:
            return False
        if by_all:
            whole = [[item for item in self._a.items if not any(map(_is_aggregate, nodes_in(item)))]]
        keys = [column.expression for column in self._columns.values() if column.part is _Part.VALUE]
        grouped = [expression for expressions in whole for expression in expressions]
        # Every key of the partial is one of the whole. Otherwise rows of one group would be separated, which combining
        # would not detect.
        wanted = all(any(self._same(expression, key, None) for expression in grouped) for key in keys)
        return wanted and self._same_sets(whole, final, self._columns)

    def _same_sets(
        self, whole: Sequence[Sequence[Node]], other: Sequence[Sequence[Node]], columns: Mapping[str, _Column] | None
    ) -> bool:
        if len(whole) != len(other):
            return False
        for was, now in zip(whole, other, strict=True):
            # An expression that stands there twice, as 1 and as a, is one key.
            if not all(any(self._same(left, right, columns) for right in now) for left in was):
                return False
            if not all(any(self._same(left, right, columns) for left in was) for right in now):
                return False
        return True

    def _behind_where(self) -> bool:
        for clause in _BEHIND_WHERE:
            was, partial, final = (select.node[clause] for select in (self._a, self._p, self._f))
            if partial is not None and (final is not None or self._partial_final.combines):
                return False
            holds = self._same(was, partial, None) if partial is not None else self._same(was, final, self._columns)
            if not holds:
                return False
        return True

    def _distinct(self) -> bool:
        whole, partial, final = self._a, self._p, self._f
        if whole.is_distinct != final.is_distinct or (
            partial.is_distinct and (not whole.is_distinct or self._partial_final.combines)
        ):
            return False
        on = whole.distinct_on
        if bool(on) != bool(final.distinct_on) or not self._listed(on, final.distinct_on):
            return False
        if partial.is_distinct and bool(on) != bool(partial.distinct_on):
            return False
        # A partial that is DISTINCT over more columns than the whole keeps more rows, which the final removes.
        return not partial.distinct_on or (
            len(on) == len(partial.distinct_on)
            and all(self._same(was, now, None) for was, now in zip(on, partial.distinct_on, strict=True))
        )

    def _order(self) -> bool:
        whole, partial, final = self._a.order, self._p.order, self._f.order
        if not self._same_order(whole, final, self._columns):
            return False
        return not partial or (not self._partial_final.combines and self._same_order(whole, partial, None))

    def _same_order(
        self, whole: Sequence[OrderItem], other: Sequence[OrderItem], columns: Mapping[str, _Column] | None
    ) -> bool:
        return len(whole) == len(other) and all(
            (was.direction, was.nulls) == (now.direction, now.nulls)
            and self._same(was.expression, now.expression, columns)
            for was, now in zip(whole, other, strict=True)
        )

    def _limit(self) -> bool:
        whole, partial, final = self._a, self._p, self._f
        if not (partial.limits_by_rows and whole.limits_by_rows == final.limits_by_rows):
            return False
        (limit, offset), (kept, skipped) = whole.limit, partial.limit
        if not all(self._same(was, now, None) for was, now in zip(whole.limit, final.limit, strict=True)):
            return False
        if kept is None and skipped is None:
            return True
        # Rows that the final would still remove, or order otherwise, must not take the place of others.
        removed = [final.node[clause] for clause in _BEHIND_WHERE] + final.grouping_sets
        alike = partial.is_distinct == whole.is_distinct and len(partial.order) == len(whole.order) and not any(removed)
        if kept is None or skipped is not None or limit is None or not alike or self._partial_final.combines:
            return False
        return whole.limits_by_rows and _is_sum(kept, limit, offset)

    def _passing(self) -> bool:
        """Whether the final only passes rows on, which must then be ordered or limited already."""
        partial_final = self._partial_final
        if partial_final.passing is None:
            return not partial_final.order and partial_final.limit is None
        if (
            not partial_final.final.startswith(partial_final.passing)
            or self._f.is_distinct
            or any(self._f.node[clause] for clause in _BEHIND_WHERE)
            or self._f.grouping_sets
        ):
            return False
        if partial_final.order:
            named = [
                (folded(_name(item.expression)), item.direction == "DESCENDING", item.nulls == "NULLS FIRST")
                for item in self._f.order
            ]
            if named != [(folded(key.column), key.descending, key.nulls_first) for key in partial_final.order]:
                return False
        elif self._f.order:
            return False
        limit, offset = (None if clause is None else _number(clause) for clause in self._f.limit)
        said = self._f.limit != (None, None)
        if partial_final.limit is None:
            return not said
        return (offset or 0, limit) == (partial_final.limit.skipped, partial_final.limit.taken)

    # Expressions

    def _same(self, was: Any, now: Any, columns: Mapping[str, _Column] | None, *, aliased: bool = True) -> bool:
        """Whether an expression of a part is equivalent to one of the whole.

        Args:
            was: An expression of the whole.
            now: An expression of a part.
            columns: The columns that the part reads; None where it reads those of the whole.
            aliased: Whether a name of the whole may be the alias of a column of its SELECT list.
        """

        def decide(was: Node, now: Node) -> bool | Collection[str]:
            if now.get("class") == "COLUMN_REF":
                column = None if columns is None else self._read(now, columns)
                if column is not None:
                    return column.part is _Part.VALUE and self._same(was, column.expression, None)
                if was.get("class") == "COLUMN_REF" and _is_one_name(was, now):
                    return True
            if aliased and was.get("class") == "COLUMN_REF" and len(was["column_names"]) == 1:
                item = self._a.aliases.get(folded(was["column_names"][0]))
                if item is not None and self._same(item, now, columns, aliased=False):
                    return True
            if "COLUMN_REF" in (was.get("class"), now.get("class")):
                return False
            if columns is not None and self._partial_final.combines and _is_aggregate(was):
                return self._is_combined(was, now, columns)
            # Names inside of a subquery are its own, unless it is correlated. The alias of an expression is not its
            # value.
            is_own = was.get("class") == "SUBQUERY" and was["subquery"] == now.get("subquery")
            return {*(["alias"] if "class" in was else []), *(["subquery"] if is_own else [])}

        return same_tree(was, now, decide)

    def _read(self, reference: Node, columns: Mapping[str, _Column]) -> _Column | None:
        names = reference["column_names"]
        return columns.get(folded(names[-1])) if len(names) == 1 else None

    def _is_combined(self, was: Node, now: Node, columns: Mapping[str, _Column]) -> bool:
        """Whether an expression of the final combines the members' parts of an aggregate, whatever types they have."""
        aggregate = AGGREGATES[was["function_name"]]

        def decide(form: Node, now: Node) -> bool | Collection[str]:
            if form.get("class") != "COLUMN_REF":
                return form == _ANY_TYPE or ("alias",)
            column = self._read(now, columns) if now.get("class") == "COLUMN_REF" else None
            if column is None:
                return False
            if was["distinct"]:
                return column.part is _Part.DISTINCT_KEY and self._is_of_distinct(was, column.expression)
            call, state = column.expression, aggregate.states[int(_name(form))]
            if column.part is not _Part.AGGREGATE or call.get("qualified_name") != {"path": [state]}:
                return False
            renamed = {"function_name": aggregate.name, "qualified_name": {"path": [aggregate.name]}}
            return self._same(was, {**call, **renamed}, None)

        return same_tree(_final_form(aggregate, distinct=was["distinct"]), now, decide)

    def _is_of_distinct(self, was: Node, key: Node) -> bool:
        """Whether a key is that of ``f(DISTINCT x)``; with ``FILTER (WHERE c)`` it is ``CASE WHEN c THEN x END``."""
        if len(was["arguments"]) != 1 or was["order_bys"]["orders"]:
            return False
        argument = was["arguments"][0]["expression"]
        if was["filter"] is None:
            return self._same(argument, key, None)
        match key:
            case {
                "class": "CASE",
                "case_checks": [{"when_expr": condition, "then_expr": value}],
                "else_expr": {"literal": {"kind": "NULL_LITERAL"}},
            }:
                return self._same(argument, value, None) and self._same(was["filter"], condition, None)
            case _:
                return False


def _is_aggregate(node: Node) -> bool:
    return node.get("class") == "FUNCTION" and node.get("function_name") in SPLIT


@cache
def _final_form(aggregate: SqlAggregate, *, distinct: bool) -> Node:
    """DuckDB's tree of the final expression of an aggregate, over columns that are named by the index of the state."""
    sql = aggregate.distinct_sql('"0"', "any_type")
    if not distinct:
        sql = aggregate.final_sql([f'"{index}"' for index in range(len(aggregate.states))], "any_type", "any_type")
    reading = read_statement(f"SELECT {sql}")
    assert reading is not None
    form: Node = reading.tree["select_list"][0]
    return form


def _is_one_name(was: Node, now: Node) -> bool:
    """Whether two names may mean one column: one is the other with more qualifiers."""
    ours, theirs = [folded(name) for name in was["column_names"]], [folded(name) for name in now["column_names"]]
    shorter = min(len(ours), len(theirs))
    return ours[-shorter:] == theirs[-shorter:] or (
        bool(was.get("is_starred")) and ours[-1].rpartition("_")[0] == theirs[-1]
    )


def _name(expression: Node) -> str:
    names = expression.get("column_names") or [""]
    return str(names[-1]) if len(names) == 1 else ""


def _number(node: Node) -> int | None:
    literal = node.get("literal") or {}
    return int(literal["text"]) if literal.get("kind") == "INTEGER" and literal["text"].isdecimal() else None


def _is_sum(kept: Node, limit: Node, offset: Node | None) -> bool:
    """Whether as many rows are kept as LIMIT and OFFSET together need."""
    if offset is None:
        return bool(kept == limit)
    numbers = [_number(node) for node in (kept, limit, offset)]
    if None not in numbers:
        return numbers[0] == sum(number for number in numbers[1:] if number is not None)
    match kept:
        case {
            "function_name": "+",
            "arguments": [
                {"expression": {"class": "CAST", "child": first}},
                {
                    "expression": {
                        "type": "OPERATOR_COALESCE",
                        "children": [{"class": "CAST", "child": second}, {"literal": {"text": "0"}}],
                    }
                },
            ],
        }:
            return bool(first == limit and second == offset)
        case _:
            return False
