"""Spread: whether a relation can be computed piece by piece, by each member over the partitions that it owns.

All rules are cases of one law: the rows of a relation computed at each member, where some scans see the member's own partitions and the others all rows, are
together the rows of the relation. Which scans see all rows is an assumption to be tried; an exchange makes it true.

Source: the distributions of a parallel plan as properties that operators require and deliver (Graefe, "Volcano", 1994), and "RelNode Prunability Rules"
(Hazelcast SQL seed); replicated tables are Ignite's ANY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from secateur.planner.placement.equalities import Equalities, Known, Pair
from secateur.planner.relations.attribute import Attribute, compares_alike
from secateur.planner.relations.equality import Classes
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    Derived,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Nearest,
    Opaque,
    Project,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    SubqueryForm,
    Unknown,
    Values,
    Window,
    is_never_null,
    postorder,
)

__all__ = ["Pieces", "Route", "Scattered", "Spread", "Spreads", "Whole"]

_PLACES_MAX: Final = 16

Place: TypeAlias = tuple[Attribute, ...]
"""Attributes in the order of a partitioning key: a row is on the member that owns the partition of their values."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Every member computes all rows.

    Attributes:
        once: Why two members may come to different rows all the same, in the user's terms, so that it has to be computed in one place; None where they may not.
    """

    once: str | None = None


@dataclass(frozen=True, slots=True)
class Pieces:
    """Each member computes some of the rows, and no row is computed twice.

    Attributes:
        group: The affinity group that says on which; None where that is not known.
        places: Each of them says where a row is. Empty where nothing does.
        anchors: Scans in whose partitions all rows are.
        dropped: Scans outside of whose partitions rows may be missing, as they were routed there. Of no harm once the rows are joined with rows in these
            partitions.
    """

    group: str | None
    places: frozenset[Place]
    anchors: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scattered:
    """It cannot be computed piece by piece.

    Attributes:
        reason: Why, in the user's terms.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Route:
    """An assumption: the rows of a scan are sent to the owners of the partitions of another one, or dealt to the members by hash.

    Attributes:
        anchor: The other scan, which stays; None where rows are dealt by hash.
        group: Its affinity group, or a name for rows that are dealt alike.
        columns: What stands for its partitioning key, in order; by what rows are dealt.
        keeps_unmatched: Whether rows of no partition of the anchor that is read go along, those of equal columns to one member, or are left out.
    """

    anchor: str | None
    group: str
    columns: tuple[str, ...]
    keeps_unmatched: bool = False


Spread: TypeAlias = Whole | Pieces | Scattered

_NO_ROUTES: Final[Mapping[str, Route]] = MappingProxyType({})
_LOSSY: Final = Scattered("rows that are routed have to meet the rows of the table that they are routed to")


class Spreads:
    """The spreads of a relation, one for each assumption.

    Args:
        relation: As built, before rewrites.
        orderless: Whether no aggregate of the statement depends on the order of its rows.
    """

    def __init__(self, relation: Relation, *, orderless: bool) -> None:
        self._relation = relation
        self._orderless = orderless
        self._equalities = Equalities()

    def equalities(self) -> Iterator[Pair]:
        """Every equality of the tree, whether it holds at a place or not: what comes of it is tried."""
        for relation in postorder(self._relation):
            if isinstance(relation, (Filter, Join, Apply, Project)):
                yield from self._equalities.of(relation)

    def under(self, whole: frozenset[str], routes: Mapping[str, Route] = _NO_ROUTES) -> Spread:
        """The spread under an assumption.

        Args:
            whole: The scans, by the names of their relations, that see all rows at every member; replicated tables always do.
            routes: The scans whose rows are routed.

        Cost: some microseconds a relation.
        """
        spread = _Reader(whole, routes, self._equalities, orderless=self._orderless).read(self._relation, (), ())
        return _LOSSY if _is_lossy(spread) else spread


