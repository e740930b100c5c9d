"""Compiles a bound SELECT over one relation to an arrow fragment, or gives the reason why DuckDB has to answer it.

The compiler accepts only what is known to be exact and declines everything else; it never raises for a valid statement.
Two checks back its own rules: each result column must have the type that DuckDB's binder gives it, and
``tests/property/test_kernels_agree.py`` compares both kernels over random statements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from sqlglot import exp

from secateur.engine.kernels.arrow.doubles import SCALE_MAX
from secateur.engine.kernels.arrow.expression import (
    ColumnExpression,
    ConstantExpression,
    Expression,
    ParameterExpression,
)
from secateur.engine.kernels.arrow.fragment import (
    AggregateFunction,
    ArrowAggregate,
    ArrowFragment,
    OrderTerm,
    slot_name,
)
from secateur.partitioning.tables.identifier import folded
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.aggregates import NODES
from secateur.planner.fragments.arrow_constants import cast_type, constant_operand, is_constant
from secateur.planner.fragments.arrow_values import (
    BOOLEAN,
    DOUBLE,
    ColumnScope,
    DeclineError,
    NameScope,
    RowScope,
    compile_value,
    is_orderable,
    refuse_unread,
    require_boolean,
)

_BIGINT: Final = SqlType(TypeKind.BIGINT)
_HUGEINT: Final = SqlType(TypeKind.HUGEINT)

_CLAUSES: Final = frozenset({"from", "where", "group", "having", "order", "limit", "offset", "distinct"})


@dataclass(frozen=True, slots=True)
class KernelDeclined:
    """The arrow kernel cannot answer the statement; ``reason`` explains why."""

    reason: str


def compile_arrow(
    select: exp.Select, schema: Mapping[str, SqlType], relation: str, columns: Sequence[tuple[str, str]]
) -> ArrowFragment | KernelDeclined:
    """Compile a SELECT over one relation.

    Args:
        select: Parsed in DuckDB's dialect, names resolved: columns of the relation, or aliases of the select list.
            Parameters are ``$1`` and up.
        schema: Column name to type, of the relation.
        relation: Its name in FROM; an alias there is taken too.
        columns: Name and type text of each result column, as ``DuckDBKernel.describe`` gives them.

    Returns:
        The fragment, or why there is none. Cost: about 0.1 ms.
    """
    try:
        clauses = clauses_of(select)
        rows = RowScope(schema, _qualifiers(clauses.get("from"), relation))
        where = clauses.pop("where", None)
        condition = None if where is None else require_boolean(compile_value(where.this, rows))
        items = _select_list(select.expressions, schema)
        return compile_stages(select, clauses, rows, items, columns, condition)
    except DeclineError as decline:
        return KernelDeclined(str(decline))


def compile_stages(
    select: exp.Select,
    clauses: Mapping[str, exp.Expr],
    rows: ColumnScope,
    items: Sequence[exp.Expr],
    columns: Sequence[tuple[str, str]],
    where: Expression | None,
) -> ArrowFragment:
    """Compile what comes behind FROM and WHERE.

    Args:
        select: The SELECT.
        clauses: Its other clauses, as :func:`clauses_of` gives them.
        rows: The columns of the rows of FROM.
        items: The select list with stars written out.
        columns: As for :func:`compile_arrow`.
        where: The compiled WHERE.

    Raises:
        DeclineError: Only DuckDB can answer it exactly.
    """
    return _Compiler(select, clauses, rows, items, columns).compile(where)


class _Compiler:
    def __init__(
        self,
        select: exp.Select,
        clauses: Mapping[str, exp.Expr],
        rows: ColumnScope,
        items: Sequence[exp.Expr],
        columns: Sequence[tuple[str, str]],
    ) -> None:
        self._clauses = clauses
        self._columns = columns
        self._rows = rows
        self._items = items
        if len(self._items) != len(columns):
            raise DeclineError("a select list that is not one result column each")
        if len(self._items) != len(select.expressions) and [item.output_name for item in self._items] != [
            name for name, _ in columns
        ]:
            raise DeclineError("* over a relation that has not all columns")
        self._aliases = self._named_outputs()

    def compile(self, where: Expression | None) -> ArrowFragment:
        having, order = self._clauses.get("having"), self._clauses.get("order")
        distinct = self._clauses.get("distinct")
        if distinct is not None:
            refuse_unread(distinct)  # DISTINCT ON
        groups = self._groups() if self._is_aggregation() else None
        if groups is None and having is not None:
            raise DeclineError("HAVING without groups")
        scope: NameScope = self._rows if groups is None else groups
        outputs = tuple(
            (name, self._output(item, text, scope))
            for item, (name, text) in zip(self._items, self._columns, strict=True)
        )
        if distinct is not None:
            _require_orderable([expression for _, expression in outputs], "DISTINCT", floats=False)
        kept = (
            None
            if having is None or groups is None
            else require_boolean(compile_value(self._resolved(having.this), groups))
        )
        sort_keys = () if order is None else self._order(order, scope, outputs, distinct=distinct is not None)
        return ArrowFragment(
            outputs=outputs,
            where=where,
            keys=None if groups is None else groups.keys,
            aggregates=() if groups is None else tuple(groups.aggregates),
            having=kept,
            distinct=distinct is not None,
            order=sort_keys,
            limit=self._row_count("limit"),
            offset=self._row_count("offset"),
        )

    def _named_outputs(self) -> dict[str, exp.Expr]:
        """The select list by output name.

        A name of two columns, or one that hides a column of the relation, is left out; a statement that uses it is
        declined.
        """
        named: dict[str, exp.Expr] = {}
        for item in self._items:
            name = folded(item.output_name)
            named[name] = item.unalias() if named.get(name, item.unalias()) == item.unalias() else exp.Null()
        return named

    def _is_aggregation(self) -> bool:
        parts = [*self._items, *(self._clauses[name] for name in ("having", "order") if name in self._clauses)]
        return "group" in self._clauses or any(node.find(exp.AggFunc) is not None for node in parts)

    def _groups(self) -> _GroupScope:
        group = self._clauses.get("group")
        if group is None:
            return _GroupScope(self._rows, ())
        refuse_unread(group)  # GROUPING SETS, ROLLUP, CUBE
        if group.args.get("all") and "having" in self._clauses:
            raise DeclineError("GROUP BY ALL groups by the columns of HAVING as well")
        nodes = (
            [item.unalias() for item in self._items if item.find(exp.AggFunc) is None]
            if group.args.get("all")
            else group.expressions
        )
        keys = tuple(compile_value(self._group_key(node), self._rows) for node in nodes)
        _require_orderable(keys, "GROUP BY", floats=False)
        if not keys:
            raise DeclineError("GROUP BY of nothing")
        return _GroupScope(self._rows, keys)

    def _group_key(self, node: exp.Expr) -> exp.Expr:
        ordinal = self._ordinal(node)
        return node.unnest() if ordinal is None else ordinal

    def _output(self, item: exp.Expr, text: str, scope: NameScope) -> Expression:
        given = _given_value(item.unalias()) if scope is self._rows and "distinct" not in self._clauses else None
        expression = compile_value(item.unalias(), scope) if given is None else given
        if str(expression.type) != text:
            raise DeclineError(f"{item.sql(dialect='duckdb')} is {text} in DuckDB and {expression.type} here")
        if _holds_uuid(expression.type):
            raise DeclineError(f"a column of {expression.type}")
        return expression

    def _order(
        self, order: exp.Expr, scope: NameScope, outputs: Sequence[tuple[str, Expression]], *, distinct: bool
    ) -> tuple[OrderTerm, ...]:
        keys = []
        for term in order.expressions:
            if not isinstance(term, exp.Ordered) or isinstance(term.this, exp.Var):
                raise DeclineError("ORDER BY ALL")
            refuse_unread(term)
            ordinal = self._ordinal(term.this)
            expression = compile_value(
                self._resolved(term.this.unnest(), whole=True) if ordinal is None else ordinal, scope
            )
            if distinct:
                expression = _among_outputs(expression, outputs)
            keys.append(OrderTerm(expression, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
        _require_orderable([key.expression for key in keys], "ORDER BY", floats=True)
        return tuple(keys)

    def _row_count(self, clause: str) -> Expression | None:
        node = self._clauses.get(clause)
        if node is None:
            return None
        if not isinstance(node, (exp.Limit, exp.Offset)):
            raise DeclineError(f"{clause.upper()} of another form than a number of rows")
        refuse_unread(node)
        count = constant_operand(node.expression, _BIGINT)
        if count is None:
            raise DeclineError(f"{clause.upper()} of an expression")
        return count

    def _ordinal(self, node: exp.Expr) -> exp.Expr | None:
        """The select item that ``2`` in GROUP BY or ORDER BY means; DuckDB's parser drops parentheses around it."""
        node = node.unnest()
        if not isinstance(node, exp.Literal):
            return None
        if node.is_string or not str(node.this).isdecimal() or not 1 <= int(node.this) <= len(self._items):
            raise DeclineError(f"{node.sql(dialect='duckdb')} as a position in the select list")
        return self._items[int(node.this) - 1].unalias()

    def _resolved(self, node: exp.Expr, *, whole: bool = False) -> exp.Expr:
        """Replace the aliases in a node of HAVING or ORDER BY by their expressions.

        If a name is both an alias and a column, DuckDB's choice depends on the clause: only ORDER BY of the bare name
        (``whole``), which is the alias, is accepted.
        """
        if whole and isinstance(node, exp.Column) and not node.table:
            return self._aliases.get(folded(node.name), node)

        def replaced(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or part.table:
                return part
            meaning = self._aliases.get(folded(part.name))
            if meaning is None or meaning == part:
                return part
            if part.name in self._rows:
                raise DeclineError(f"{part.name} is both a column and an alias")
            return exp.Paren(this=meaning.copy())

        return node.transform(replaced)


class _GroupScope:
    """The inputs of a stage after the grouping: group keys and aggregates, which are collected when they are used."""

    def __init__(self, rows: ColumnScope, keys: tuple[Expression, ...]) -> None:
        self._rows = rows
        self.keys = keys
        self.aggregates: list[ArrowAggregate] = []

    def resolve(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if node.find(exp.AggFunc) is not None:
            return None
        if isinstance(node, exp.Column) or not all(isinstance(key, ColumnExpression) for key in self.keys):
            return self._key(node)
        return None

    def _key(self, node: exp.Expr) -> Expression | None:
        try:
            expression = compile_value(node, self._rows)
        except DeclineError:
            if isinstance(node, exp.Column):
                raise
            return None
        if expression in self.keys:
            return ColumnExpression(slot_name(self.keys.index(expression)), expression.type)
        if isinstance(node, exp.Column):
            raise DeclineError(f"{node.sql(dialect='duckdb')} is neither a group key nor in an aggregate")
        return None

    def _aggregate(self, node: exp.AggFunc) -> Expression:
        function = NODES[type(node)].kernel if type(node) in NODES else None
        if function is None:
            raise DeclineError(f"{node.key} is left to DuckDB")
        refuse_unread(node)
        if function is AggregateFunction.COUNT and (node.this is None or isinstance(node.this, exp.Star)):
            aggregate = ArrowAggregate(AggregateFunction.COUNT_ROWS, None, _BIGINT)
        else:
            argument = compile_value(node.this, self._rows)
            aggregate = ArrowAggregate(function, argument, _result_type(function, argument.type))
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return ColumnExpression(slot_name(len(self.keys) + self.aggregates.index(aggregate)), aggregate.type)


def _result_type(function: AggregateFunction, type_: SqlType) -> SqlType:
    """The type that DuckDB gives an aggregate of a type."""
    is_decimal = type_.kind is TypeKind.DECIMAL
    is_number = type_.is_integer or type_.is_float or is_decimal
    match function:
        case AggregateFunction.COUNT_ROWS | AggregateFunction.COUNT:
            return _BIGINT
        case AggregateFunction.MIN | AggregateFunction.MAX if is_orderable(type_):
            return type_
        case AggregateFunction.AVG if is_number and type_.scale <= SCALE_MAX:
            return DOUBLE
        case AggregateFunction.SUM if is_number:
            return DOUBLE if type_.is_float else SqlType(TypeKind.DECIMAL, 38, type_.scale) if is_decimal else _HUGEINT
        case AggregateFunction.MIN | AggregateFunction.MAX | AggregateFunction.AVG | AggregateFunction.SUM:
            raise DeclineError(f"{function.value} of {type_}")
        case _:
            assert_never(function)


def _given_value(node: exp.Expr) -> ConstantExpression | ParameterExpression | None:
    """Return a literal or parameter that is cast to its own type, as in ``UPDATE t SET v = ?``."""
    if type(node) is not exp.Cast or not is_constant(node):
        return None
    wanted = cast_type(node)
    if wanted is None or wanted.kind in (TypeKind.FLOAT, TypeKind.HUGEINT):
        return None
    return constant_operand(node.this, wanted)


def clauses_of(select: exp.Select, *, but: Collection[str] = ()) -> dict[str, exp.Expr]:
    """The clauses that are there, by name without the underscore that newer sqlglot adds to some.

    Args:
        select: A SELECT.
        but: Clauses that are left out.

    Raises:
        DeclineError: There is no FROM, or a clause that is left to DuckDB.
    """
    present = {
        key.rstrip("_"): value
        for key, value in select.args.items()
        if value and key != "expressions" and key not in but
    }
    others = present.keys() - _CLAUSES
    if others:
        raise DeclineError(f"the clause {min(others)}")
    if "from" not in present:
        raise DeclineError("a statement without FROM")
    return present


def _qualifiers(source: exp.Expr | None, relation: str) -> frozenset[str]:
    """The names by which columns may be qualified."""
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table) or folded(table.name) != folded(relation):
        raise DeclineError(f"FROM of something else than {relation}")
    refuse_unread(table)
    if table.args.get("alias") is not None:
        refuse_unread(table.args["alias"])
    return frozenset({folded(table.alias or relation)})


def _select_list(items: Sequence[exp.Expr], schema: Mapping[str, SqlType]) -> list[exp.Expr]:
    """The select list with ``*`` written out."""
    written: list[exp.Expr] = []
    for item in items:
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if not isinstance(star, exp.Star):
            written.append(item)
        elif any(star.args.values()):
            raise DeclineError("* with EXCLUDE, REPLACE or RENAME")
        else:
            written.extend(exp.column(exp.to_identifier(name, quoted=True)) for name in schema)
    return written


def _among_outputs(expression: Expression, outputs: Sequence[tuple[str, Expression]]) -> Expression:
    for position, (_, output) in enumerate(outputs):
        if output == expression:
            return ColumnExpression(slot_name(position), expression.type)
    raise DeclineError("ORDER BY of something that DISTINCT has merged")


def _require_orderable(expressions: Sequence[Expression], clause: str, *, floats: bool) -> None:
    for expression in expressions:
        if not is_orderable(expression.type) or (expression.type.is_float and not floats):
            raise DeclineError(f"{clause} of {expression.type}")
        if not isinstance(expression, ColumnExpression) and expression.type == BOOLEAN:
            raise DeclineError(f"{clause} of a condition")


def _holds_uuid(type_: SqlType) -> bool:
    return any(part.contains((TypeKind.UUID,)) for part in type_.parts)
