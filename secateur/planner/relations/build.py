"""Builds the relational tree of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.planner.binding.query import Query, holds_query, may_recur
from secateur.planner.predicates.predicate import flat
from secateur.planner.predicates.row_values import fields_of
from secateur.planner.relations.attribute import Attribute
from secateur.planner.relations.bound_predicate import BoundPredicate, bind, comparison, equality
from secateur.planner.relations.calls import chosen_column, may_aggregate, may_be_many, names_a_window, windows_in
from secateur.planner.relations.from_clause import FromClause
from secateur.planner.relations.names import VisibleNames
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    Distinct,
    Filter,
    Limit,
    Opaque,
    Project,
    Relation,
    SetKind,
    SetOperation,
    Sort,
    SubqueryForm,
    Unknown,
    Values,
    Window,
    is_never_null,
)
from secateur.planner.relations.query_builder import Cte, Ctes, Output, QueryBuilder, subqueries_in
from secateur.planner.segmented_stack import on_segmented_stack

_SELECT_PARTS: Final = frozenset(
    {
        *(
            "with_",
            "expressions",
            "distinct",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "qualify",
            "windows",
            "order",
            "limit",
            "offset",
            "sample",
        ),
        # This has no effect on the rows.
        *("hint", "operation_modifiers"),
    }
)
_SET_KINDS: Final[dict[type[exp.Expr], SetKind]] = {
    exp.Union: SetKind.UNION,
    exp.Intersect: SetKind.INTERSECT,
    exp.Except: SetKind.EXCEPT,
}


def build_relations(query: Query) -> tuple[Relation, ...]:
    """Return the relations of a query: itself first, then subqueries that are not an input of it, as in ORDER BY.

    Each scan of the query is in some of them, once for each reference to the common table expression around it.

    Raises:
        TooLargeError: Nested references to common table expressions repeat too often.
    """
    builder = RelationBuilder(query.scans)
    root = builder.query(query.tree, VisibleNames(), {})
    builder.finish(query.tree)
    return (root.relation, *builder.loose)


class RelationBuilder(QueryBuilder):
    """Makes the relation of any query."""

    @on_segmented_stack
    def query(self, node: exp.Expr, outer: VisibleNames, ctes: Ctes) -> Output:
        """Any query: SELECT, a set operation, VALUES, one of these in parentheses."""
        ctes = self._with(node, outer, ctes)
        match node:
            case exp.Select():
                return _Select(self, node, outer, ctes).output()
            case exp.SetOperation():
                return self._modified(node, self._set_operation(node, outer, ctes), outer, ctes)
            case exp.Subquery() if holds_query(node):
                return self._modified(node, self.query(node.this, outer, ctes), outer, ctes)
            case exp.Values():
                return self._modified(node, self.values(node, outer, ctes), outer, ctes)
            case _:
                self.detach(node, outer, ctes)
                return Output(Unknown(), (), complete=False)

    def _with(self, node: exp.Expr, outer: VisibleNames, ctes: Ctes) -> Ctes:
        with_ = node.args.get("with_")
        if not isinstance(with_, exp.With):
            return ctes
        reach = dict(ctes)
        for cte in with_.expressions:
            name = folded(cte.alias)
            if may_recur(with_, cte):
                itself = {**reach, name: Cte(cte, None, {})}
                self.loose.append(self.query(cte.this, outer, itself).relation)
                reach[name] = Cte(cte, None, {})
            else:
                reach[name] = Cte(cte, cte.this, dict(reach))
                if not _is_mentioned(node, name):
                    self.loose.append(self.query(cte.this, outer, reach[name].reach).relation)
        return reach

    def _modified(self, node: exp.Expr, output: Output, outer: VisibleNames, ctes: Ctes) -> Output:
        """ORDER BY and LIMIT behind a set operation or a query in parentheses."""
        relation = output.relation
        known = {
            "with_",
            "this",
            "expression",
            "expressions",
            "distinct",
            "by_name",
            "alias",
            "order",
            "limit",
            "offset",
        }
        strange = sorted(key for key, value in node.args.items() if value and key not in known)
        if strange:
            relation = Opaque(
                relation, f"{strange[0].strip('_').upper()} follows a query in parentheses: write it inside"
            )
        return replace(output, relation=self.ordered(relation, node, outer, ctes))

    def ordered(self, relation: Relation, node: exp.Expr, names: VisibleNames, ctes: Ctes) -> Relation:
        """ORDER BY and LIMIT of a node."""
        for key in ("order", "limit", "offset"):
            part = node.args.get(key)
            if isinstance(part, exp.Expr):
                self.detach(part, names, ctes)
                relation = Sort(relation) if key == "order" else Limit(relation, key.upper())
        return relation

    def values(self, node: exp.Values, outer: VisibleNames, ctes: Ctes) -> Output:
        """VALUES; its columns are col0, col1, ..."""
        self.detach(node, outer, ctes)
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        return Output(Values(()), tuple((f"col{position}", None) for position in range(len(rows[0]) if rows else 0)))

    def _set_operation(self, node: exp.SetOperation, outer: VisibleNames, ctes: Ctes) -> Output:
        kind = _SET_KINDS[type(node)]
        parts: list[exp.Expr] = []
        keeps_all = True
        pending: list[exp.Expr] = [node]
        # A chain of unions is one union of many inputs: DISTINCT or not, the same predicates pass.
        while pending:
            item = pending.pop()
            plain = item is node or not any(
                item.args.get(key) for key in ("with_", "order", "limit", "offset", "sample")
            )
            if (
                isinstance(item, exp.Union)
                and kind is SetKind.UNION
                and plain
                and bool(item.args.get("by_name")) == bool(node.args.get("by_name"))
            ):
                pending.extend((item.expression, item.this))
                keeps_all = keeps_all and item.args.get("distinct") is False
            else:
                parts.append(item)
        if kind is not SetKind.UNION:
            parts = [node.this, node.expression]
            keeps_all = node.args.get("distinct") is False
        outputs = [self.query(part, outer, ctes) for part in parts]
        names = _set_columns(outputs, by_name=bool(node.args.get("by_name")))
        if names is None:
            return Output(
                SetOperation(kind, tuple(output.relation for output in outputs), (), (), keeps_all), (), complete=False
            )
        number = self.owner()
        attributes, sources = [], []
        for position, (name, given) in enumerate(names):
            attributes.append(Attribute(number, position, name, _common_type(given)))
            sources.append(given)
        inputs = tuple(output.relation for output in outputs)
        relation = SetOperation(
            kind, inputs, tuple(attributes), tuple(zip(*sources, strict=True)) if sources else (), keeps_all
        )
        known = [attribute if any(given) else None for attribute, given in zip(attributes, sources, strict=True)]
        return Output(
            relation, tuple((attribute.name, column) for attribute, column in zip(attributes, known, strict=True))
        )


class _Select:
    """One SELECT."""

    def __init__(self, builder: RelationBuilder, node: exp.Select, outer: VisibleNames, ctes: Ctes) -> None:
        self._builder = builder
        self._node = node
        self._ctes = ctes
        self._from = FromClause(builder, ctes, outer, node).read()
        self._items = list(node.expressions)
        names = self._from.names
        plain = {
            folded(alias.alias): names.resolve(alias.this)
            for alias in self._items
            if isinstance(alias, exp.Alias) and isinstance(alias.this, exp.Column)
        }
        computed = {folded(alias.alias): None for alias in self._items if isinstance(alias, exp.Alias)}
        self._names = replace(names, aliases={**computed, **plain})

    def output(self) -> Output:
        node = self._node
        relation = self._from.relation
        strange = sorted(key for key, value in node.args.items() if value and key not in _SELECT_PARTS)
        if strange:
            relation = Opaque(relation, f"{strange[0].strip('_').upper()} cannot be divided into stages")
        if node.args.get("sample"):
            # The sample is taken before WHERE applies.
            relation = Limit(relation, "a sample")
        relation = self._filtered(self._applied(relation))
        relation = self._aggregated(relation)
        relation = self._windowed(relation)
        distinct = node.args.get("distinct")
        if isinstance(distinct, exp.Distinct):
            relation = self._distinct(relation, distinct)
        output = self._projected(relation)
        return replace(output, relation=self._builder.ordered(output.relation, node, self._names, self._ctes))

    def _conjuncts(self, key: str, *, beside_aliases: bool) -> tuple[BoundPredicate, ...]:
        clause = self._node.args.get(key)
        if not isinstance(clause, exp.Expr):
            return ()
        resolve = self._names.resolve_beside_aliases if beside_aliases else self._names.resolve
        return tuple(bind(conjunct, resolve) for conjunct in flat(clause.this, exp.And))

    def _applied(self, relation: Relation) -> Relation:
        """The subqueries of WHERE and of the SELECT list, each evaluated for every row of FROM."""
        self._where = self._conjuncts("where", beside_aliases=False)
        for conjunct in self._where:
            for subquery in subqueries_in(conjunct.predicate):
                relation = self._apply(relation, subquery, conjunct)
        for item in self._items:
            for subquery in subqueries_in(item):
                built = self._builder.query(subquery, self._names, self._ctes)
                relation = Apply(relation, built.relation, SubqueryForm.VALUE)
        return relation

    def _apply(self, relation: Relation, subquery: exp.Expr, conjunct: BoundPredicate) -> Relation:
        built = self._builder.query(subquery, self._names, self._ctes)
        predicate = conjunct.predicate
        negated = isinstance(predicate, exp.Not)
        inner = predicate.this.unnest() if isinstance(predicate, exp.Not) else predicate
        if isinstance(inner, exp.Exists) and inner.this is subquery:
            return Apply(
                relation, built.relation, SubqueryForm.NOT_EXISTS if negated else SubqueryForm.EXISTS, conjunct=conjunct
            )
        if isinstance(inner, exp.In) and inner.args.get("query") is subquery:
            compared = inner.this.unnest()
            listed = fields_of(compared) or [compared]
            operands = tuple(map(self._column, listed))
            outputs = tuple(attribute for _, attribute in built.columns)
            if len(listed) == len(built.fields):
                # Rows are equal where both have a NULL in one place, which rows of columns that may be NULL are not.
                outputs = tuple(
                    field if field is not None and is_never_null(field, built.relation) else None
                    for field in built.fields
                )
            if built.complete and len(listed) == len(outputs):
                form = SubqueryForm.NOT_IN if negated else SubqueryForm.IN
                found = Apply(relation, built.relation, form, operands, outputs, conjunct)
                return found if negated or outputs != (None,) else replace(found, compared=self._equal(built, compared))
        return Apply(
            relation,
            built.relation,
            SubqueryForm.VALUE,
            conjunct=conjunct,
            compared=tuple(self._compared(predicate, subquery, built)),
        )

    def _column(self, node: exp.Expr) -> Attribute | None:
        column = node.unnest()
        return self._names.resolve(column) if isinstance(column, exp.Column) else None

    def _equal(self, built: Output, operand: exp.Expr) -> tuple[BoundPredicate, ...]:
        ours = self._column(operand)
        return () if ours is None or built.value is None else (equality(ours, built.value, structural=True),)

    def _compared(self, predicate: exp.Expr, subquery: exp.Expr, built: Output) -> Iterator[BoundPredicate]:
        """The comparisons of bare columns with the value of a subquery, where it is the value of an attribute."""
        if built.value is None:
            return
        for form, left, right in _comparisons(predicate):
            sides = [built.value if side is subquery else self._column(side) for side in (left, right)]
            if sides[0] is not None and sides[1] is not None and (left is subquery) != (right is subquery):
                yield comparison(form, sides[0], sides[1], structural=True)

    def _filtered(self, relation: Relation) -> Relation:
        return Filter(relation, self._where) if self._where else relation

    def _aggregated(self, relation: Relation) -> Relation:
        group, having = self._node.args.get("group"), self._node.args.get("having")
        for part in (group, having):
            if isinstance(part, exp.Expr):
                self._builder.detach(part, self._names, self._ctes)
        if not isinstance(group, exp.Group):
            if having is None and not self._aggregates_all():
                return relation
            relation = Aggregate(relation, frozenset())
        else:
            sets = any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup", "totals"))
            sets = sets or group.find(exp.GroupingSets, exp.Cube, exp.Rollup) is not None
            is_all = bool(group.args.get("all"))
            keys = [self._group_key(key) for key in (self._items if is_all else group.expressions)]
            # GROUP BY ALL groups by the columns of HAVING as well.
            is_complete = not sets and not (is_all and having is not None)
            relation = Aggregate(
                relation,
                frozenset(key for key in keys if key is not None),
                not sets,
                exact=is_complete and bool(keys) and None not in keys,
            )
        conjuncts = self._conjuncts("having", beside_aliases=True)
        return Filter(relation, conjuncts) if conjuncts else relation

    def _group_key(self, key: exp.Expr) -> Attribute | None:
        key = key.unnest()
        if isinstance(key, exp.Literal) and not key.is_string and key.this.isdecimal() and not self._starred():
            position = int(key.this) - 1
            key = self._items[position] if position < len(self._items) else key
        if isinstance(key, exp.Alias):
            return self._names.resolve(key.this) if isinstance(key.this, exp.Column) else None
        return (
            self._names.resolve_beside_aliases(key)
            if isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier)
            else None
        )

    def _starred(self) -> bool:
        return any(may_be_many(item) for item in self._items)

    def _aggregates_all(self) -> bool:
        """Whether a SELECT without GROUP BY may make one row of all its rows.

        It may if it calls a function that may aggregate, and has no bare column outside of it.
        """
        for item in self._items:
            bare = item.unalias()
            if isinstance(bare, exp.Column) and not isinstance(bare.this, exp.Star) and self._names.is_local(bare):
                return False
            star = bare.this if isinstance(bare, exp.Column) else bare
            if isinstance(star, exp.Star) and not any(star.args.values()):
                return False
        others = [self._node.args.get(key) for key in ("distinct", "order", "qualify")]
        return any(
            may_aggregate(part, self._builder.aggregates)
            for part in (*self._items, *others, *(self._node.args.get("windows") or []))
        )

    def _windowed(self, relation: Relation) -> Relation:
        named = {
            folded(window.this.name): window
            for window in self._node.args.get("windows") or []
            if isinstance(window.this, exp.Identifier)
        }
        qualify = self._node.args.get("qualify")
        parts = [
            *self._items,
            *(
                part
                for key in ("qualify", "distinct", "order")
                if isinstance(part := self._node.args.get(key), exp.Expr)
            ),
        ]
        windows = [window for part in parts for window in windows_in(part)]
        for part in (qualify, *named.values()):
            if isinstance(part, exp.Expr):
                self._builder.detach(part, self._names, self._ctes)
        if windows:
            partitions = [self._partition(window, named) for window in windows]
            relation = Window(relation, frozenset.intersection(*partitions))
        conjuncts = tuple(
            conjunct
            for conjunct in self._conjuncts("qualify", beside_aliases=True)
            if not names_a_window(conjunct.predicate)
        )
        return Filter(relation, conjuncts) if conjuncts else relation

    def _partition(self, window: exp.Window, named: Mapping[str, exp.Window]) -> frozenset[Attribute]:
        alias = window.args.get("alias")
        if isinstance(alias, exp.Identifier):
            known = named.get(folded(alias.name))
            if known is None or isinstance(known.args.get("alias"), exp.Identifier):
                return frozenset()
            window = known
        keys = [key.unnest() for key in window.args.get("partition_by") or []]
        found = (
            self._names.resolve_beside_aliases(key)
            for key in keys
            if isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier)
        )
        return frozenset(attribute for attribute in found if attribute is not None)

    def _distinct(self, relation: Relation, distinct: exp.Distinct) -> Relation:
        on = distinct.args.get("on")
        if not isinstance(on, exp.Expr):
            return Distinct(relation, None)
        self._builder.detach(on, self._names, self._ctes)
        keys = [self._group_key(key) for key in (on.expressions if isinstance(on, exp.Tuple) else [on.unnest()])]
        return Distinct(relation, frozenset(key for key in keys if key is not None), exact=None not in keys)

    def _projected(self, relation: Relation) -> Output:
        columns = self._columns()
        if columns is None:
            return Output(Project(relation, (), ()), (), complete=False)
        number = self._builder.owner()
        attributes = tuple(
            Attribute(
                number, position, name, None if source is None else source.type, source is None or source.nullable
            )
            for position, (name, source) in enumerate(columns)
        )
        sources = tuple(source for _, source in columns)
        named = tuple(
            (attribute.name, None if source is None else attribute)
            for attribute, source in zip(attributes, sources, strict=True)
        )
        fields = self._fields()
        # The fields of a row value are columns that no name reaches.
        hidden = tuple(
            Attribute(number, len(columns) + position, *(("", None) if field is None else (field.name, field.type)))
            for position, field in enumerate(fields)
        )
        return Output(
            Project(relation, attributes + hidden, sources + fields),
            named,
            value=self._value(named),
            fields=tuple(None if field is None else attribute for attribute, field in zip(hidden, fields, strict=True)),
        )

    def _fields(self) -> tuple[Attribute | None, ...]:
        """The fields of the row values that are the only column."""
        item = self._items[0].unalias().unnest() if len(self._items) == 1 else None
        return tuple(map(self._column, item.expressions)) if isinstance(item, exp.Tuple) else ()

    def _value(self, columns: Sequence[tuple[str, Attribute | None]]) -> Attribute | None:
        """The attribute of which the only column has a value."""
        if len(columns) != 1 or len(self._items) != 1:
            return None
        column = chosen_column(self._items[0].unalias().unnest())
        return columns[0][1] if column is None else self._names.resolve(column)

    def _columns(self) -> list[tuple[str, Attribute | None]] | None:
        """The SELECT list, stars replaced by columns; None where one cannot be."""
        columns: list[tuple[str, Attribute | None]] = []
        for item in self._items:
            bare = item.unalias()
            star = (
                bare
                if isinstance(bare, exp.Star)
                else bare.this
                if isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star)
                else None
            )
            if star is not None:
                listed = self._names.star(folded(bare.table) if isinstance(bare, exp.Column) else None)
                if listed is None or any(star.args.values()):
                    return None
                columns.extend(listed)
            elif may_be_many(bare):
                return None
            elif isinstance(bare, exp.Column):
                columns.append((item.alias_or_name, self._names.resolve(bare)))
            else:
                columns.append((item.alias_or_name, None))
        return columns


def _comparisons(predicate: exp.Expr) -> Iterator[tuple[type[exp.Binary], exp.Expr, exp.Expr]]:
    """The comparisons that a predicate makes, without parentheses around their sides."""
    match predicate:
        case exp.EQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            yield type(predicate), _bare(predicate.this), _bare(predicate.expression)
        case exp.Between() if not predicate.args.get("symmetric"):
            yield exp.GTE, _bare(predicate.this), _bare(predicate.args["low"])
            yield exp.LTE, _bare(predicate.this), _bare(predicate.args["high"])
        case _:
            pass


def _bare(node: exp.Expr) -> exp.Expr:
    """An expression without parentheses; those of a subquery belong to it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_mentioned(holder: exp.Expr, name: str) -> bool:
    return any(
        isinstance(node.this, exp.Identifier) and folded(node.name) == name for node in holder.find_all(exp.Table)
    )


def _set_columns(outputs: Sequence[Output], *, by_name: bool) -> list[tuple[str, tuple[Attribute | None, ...]]] | None:
    """Return the columns of a set operation with the attributes that they are in each input."""
    if not all(output.complete for output in outputs):
        return None
    if not by_name:
        if len({len(output.columns) for output in outputs}) != 1:
            return None
        return [
            (column[0][0], tuple(attribute for _, attribute in column))
            for column in zip(*(output.columns for output in outputs), strict=True)
        ]
    names = dict.fromkeys(folded(name) for output in outputs for name, _ in output.columns)
    found = [{folded(name): attribute for name, attribute in output.columns} for output in outputs]
    return [(name, tuple(known.get(name) for known in found)) for name in names]


def _common_type(given: Sequence[Attribute | None]) -> SqlType | None:
    """Return the type of a column of a set operation if no input is cast to it with loss, else None."""
    types = [None if attribute is None else attribute.type for attribute in given]
    first = types[0]
    if first is None or any(kind is None for kind in types):
        return None
    if all(kind == first for kind in types):
        return first
    return SqlType(TypeKind.HUGEINT) if all(kind is not None and kind.is_integer for kind in types) else None
