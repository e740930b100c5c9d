"""Splits a SELECT: the members aggregate, sort and limit their own rows, and the coordinator combines the results.

A statement that cannot certainly be split exactly raises
:class:`~secateur.planner.fragments.qualified.NotDistributable` and is gathered instead. DuckDB then binds both parts,
and the statement is also gathered if they do not have the types of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sqlglot import exp

from secateur.engine.processors.row_limit import RowLimit
from secateur.engine.processors.sort_key import SortKey
from secateur.errors import DatabaseError
from secateur.partitioning.tables.identifier import folded
from secateur.planner.aggregates import SPLIT
from secateur.planner.binding.query import Query
from secateur.planner.fragments.aggregates import AVERAGE_TYPE, PartialColumns, combine, split_aggregate
from secateur.planner.fragments.qualified import (
    NotDistributable,
    check_spellings,
    grouping_expressions,
    has_shadowed_names,
    key_of,
    qualified_select,
    reads_columns,
    unresolved_in,
)
from secateur.planner.predicates.constants import parameter_index
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.parser_cross_check import DuckDBParse
from secateur.planner.text.trees import children_of, copied

TypesOf: TypeAlias = Callable[[Sequence[str]], list[str]]
"""DuckDB's binder: the SQL type texts of some expressions, which it is asked for together, since a round costs more
than an expression.
"""

_UNDERSTOOD: Final = frozenset(
    {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct"}
)


@dataclass(frozen=True, slots=True)
class PartialFinal:
    """The two texts of a split statement.

    Attributes:
        partial: Over the FROM clause of the statement.
        final: Over the partial's rows, as a relation; its columns are those of the statement, in order.
        is_pipelineable: Whether each row of the result comes from one row of the table, independent of other rows;
            for both texts, and the statement.
        order: The columns, by name, by which the final orders the partial's rows, if it otherwise only leaves out
            columns; else nothing.
        limit: How many of the partial's rows the final takes, if it otherwise only leaves out columns; else None.
        passing: The final without ORDER BY and LIMIT, for rows that are ordered and limited already; None
            without ``order`` and ``limit``.
        combines: Whether the partial aggregates, and the final combines its groups.
        distinct_keys: The columns by which the partial groups only for aggregates of distinct values.
    """

    partial: str
    final: str
    is_pipelineable: bool = False
    order: tuple[SortKey, ...] = ()
    limit: RowLimit | None = None
    passing: str | None = None
    combines: bool = False
    distinct_keys: frozenset[str] = frozenset()


def split_select(query: Query, reading: DuckDBParse, column_count: int, types_of: TypesOf) -> PartialFinal:
    """Split a query.

    Args:
        query: The bound query.
        reading: DuckDB's parse tree of it, which is repeatable and equals that of the text made from its tree.
        column_count: How many columns its result has.
        types_of: The SQL type texts of expressions over the scanned relation.

    Raises:
        NotDistributable: It cannot be split exactly; the message is the reason.
    """
    select = query.tree
    if not isinstance(select, exp.Select) or len(query.scans) != 1 or select.args.get("joins"):
        raise NotDistributable(
            "it reads more than one table" if len(query.scans) > 1 else "it does not read one table plainly"
        )
    if reading.has_subqueries or reading.tree.get("cte_map", {}).get("map"):
        raise NotDistributable("it has a subquery")
    if reading.has_windows:
        raise NotDistributable(
            "a window function needs its rows on one member: partition the window by the partitioning key"
        )
    if reading.has_collations:
        raise NotDistributable(
            "a collation decides which texts are equal, and stages do not exchange it: leave out COLLATE"
        )
    surplus = {key for key, value in select.args.items() if value} - _UNDERSTOOD
    if surplus:
        raise NotDistributable(f"{', '.join(sorted(surplus)).upper()} needs all rows on one member")
    scan = query.scans[0]
    if scan.node.parent is not select.args["from_"]:
        raise NotDistributable("it does not read one table plainly")
    qualified = qualified_select(select, scan)
    if len(qualified.expressions) != column_count:
        raise NotDistributable("its columns are not those of the SELECT list")
    where = qualified.args.get("where")
    if where is not None and unresolved_in(where):
        raise NotDistributable("WHERE refers to a column of the SELECT list")
    source = scan.relation if where is None else f"{scan.relation} WHERE {to_sql(where.this)}"
    splitter = AggregateSplitter(
        qualified, source, frozenset(folded(column.name) for column in scan.table.columns), types_of, "x0"
    )
    if reading.aggregates() or qualified.args.get("group") or qualified.args.get("having"):
        uncut = reading.aggregates() - SPLIT
        if uncut:
            raise NotDistributable(
                f"{', '.join(sorted(uncut))}() has no partial aggregation: GROUP BY the partitioning key"
            )
        return splitter.aggregated()
    return splitter.plain()


class AggregateSplitter:
    """Splits one qualified SELECT.

    Args:
        select: Its columns are qualified, or are aliases of its SELECT list.
        source: The text after FROM in the partial, including WHERE.
        columns: The names of all columns of FROM, folded.
        types_of: The SQL type texts of expressions over the source.
        relation: The name of the partial's rows in the final.

    Raises:
        NotDistributable: An item of the SELECT list refers to another one.
    """

    def __init__(
        self, select: exp.Select, source: str, columns: frozenset[str], types_of: TypesOf, relation: str
    ) -> None:
        self._source = source
        self._types_of = types_of
        self._relation = relation
        self._items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
        aliases = [
            (folded(item.alias), position)
            for position, item in enumerate(select.expressions)
            if isinstance(item, exp.Alias)
        ]
        self._aliases = dict(aliases)
        if len(self._aliases) < len(aliases):
            raise NotDistributable("two columns of the SELECT list have one alias")
        for item in self._items:
            if unresolved_in(item):
                raise NotDistributable(f"{to_sql(item)} refers to another column of the SELECT list")
        if has_shadowed_names(select, columns):
            raise NotDistributable("a name means a column of the table and another of the SELECT list")
        self._select = select
        distinct = select.args.get("distinct")
        self._distinct = "DISTINCT " if distinct else ""
        on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
        self._distinct_on = [] if on is None else list(on.expressions) if isinstance(on, exp.Tuple) else [on]

    def plain(self) -> PartialFinal:
        """Split a SELECT of rows, or of groups that no two members share.

        The partial does everything on its own rows; the final sorts, limits and removes duplicates once more.
        """
        outputs = [f"{to_sql(item)} AS c{position}" for position, item in enumerate(self._items)]
        keys: list[str] = []
        merged: list[SortKey] = []
        hidden: list[str] = []
        for expression, ordered in self._order_items():
            position = self._output_position(expression)
            if position is not None:
                name = f"c{position}"
            elif self._distinct and not self._distinct_on:
                raise NotDistributable("DISTINCT is ordered by something that is not in the SELECT list")
            else:
                name = f"o{len(hidden)}"
                hidden.append(f"{to_sql(self._expanded(expression))} AS {name}")
            keys.append(name + _direction(ordered))
            merged.append(SortKey(name, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
        limit, offset = self._limit_and_offset()
        order = f" ORDER BY {', '.join(keys)}" if keys else ""
        distinct = apart = self._distinct
        if self._distinct_on:
            apart, distinct = self._first_of_each(hidden)
        # Sorting without a limit would be done twice in vain, unless it determines which row is the first.
        top = f"{order}{self._partial_limit(limit, offset)}" if limit else order if self._distinct_on else ""
        names = ", ".join(f"c{position}" for position in range(len(self._items)))
        partial = f"SELECT {apart}{', '.join(outputs + hidden)} FROM {self._source}{self._behind_where()}{top}"
        is_pipelineable = not (self._distinct or order or limit or offset or self._behind_where())
        head = f"SELECT {distinct}{names} FROM {self._relation}"
        final = f"{head}{order}{_clause('LIMIT', limit)}{_clause('OFFSET', offset)}"
        if self._distinct:
            return PartialFinal(partial, final)
        if not limit and not offset:
            return (
                PartialFinal(partial, final, order=tuple(merged), passing=head)
                if order
                else PartialFinal(partial, final, is_pipelineable)
            )
        rows = None if order else _row_limit(limit, offset)
        return PartialFinal(partial, final, limit=rows, passing=None if rows is None else head)

    def _first_of_each(self, hidden: list[str]) -> tuple[str, str]:
        """Return DISTINCT ON of the partial and of the final; the columns that it names become hidden columns."""
        resolved = [to_sql(self._by_ordinal(item) or self._expanded(item)) for item in self._distinct_on]
        hidden.extend(f"{text} AS d{position}" for position, text in enumerate(resolved))
        return (
            f"DISTINCT ON ({', '.join(resolved)}) ",
            f"DISTINCT ON ({', '.join(f'd{position}' for position in range(len(resolved)))}) ",
        )

    def _behind_where(self) -> str:
        """Return GROUP BY, HAVING, WINDOW and QUALIFY for groups that no two members share.

        They are unchanged except for aliases, which the partial does not have.
        """
        clauses = {key: self._select.args.get(key) for key in ("group", "having", "qualify")}
        behind = exp.Select(
            **{key: copied(self._expanded(clause)) for key, clause in clauses.items() if clause is not None}
        )
        behind.set("windows", [copied(self._expanded(window)) for window in self._select.args.get("windows") or []])
        return to_sql(behind).removeprefix("SELECT").rstrip()

    def aggregated(self) -> PartialFinal:
        """Grouped or not: the partial aggregates by group, the final combines the groups."""
        if self._distinct_on:
            raise NotDistributable("DISTINCT ON of groups of several members")
        asked: dict[str, None] = {}

        def noted(expression: str) -> str:
            asked[expression] = None
            return AVERAGE_TYPE

        # Once to find out which types it needs, so that all are bound in one call, and once with them.
        self._combined(noted)
        return self._combined(self._known_types(list(asked)))

    def _known_types(self, expressions: Sequence[str]) -> Callable[[str], str]:
        try:
            return dict(zip(expressions, self._types_of(expressions), strict=True)).__getitem__ if expressions else str
        except DatabaseError:
            # One of them may not bind, such as the sum for an average of a type that has no sum.
            return lambda expression: self._types_of([expression])[0]

    def _combined(self, type_of: Callable[[str], str]) -> PartialFinal:
        group_keys = self._group_keys()
        keys = {key_of(expression): f"k{position}" for position, expression in enumerate(group_keys)}
        partial = PartialColumns()

        def lift(expression: exp.Expr) -> str:
            return to_sql(self._lifted(expression, keys, partial, type_of))

        outputs = [f"{lift(item)} AS c{position}" for position, item in enumerate(self._items)]
        having = self._select.args.get("having")
        final_having = "" if having is None else f" HAVING {lift(self._expanded(having.this))}"
        order = []
        for expression, ordered in self._order_items():
            position = self._output_position(expression)
            order.append(
                (f"c{position}" if position is not None else lift(self._expanded(expression))) + _direction(ordered)
            )
        limit, offset = self._limit_and_offset()
        qualify = self._select.args.get("qualify")
        final_qualify = "" if qualify is None else f" QUALIFY {lift(self._expanded(qualify.this))}"
        grouped_by = [*keys.items(), *partial.further_keys.items()]
        columns = [f"{text} AS {name}" for text, name in (*grouped_by, *partial.by_sql.items())]
        if not columns:
            raise NotDistributable("it aggregates nothing")
        partial_group = (
            f" GROUP BY {', '.join(str(position + 1) for position in range(len(grouped_by)))}" if grouped_by else ""
        )
        final_group = self._final_group(keys)
        final_order = f" ORDER BY {', '.join(order)}" if order else ""
        final_limit = f"{_clause('LIMIT', limit)}{_clause('OFFSET', offset)}"
        behind = f"{final_group}{final_having}{final_qualify}{final_order}{final_limit}"
        return PartialFinal(
            f"SELECT {', '.join(columns)} FROM {self._source}{partial_group}",
            f"SELECT {self._distinct}{', '.join(outputs)} FROM {self._relation}{behind}",
            combines=True,
            distinct_keys=frozenset(partial.further_keys.values()),
        )

    def _final_group(self, keys: dict[str, str]) -> str:
        """GROUP BY of the final: by the keys, or by the same sets of them."""
        group = self._select.args.get("group")
        if group is None or not _has_sets(group):
            return f" GROUP BY {', '.join(keys.values())}" if keys else ""
        if not keys:
            raise NotDistributable("grouping sets without columns")
        renamed = copied(group)
        parts = grouping_expressions(renamed)
        names = [keys[key_of(self._by_ordinal(part) or self._expanded(part))] for part in parts]
        check_spellings(group, names)
        for part, name in zip(parts, names, strict=True):
            part.replace(exp.Column(this=exp.Identifier(this=name)))
        return f" {to_sql(renamed).strip()}"

    def _group_keys(self) -> list[exp.Expr]:
        group = self._select.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            found = [item for item in self._items if not _aggregates(item)]
            if any(_aggregates(item) and _columns_outside_aggregates(item) for item in self._items):
                raise NotDistributable("GROUP BY ALL groups by a part of an expression")
            behind = [
                clause.this
                for key in ("having", "qualify")
                if isinstance(clause := self._select.args.get(key), exp.Expr)
            ]
            if any(map(_columns_outside_aggregates, behind)):
                raise NotDistributable("GROUP BY ALL groups by the columns of HAVING and QUALIFY as well")
            if not any(map(reads_columns, found)):
                # DuckDB does not group by constants: then there is one group of no rows, or without aggregates none at
                # all.
                raise NotDistributable("GROUP BY ALL groups by no column")
            return _distinct(found)
        if {key for key, value in group.args.items() if value} - {"expressions", "rollup", "cube", "grouping_sets"}:
            raise NotDistributable("GROUP BY has a form that is not taken apart")
        listed = grouping_expressions(group) if _has_sets(group) else group.expressions
        keys = [self._by_ordinal(item) or self._expanded(item) for item in listed]
        if any(isinstance(key.unnest(), exp.Tuple) for key in keys):
            raise NotDistributable("GROUP BY names a row")
        if any(_aggregates(key) for key in keys):
            raise NotDistributable("GROUP BY names an aggregate")
        return _distinct(keys)

    def _lifted(
        self, node: exp.Expr, keys: dict[str, str], partial: PartialColumns, type_of: Callable[[str], str]
    ) -> exp.Expr:
        """An expression over the partial's columns in place of the table's."""
        name = keys.get(key_of(node))
        if name is not None:
            return exp.Column(this=exp.Identifier(this=name))
        combined = combine(node, partial, type_of)
        if combined is not None:
            # Kept as text, because the tree of the final is never inspected.
            return exp.Var(this=f"({combined})")
        if isinstance(node, exp.Column):
            raise NotDistributable(f"{to_sql(node)} is neither grouped nor aggregated")
        if isinstance(node, exp.Query):
            if reads_columns(node):
                raise NotDistributable("a subquery of the SELECT list is about the rows of the statement")
            return node

        def lift(child: exp.Expr) -> exp.Expr:
            return self._lifted(child, keys, partial, type_of)

        if isinstance(node, exp.Window):
            # A window function does not aggregate rows of the statement, but its arguments may.
            return _with_children(node, lambda child: _over_window(child, lift) if child is node.this else lift(child))
        return _with_children(node, lift)

    def _order_items(self) -> list[tuple[exp.Expr, exp.Ordered]]:
        """Each ORDER BY expression, and where it stands with its direction."""
        order = self._select.args.get("order")
        items: list[tuple[exp.Expr, exp.Ordered]] = []
        for ordered in order.expressions if order is not None else ():
            if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
                raise NotDistributable("ORDER BY has a form that is not understood")
            if isinstance(ordered.this, exp.Var):
                items.extend((exp.Literal.number(position + 1), ordered) for position in range(len(self._items)))
            else:
                items.append((ordered.this, ordered))
        return items

    def _output_position(self, expression: exp.Expr) -> int | None:
        """Return the position of the output column of an ORDER BY expression: by ordinal, by alias, or by equality."""
        if isinstance(expression, exp.Literal) and not expression.is_string:
            if not expression.this.isdecimal() or not 1 <= int(expression.this) <= len(self._items):
                raise NotDistributable("ORDER BY names a column that is not there")
            return int(expression.this) - 1
        if isinstance(expression, exp.Column) and unresolved_in(expression):
            position = self._aliases.get(folded(expression.name))
            if position is None:
                raise NotDistributable(f"{to_sql(expression)} is not a column of the table")
            return position
        key = key_of(expression)
        return next((position for position, item in enumerate(self._items) if key_of(item) == key), None)

    def _by_ordinal(self, expression: exp.Expr) -> exp.Expr | None:
        if not isinstance(expression, exp.Literal) or expression.is_string:
            return None
        if not expression.this.isdecimal() or not 1 <= int(expression.this) <= len(self._items):
            raise NotDistributable("GROUP BY names a column that is not there")
        return self._items[int(expression.this) - 1]

    def _expanded(self, expression: exp.Expr) -> exp.Expr:
        """Replace aliases of the SELECT list in an expression of GROUP BY, HAVING or ORDER BY by their expressions."""
        if not unresolved_in(expression):
            return expression

        def replace(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and unresolved_in(node):
                position = self._aliases.get(folded(node.name))
                if position is None or node.table:
                    raise NotDistributable(f"{to_sql(node)} is not a column of the table")
                return exp.Paren(this=copied(self._items[position]))
            return node

        return copied(expression).transform(replace, copy=False).unnest()

    def _limit_and_offset(self) -> tuple[exp.Expr | None, exp.Expr | None]:
        limit, offset = self._select.args.get("limit"), self._select.args.get("offset")
        if limit is not None and (
            not isinstance(limit, exp.Limit) or limit.args.get("limit_options") or limit.args.get("expressions")
        ):
            raise NotDistributable("LIMIT has a form that is not a number of rows")
        found = []
        for clause in (limit, offset):
            expression = None if clause is None else clause.expression
            if expression is not None and not _is_count(expression):
                raise NotDistributable("LIMIT or OFFSET is neither a number nor a parameter")
            found.append(expression)
        return found[0], found[1]

    def _partial_limit(self, limit: exp.Expr | None, offset: exp.Expr | None) -> str:
        """Enough rows of each partial for the final to skip and take: a NULL parameter is no limit in either."""
        if limit is None:
            return ""
        if offset is None:
            return f" LIMIT {to_sql(limit)}"
        if isinstance(limit, exp.Literal) and isinstance(offset, exp.Literal):
            return f" LIMIT {int(limit.this) + int(offset.this)}"
        return f" LIMIT CAST({to_sql(limit)} AS HUGEINT) + coalesce(CAST({to_sql(offset)} AS HUGEINT), 0)"


def _direction(ordered: exp.Ordered) -> str:
    """Return the direction as text."""
    return to_sql(ordered)[len(to_sql(ordered.this)) :]


def _is_count(expression: exp.Expr) -> bool:
    if isinstance(expression, exp.Literal):
        return not expression.is_string and bool(expression.this.isdecimal())
    return parameter_index(expression) is not None


def _row_limit(limit: exp.Expr | None, offset: exp.Expr | None) -> RowLimit | None:
    """LIMIT and OFFSET as numbers; None where one is a parameter, whose value DuckDB has to judge."""
    numbers = [
        None if clause is None else int(clause.this)
        for clause in (limit, offset)
        if not clause or isinstance(clause, exp.Literal)
    ]
    return RowLimit(numbers[1] or 0, numbers[0]) if len(numbers) == 2 else None


def _clause(word: str, expression: exp.Expr | None) -> str:
    return "" if expression is None else f" {word} {to_sql(expression)}"


def _aggregates(node: exp.Expr) -> bool:
    return any(split_aggregate(part) is not None for part in node.walk())


def _columns_outside_aggregates(node: exp.Expr) -> bool:
    """Whether an expression reads columns outside of the arguments and filters of aggregates."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Column):
            return True
        if split_aggregate(item.this if isinstance(item, exp.Filter) else item) is None:
            pending.extend(children_of(item))
    return False


def _has_sets(group: exp.Group) -> bool:
    """Whether it has grouping sets."""
    return group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None


def _over_window(call: exp.Expr, lift: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return a window call with its arguments lifted; FILTER and IGNORE NULLS are around the call."""
    if isinstance(call, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        return _with_children(call, lambda child: _over_window(child, lift) if child is call.this else lift(child))
    return _with_children(call, lift)


def _with_children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy of a node over changed children."""
    copy = copied(node)
    for key, value in node.args.items():
        if isinstance(value, list):
            copy.set(key, [change(child) if isinstance(child, exp.Expr) else child for child in value])
        elif isinstance(value, exp.Expr):
            copy.set(key, change(value))
    return copy


def _distinct(expressions: Sequence[exp.Expr]) -> list[exp.Expr]:
    return list({key_of(expression): expression for expression in expressions}.values())