class _Reader:
    """Reads relations from the root down.

    ``known`` are equalities that hold for all rows that matter, ``around`` the pieces whose rows a correlated subquery is evaluated for.
    """

    def __init__(self, whole: frozenset[str], routes: Mapping[str, Route], equalities: Equalities, *, orderless: bool) -> None:
        self._whole = whole
        self._routes = routes
        self._equalities = equalities
        self._orderless = orderless

    def read(self, relation: Relation, known: Known, around: tuple[Pieces, ...]) -> Spread:
        match relation:
            case Scan():
                return self._scan(relation, known, around)
            case Values() | Unknown():
                return Whole()
            case Derived(input) | Sort(input):
                return self.read(input, known, around)
            case Project():
                return self._project(relation, known, around)
            case Filter(input):
                holding = (*known, *self._equalities.of(relation))
                return self._with_equals(self.read(input, holding, around), holding)
            case Limit(input, word):
                return self._decided(self.read(input, (), around), f"{word} without the rows of other members")
            case Aggregate(input, keys):
                spread = self.read(input, self._about(known, input, keys), around)
                if isinstance(spread, Whole) and not self._orderless:
                    return self._once(spread, "an aggregate depends on the order of its rows")
                return _grouped(spread, keys, "GROUP BY does not name the partitioning key")
            case Distinct(input, keys):
                if keys is None:
                    return _grouped(self.read(input, (), around), frozenset(), "DISTINCT is about rows of several members")
                spread = self.read(input, self._about(known, input, keys), around)
                spread = self._once(spread, "DISTINCT ON takes any of several rows") if isinstance(spread, Whole) else spread
                return _grouped(spread, keys, "DISTINCT ON does not name the partitioning key")
            case Window(input, partition):
                spread = self.read(input, self._about(known, input, partition), around)
                spread = self._once(spread, "a window numbers equal rows in any order") if isinstance(spread, Whole) else spread
                return _grouped(spread, partition, "a window is not partitioned by the partitioning key")
            case Nearest(input, keys):
                return _grouped(self.read(input, self._about(known, input, keys), around), keys, "an ASOF JOIN does not compare the partitioning key")
            case SetOperation():
                return self._set_operation(relation, around)
            case Join():
                return self._join(relation, known, around)
            case Apply():
                return self._apply(relation, known, around)
            case Opaque(input, reason):
                spread = self.read(input, (), around)
                return spread if isinstance(spread, Whole) else Scattered(reason)
            case _:
                assert_never(relation)

    def _scan(self, relation: Scan, known: Known, around: tuple[Pieces, ...]) -> Spread:
        scan = relation.scan
        if scan.table.replicated or scan.relation in self._whole:
            return Whole()
        columns = {attribute.name: attribute for attribute in relation.attributes}
        route = self._routes.get(scan.relation)
        if route is None:
            place = tuple(columns[name] for name in scan.table.scheme.columns)
            pieces = Pieces(scan.table.scheme.affinity_group(), frozenset({place}), anchors=frozenset({scan.relation}))
        else:
            pieces = Pieces(route.group, frozenset({tuple(columns[name] for name in route.columns)}))
            if route.anchor is not None and not route.keeps_unmatched:
                pieces = replace(pieces, dropped=frozenset({route.anchor}))
        classes = self._equalities.classes(known)
        # For each row around, the rows that matter here are on the member where that row is.
        pinned = any(_colocated(pieces, outer, classes) and pieces.dropped <= outer.anchors for outer in around)
        return Whole() if pinned else self._with_equals(pieces, known)

    def _project(self, relation: Project, known: Known, around: tuple[Pieces, ...]) -> Spread:
        shown = dict(zip(relation.attributes, relation.sources, strict=True))
        sources = ((shown.get(left, left), shown.get(right, right)) for left, right in known)
        below = tuple((left, right) for left, right in sources if left is not None and right is not None and left != right and compares_alike(left, right))
        input = relation.input
        if isinstance(input, Distinct) and input.keys is None:
            named = frozenset(source for source in relation.sources if source is not None)
            spread = _grouped(self.read(input.input, self._about(below, input.input, named), around), named, "DISTINCT does not name the partitioning key")
        else:
            spread = self.read(input, below, around)
        if not isinstance(spread, Pieces):
            return spread
        names: dict[Attribute, list[Attribute]] = {}
        for attribute, source in shown.items():
            if source is not None:
                names.setdefault(source, []).append(attribute)
        own = self._equalities.owners(input)
        return replace(spread, places=_mapped(spread.places, lambda attribute: names.get(attribute, ()) if attribute.owner in own else (attribute,)))

    def _set_operation(self, relation: SetOperation, around: tuple[Pieces, ...]) -> Spread:
        spreads = [self.read(input, (), around) for input in relation.inputs]
        scattered = next((spread for spread in spreads if isinstance(spread, Scattered)), None)
        if scattered is not None:
            return scattered
        if any(map(_is_lossy, spreads)):
            return Scattered("rows that are routed stand beside others")
        if all(isinstance(spread, Whole) for spread in spreads):
            return next((spread for spread in spreads if spread != Whole()), Whole())
        first_whole = isinstance(spreads[0], Whole)
        if any(isinstance(spread, Whole) for spread in spreads) and (relation.kind is SetKind.UNION or first_whole):
            return Scattered(f"{relation.kind.value} of rows that every member has with rows of single members")
        if once := next((spread.once for spread in spreads if isinstance(spread, Whole) and spread.once), None):
            return Scattered(once)
        pieces = [spread for spread in spreads if isinstance(spread, Pieces)]
        group = pieces[0].group if len({spread.group for spread in pieces}) == 1 else None
        common = frozenset[Place]() if group is None else _common(relation, spreads)
        if relation.all and relation.kind is SetKind.UNION:
            return Pieces(group, common)
        return Pieces(group, common) if common else Scattered(f"{relation.kind.value} compares rows of several members")

    def _join(self, relation: Join, known: Known, around: tuple[Pieces, ...]) -> Spread:
        kind, on = relation.kind, self._equalities.of(relation)
        left_known, right_known = known, (*known, *on)
        match kind:
            case JoinKind.INNER | JoinKind.SEMI:
                left_known = right_known
            case JoinKind.LEFT:
                pass
            case JoinKind.ANTI:
                right_known = on
            case JoinKind.RIGHT:
                left_known, right_known = right_known, left_known
            case JoinKind.FULL:
                left_known = right_known = ()
            case _:
                assert_never(kind)
        left = self.read(relation.left, left_known, around)
        # Then the right side is evaluated for each row of the left one, on the member where that is.
        inside = around
        if isinstance(left, Pieces) and self._equalities.is_correlated(relation.right, relation.left):
            inside = (*around, left)
        right = self.read(relation.right, right_known, inside)
        for side in (left, right):
            if isinstance(side, Scattered):
                return side
        if isinstance(left, Whole) and isinstance(right, Whole):
            both = left if left.once else right
            return self._once(both, "an ASOF JOIN takes any of the rows that are as near") if isinstance(relation.right, Nearest) else both
        once = next((side.once for side in (left, right) if isinstance(side, Whole) and side.once and (inside is around or side is left)), None)
        if once:
            return Scattered(once)
        holding = on if kind in (JoinKind.FULL, JoinKind.ANTI) else (*known, *on)
        classes = self._equalities.classes(holding)
        if isinstance(left, Pieces) and isinstance(right, Pieces):
            if not _colocated(left, right, classes):
                return Scattered("the sides of a join are not partitioned by the columns that it compares")
            match kind:
                case JoinKind.INNER | JoinKind.SEMI:
                    dropped = (left.dropped - right.anchors) | (right.dropped - left.anchors)
                    places = left.places | right.places if kind is JoinKind.INNER else left.places
                    return self._with_equals(Pieces(left.group, places, left.anchors | right.anchors, dropped), holding)
                case JoinKind.LEFT | JoinKind.ANTI:
                    return left if right.dropped <= left.anchors else _LOSSY
                case JoinKind.RIGHT:
                    return right if left.dropped <= right.anchors else _LOSSY
                case JoinKind.FULL:
                    if left.dropped or right.dropped:
                        return _LOSSY
                    merged = {ours: both for both, ours, _ in relation.merged}
                    return Pieces(left.group, _mapped(left.places, lambda attribute: [merged[attribute]] if attribute in merged else ()))
                case _:
                    assert_never(kind)
        pieces = left if isinstance(left, Pieces) else right
        assert isinstance(pieces, Pieces)
        preserved = {JoinKind.INNER: (left, right), JoinKind.RIGHT: (right,), JoinKind.FULL: ()}.get(kind, (left,))
        if pieces not in preserved:
            return Scattered(f"a {kind.value} JOIN keeps rows that every member has")
        return self._with_equals(pieces, holding) if kind is JoinKind.INNER else pieces

    def _apply(self, relation: Apply, known: Known, around: tuple[Pieces, ...]) -> Spread:
        input = self.read(relation.input, known, around)
        if isinstance(input, Scattered):
            return input
        correlated = self._equalities.is_correlated(relation.subquery, relation.input)
        inside = (*around, input) if isinstance(input, Pieces) and correlated else around
        subquery = self.read(relation.subquery, known if correlated else (), inside)
        match subquery:
            case Scattered():
                return subquery
            case Whole(once):
                if once is None or (isinstance(input, Pieces) and correlated):
                    return input
                return Whole(once) if isinstance(input, Whole) else Scattered(once)
            case Pieces():
                if isinstance(input, Whole):
                    return Scattered("a subquery reads other partitions than the rows around it")
        if not subquery.dropped <= input.anchors:
            return _LOSSY
        match relation.form:
            case SubqueryForm.IN | SubqueryForm.NOT_IN if relation.form is SubqueryForm.IN or _never_null(relation):
                classes = self._equalities.classes((*known, *self._equalities.of(relation)))
                return input if _colocated(input, subquery, classes) else Scattered("a subquery reads other partitions than the rows around it")
            case _:
                return Scattered("a subquery reads other partitions than the rows around it")

    def _about(self, known: Known, input: Relation, keys: frozenset[Attribute]) -> Known:
        """The equalities that say nothing about the attributes of an input but its keys: rows of other groups do not matter."""
        own = self._equalities.owners(input)
        return tuple(pair for pair in known if all(attribute.owner not in own or attribute in keys for attribute in pair))

    def _with_equals(self, spread: Spread, known: Known) -> Spread:
        """Pieces whose places are also said by what equals them."""
        if not isinstance(spread, Pieces) or not known:
            return spread
        classes = self._equalities.classes(known)

        def equals(attribute: Attribute) -> Sequence[Attribute]:
            return [attribute, *(other for other in classes.equal_to(attribute) if other != attribute and compares_alike(attribute, other))]

        return replace(spread, places=_mapped(spread.places, equals))

    def _once(self, spread: Whole, reason: str) -> Whole:
        return Whole(spread.once or reason)

    def _decided(self, spread: Spread, reason: str) -> Spread:
        """What takes some of the rows, in no order that the rows themselves decide."""
        match spread:
            case Whole():
                return self._once(spread, f"{reason} may be other rows")
            case Pieces():
                return Scattered(reason)
            case Scattered():
                return spread
            case _:
                assert_never(spread)


