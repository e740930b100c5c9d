"""The FROM clause: its items, their names, and their joins from left to right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from sqlglot import exp

from secateur.partitioning.tables.identifier import folded
from secateur.planner.binding.query import holds_query
from secateur.planner.predicates.predicate import flat
from secateur.planner.relations.attribute import Attribute, compares_alike
from secateur.planner.relations.bound_predicate import BoundPredicate, bind, equality
from secateur.planner.relations.equality import equated
from secateur.planner.relations.names import FromItem, VisibleNames
from secateur.planner.relations.nodes import (
    AsOfRight,
    Derived,
    Join,
    JoinType,
    Opaque,
    Relation,
    Scan,
    Unknown,
    Values,
    owners,
)
from secateur.planner.relations.query_builder import Ctes, Output, QueryBuilder
from secateur.planner.relations.unread_side import is_unread

_SIDES: Final = {"": JoinType.INNER, "LEFT": JoinType.LEFT, "RIGHT": JoinType.RIGHT, "FULL": JoinType.FULL}
_KINDS: Final = {"SEMI": JoinType.SEMI, "ANTI": JoinType.ANTI}
_UNDERSTOOD: Final = frozenset({"this", "alias", "expressions", "joins", "view", "offset", "value_constructor"})


@dataclass(frozen=True, slots=True)
class From:
    """A FROM clause, or a part of it."""

    relation: Relation
    names: VisibleNames


class FromClause:
    """Reads one FROM clause.

    Args:
        builder: For the subqueries in it.
        ctes: The common table expressions in reach.
        outer: The names around the SELECT.
        select: The SELECT.
    """

    def __init__(self, builder: QueryBuilder, ctes: Ctes, outer: VisibleNames, select: exp.Select) -> None:
        self._builder = builder
        self._select = select
        self._ctes = ctes
        self._outer = outer

    def read(self) -> From:
        """The FROM clause; one row where there is none."""
        select = self._select
        from_ = select.args.get("from_")
        if not isinstance(from_, exp.From):
            return From(Values(()), VisibleNames(outer=self._outer))
        return self._listed(
            self._item(from_.this, VisibleNames(outer=self._outer)),
            select.args.get("joins") or [],
            VisibleNames(outer=self._outer),
        )

    def _listed(self, first: From, joins: list[exp.Join], before: VisibleNames) -> From:
        """Items with commas between them.

        A comma binds looser than any JOIN, which sqlglot's flat list of joins does not show.
        """
        commas = [*(position for position, join in enumerate(joins) if _is_comma(join)), len(joins)]
        listed = self._joined(first, joins[: commas[0]], before)
        for start, end in pairwise(commas):
            around = replace(before.beside(listed.names), outer=self._outer)
            item = self._joined(self._item(joins[start].this, around), joins[start + 1 : end], around)
            names = replace(listed.names.beside(item.names), outer=self._outer)
            listed = From(Join(JoinType.INNER, listed.relation, item.relation), names)
        return listed

    def _joined(self, left: From, joins: list[exp.Join], before: VisibleNames) -> From:
        for join in joins:
            right = self._item(join.this, replace(before.beside(left.names), outer=self._outer))
            left = self._join(left, join, right, before)
        return replace(left, names=replace(left.names, outer=self._outer))

    def _item(self, node: exp.Expr, before: VisibleNames) -> From:
        """One item; ``before`` are the names of those left of it, which a subquery may use."""
        found = self._understood(node, before)
        strange = sorted(key for key, value in node.args.items() if value and key not in _UNDERSTOOD)
        if strange and not (isinstance(node, exp.Subquery) and strange == ["with_"]):
            word = {"sample": "a sample", "pivots": "PIVOT", "ordinality": "WITH ORDINALITY"}.get(
                strange[0], strange[0].strip("_").upper()
            )
            found = From(
                Opaque(
                    found.relation,
                    f"{word} in FROM applies before every filter: filter in a subquery, and apply it to that",
                ),
                found.names.unknown(),
            )
        return self._listed(found, node.args.get("joins") or [], before)

    def _understood(self, node: exp.Expr, before: VisibleNames) -> From:
        alias = node.args.get("alias")
        name = folded(alias.name) if isinstance(alias, exp.TableAlias) and alias.name else None
        renamed = tuple(folded(column.name) for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()
        inner: exp.Expr = node.this if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Expr) else node
        match inner:
            case exp.Table() if id(inner) in self._builder.scans:
                return self._scan(inner, renamed)
            case exp.Table() if id(inner) in self._builder.moved:
                return self._moved(inner, renamed)
            case exp.Table(this=exp.Identifier()) if folded(inner.name) in self._ctes and inner.args.get("db") is None:
                cte = self._ctes[folded(inner.name)]
                output = self._builder.reference(inner, cte)
                if output is None:
                    return self._unknown(name or folded(inner.name))
                definition = cte.node.args.get("alias")
                given = (
                    tuple(folded(column.name) for column in definition.columns)
                    if isinstance(definition, exp.TableAlias)
                    else ()
                )
                # If a reference names fewer columns, the others keep the names of the definition.
                return self._derived(output, name or folded(inner.name), (*renamed, *given[len(renamed) :]))
            case exp.Subquery() if holds_query(inner):
                return self._derived(self._builder.query(_bare(inner), before, self._ctes), name, renamed)
            case exp.Subquery():
                found = self._item(inner.this, before)
                return (
                    found if name is None else From(found.relation, VisibleNames((FromItem(name, (), complete=False),)))
                )
            case exp.Values():
                return self._derived(self._builder.values(inner, before, self._ctes), name, renamed)
            case exp.Select() | exp.SetOperation():
                return self._derived(self._builder.query(inner, before, self._ctes), name, renamed)
            case exp.Unnest() | exp.Table(this=exp.Anonymous()) if (
                called := _function_of_one_column(inner)
            ) is not None:
                self._builder.detach(inner, before, self._ctes)
                return From(
                    Unknown(),
                    VisibleNames(
                        (_source(name or called, [(renamed[0] if renamed else name or called, None)], complete=True),)
                    ),
                )
            case _:
                self._builder.detach(inner, before, self._ctes)
                return self._unknown(name)

    def _unknown(self, name: str | None) -> From:
        return From(Unknown(), VisibleNames((FromItem(name, (), complete=False),)))

    def _scan(self, node: exp.Table, renamed: tuple[str, ...]) -> From:
        scan = self._builder.scans[id(node)]
        number = self._builder.owner()
        attributes = tuple(
            Attribute(
                number,
                position,
                column.name,
                column.type,
                column.nullable and column.name not in scan.table.primary_key,
            )
            for position, column in enumerate(scan.table.columns)
        )
        return self._visible(Scan(scan, attributes), attributes, folded(scan.alias), renamed)

    def _moved(self, node: exp.Table, renamed: tuple[str, ...]) -> From:
        number = self._builder.owner()
        columns = self._builder.moved[id(node)]
        attributes = tuple(Attribute(number, position, name, kind) for position, (name, kind) in enumerate(columns))
        return self._visible(Values(attributes), attributes, folded(node.alias_or_name), renamed)

    def _visible(
        self, relation: Relation, attributes: tuple[Attribute, ...], name: str, renamed: tuple[str, ...]
    ) -> From:
        """A relation under a name, its first columns perhaps with other names."""
        names = [folded(attribute.name) for attribute in attributes]
        names = [*renamed[: len(names)], *names[len(renamed) :]]
        columns: list[tuple[str, Attribute | None]] = list(zip(names, attributes, strict=True))
        return From(relation, VisibleNames((_source(name, columns, complete=True),)))

    def _derived(self, output: Output, name: str | None, renamed: tuple[str, ...]) -> From:
        columns = [(folded(own), attribute) for own, attribute in output.columns]
        complete = output.complete
        if renamed and not complete:
            columns = []
        columns = [
            (renamed[position] if position < len(renamed) else own, attribute)
            for position, (own, attribute) in enumerate(columns)
        ]
        return From(
            Derived(output.relation, name or "a subquery"), VisibleNames((_source(name, columns, complete=complete),))
        )

    def _join(self, left: From, join: exp.Join, right: From, before: VisibleNames) -> From:
        method, side, word = (str(join.args.get(key) or "").upper() for key in ("method", "side", "kind"))
        is_asof = method == "ASOF" and word in ("", "INNER") and side in ("", "LEFT")
        both = replace(left.names.beside(right.names), outer=self._outer)
        kind = _KINDS.get(word, _SIDES.get(side))
        strange = [
            key
            for key, value in join.args.items()
            if value and key not in ("this", "on", "using", "side", "kind", "method")
        ]
        reversed_semi = word in _KINDS and side not in ("", "LEFT")
        if (
            (method not in ("", "NATURAL") and not is_asof)
            or kind is None
            or strange
            or reversed_semi
            or word not in ("", "INNER", "CROSS", "OUTER", *_KINDS)
        ):
            what = " ".join(filter(None, (method, side, word))) or "such a"
            return self._opaque(
                left, join, right, both, f"a {what} JOIN matches rows by more than its condition: join on columns"
            )
        condition = join.args.get("on")
        on: list[BoundPredicate] = []
        if isinstance(condition, exp.Expr):
            # ON sees the items before a comma as well.
            seen = replace(both, outer=replace(before, outer=self._outer))
            self._builder.detach(condition, seen, self._ctes)
            on.extend(bind(conjunct, seen.resolve) for conjunct in flat(condition, exp.And))
        using = [folded(name.name) for name in join.args.get("using") or []]
        if method == "NATURAL":
            ours, theirs = left.names.star(), right.names.star()
            if ours is None or theirs is None:
                return self._opaque(
                    left, join, right, both, "the columns of a NATURAL JOIN are not all known: use USING"
                )
            using = [name for name, _ in ours if name in {other for other, _ in theirs}]
        shared: dict[str, Attribute | None] = {}
        merged: list[tuple[Attribute, Attribute, Attribute]] = []
        number = self._builder.owner()
        for name in using:
            column = exp.column(exp.to_identifier(name, quoted=True))
            ours_, theirs_ = (
                replace(left.names, outer=None).resolve(column),
                replace(right.names, outer=None).resolve(column),
            )
            # The last column of an ASOF JOIN is compared with >=.
            if ours_ is not None and theirs_ is not None and not (is_asof and name == using[-1]):
                on.append(equality(ours_, theirs_, structural=True))
            match kind:
                case JoinType.RIGHT:
                    shared[name] = theirs_
                case JoinType.FULL if ours_ is not None and theirs_ is not None and compares_alike(ours_, theirs_):
                    both_ = Attribute(number, len(merged), name, ours_.type if ours_.type == theirs_.type else None)
                    merged.append((both_, ours_, theirs_))
                    shared[name] = both_
                case JoinType.FULL:
                    shared[name] = None
                case _:
                    shared[name] = ours_
        filled = right if kind is JoinType.LEFT else left
        relation = Join(
            kind,
            left.relation,
            _nearest(right.relation, on) if is_asof else right.relation,
            tuple(on),
            tuple(merged),
            kind in (JoinType.LEFT, JoinType.RIGHT) and is_unread(self._select, join, filled.names.sources),
        )
        if kind in (JoinType.SEMI, JoinType.ANTI):
            return From(relation, left.names)
        return From(relation, both.joined_by(shared, len(left.names.sources)))

    def _opaque(self, left: From, join: exp.Join, right: From, names: VisibleNames, reason: str) -> From:
        unknown = names.unknown()
        using = {folded(name.name): None for name in join.args.get("using") or []}
        is_natural = str(join.args.get("method") or "").upper() == "NATURAL"
        unknown = replace(unknown, merged={**unknown.merged, **using}, may_merge=unknown.may_merge or is_natural)
        return From(Opaque(Join(JoinType.INNER, left.relation, right.relation), reason), unknown)


def _nearest(side: Relation, on: list[BoundPredicate]) -> AsOfRight:
    """The right side of an ASOF join."""
    own = owners(side)
    return AsOfRight(
        side,
        frozenset(column for pair in map(equated, on) if pair is not None for column in pair if column.owner in own),
    )


def _function_of_one_column(node: exp.Expr) -> str | None:
    """Return the table function of a FROM item if its rows have one column, which gets the item's name by default."""
    if isinstance(node, exp.Unnest):
        return None if node.args.get("offset") else "unnest"
    called = folded(node.this.name)
    return called if called in ("range", "generate_series") else None


def _is_comma(join: exp.Join) -> bool:
    return not any(value for key, value in join.args.items() if key != "this")


def _source(name: str | None, columns: list[tuple[str, Attribute | None]], *, complete: bool) -> FromItem:
    """Make an item of FROM.

    DuckDB renames all but the first of several columns with one name, so the others are not visible by name.
    """
    first = dict(reversed(columns))
    repeated = len(first) < len(columns)
    return FromItem(name, tuple(first.items())[::-1] if repeated else tuple(columns), complete and not repeated)


def _bare(subquery: exp.Subquery) -> exp.Expr:
    """Return the query of an item of FROM, without the modifiers that belong to the item itself."""
    return subquery.this if isinstance(subquery.this, exp.Expr) and not subquery.args.get("with_") else subquery