def _is_lossy(spread: Spread) -> bool:
    return isinstance(spread, Pieces) and bool(spread.dropped)


def _common(relation: SetOperation, spreads: Sequence[Spread]) -> frozenset[Place]:
    """The places that the pieces among the inputs of a set operation have in common, in its own attributes."""
    shown: list[frozenset[Place]] = []
    for spread, sources in zip(spreads, relation.sources, strict=False):
        if isinstance(spread, Pieces):
            names: dict[Attribute, list[Attribute]] = {}
            for attribute, source in zip(relation.attributes, sources, strict=True):
                if source is not None:
                    names.setdefault(source, []).append(attribute)
            shown.append(_mapped(spread.places, lambda attribute, names=names: names.get(attribute, ())))  # type: ignore[misc]
    return frozenset.intersection(*shown) if shown else frozenset()


def _grouped(spread: Spread, keys: frozenset[Attribute], reason: str) -> Spread:
    """What puts rows of equal keys together."""
    if not isinstance(spread, Pieces):
        return spread
    kept = frozenset(place for place in spread.places if keys.issuperset(place))
    return replace(spread, places=kept) if kept else Scattered(reason)


def _mapped(places: frozenset[Place], names: Callable[[Attribute], Sequence[Attribute]]) -> frozenset[Place]:
    """The places in other names; one with an attribute that has none is none."""
    found = {combination for place in places for combination in islice(product(*map(names, place)), _PLACES_MAX)}
    return frozenset(sorted(found, key=lambda place: [(attribute.owner, attribute.position) for attribute in place])[:_PLACES_MAX])


def _colocated(left: Pieces, right: Pieces, classes: Classes) -> bool:
    """Whether rows that are equal as ``classes`` say are on one member."""
    if left.group is None or left.group != right.group:
        return False
    return any(
        all(ours == theirs or any(other is theirs or other == theirs for other in classes.equal_to(ours)) for ours, theirs in zip(here, there, strict=True))
        for here in left.places
        for there in right.places
    )


def _never_null(relation: Apply) -> bool:
    """Whether neither side of NOT IN is ever NULL: a NULL decides about rows of other partitions."""
    ours = all(operand is not None and is_never_null(operand, relation.input) for operand in relation.operands)
    return ours and all(output is not None and is_never_null(output, relation.subquery) for output in relation.outputs)
