"""Distributions: whether each member can compute its share of a relation from the partitions that it owns.

All rules follow from one law: the rows of a relation computed at each member, where some scans read the member's own
partitions and the others all rows, are together the rows of the relation. Which scans read all rows is an assumption
that is tried; an exchange makes it true.

Source: the distributions of a parallel plan as properties that operators require and deliver (Graefe, "Volcano", 1994),
and "RelNode Prunability Rules" (Hazelcast SQL seed); replicated tables are Ignite's ANY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from secateur.planner.placement.relation_equalities import Known, Pair, RelationEqualities
from secateur.planner.relations.attribute import Attribute, compares_alike
from secateur.planner.relations.equality import EquivalenceClasses
from secateur.planner.relations.nodes import (
    Aggregate,
    Apply,
    AsOfRight,
    Derived,
    Distinct,
    Filter,
    Join,
    JoinType,
    Limit,
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

_PARTITION_KEYS_MAX: Final = 16

PartitionKey: TypeAlias = tuple[Attribute, ...]
"""Attributes in the order of a partitioning key: a row is on the member that owns the partition of their values."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """Every member computes all rows.

    Attributes:
        singleton_reason: Why two members may nevertheless compute different rows, in the user's terms, so that the
            relation has to be computed in one place; None where they cannot.
    """

    singleton_reason: str | None = None


@dataclass(frozen=True, slots=True)
class HashPartitioned:
    """Each member computes some of the rows, and no row is computed twice.

    Attributes:
        group: The affinity group whose owners have the rows; None where that is not known.
        partition_keys: Alternative keys, each of which determines where a row is. Empty where none does.
        anchors: Scans whose partitions contain all of the rows.
        dropped: Scans outside of whose partitions rows may be missing, because they were routed there. This does no
            harm once the rows are joined with rows in these partitions.
        nullable_keys: Keys that determine where a row is unless an outer join has filled them with NULLs. A join that
            no NULL passes may rely on them.
    """

    group: str | None
    partition_keys: frozenset[PartitionKey]
    anchors: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    nullable_keys: frozenset[PartitionKey] = frozenset()

    @property
    def keys(self) -> frozenset[PartitionKey]:
        """All of its keys, those that may be NULL included."""
        return self.partition_keys | self.nullable_keys


@dataclass(frozen=True, slots=True)
class UnsupportedDistribution:
    """It cannot be computed piece by piece.

    Attributes:
        reason: Why, in the user's terms.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Repartition:
    """An assumption: the rows of a scan are sent to the owners of another scan's partitions, or shuffled by hash.

    Attributes:
        anchor: The other scan, which stays; None where rows are shuffled by hash.
        group: Its affinity group, or a name for rows that are shuffled alike.
        columns: The columns that correspond to its partitioning key, in order; the columns of the shuffle key.
        keeps_unmatched: Whether rows whose partition of the anchor is not read are sent too, those of equal columns to
            one member, or are left out.
    """

    anchor: str | None
    group: str
    columns: tuple[str, ...]
    keeps_unmatched: bool = False


Distribution: TypeAlias = Replicated | HashPartitioned | UnsupportedDistribution

_NO_REPARTITIONS: Final[Mapping[str, Repartition]] = MappingProxyType({})
_LOSSY: Final = UnsupportedDistribution(
    "routed rows do not meet the table that they are routed to: join on its partitioning key"
)
_OTHER_PARTITIONS: Final = UnsupportedDistribution(
    "a subquery reads other partitions than the outer query: correlate it by the partitioning key"
)


class Distributions:
    """The distributions of a relation, one for each assumption.

    Args:
        relation: As built, before rewrites.
        orderless: Whether no aggregate of the statement depends on the order of its rows.
    """

    def __init__(self, relation: Relation, *, orderless: bool) -> None:
        self._relation = relation
        self._orderless = orderless
        self._equalities = RelationEqualities()

    def equalities(self) -> Iterator[Pair]:
        """Yield every equality of the tree, even if it holds only in parts of it: its consequences are verified."""
        for relation in postorder(self._relation):
            if isinstance(relation, (Filter, Join, Apply, Project)):
                yield from self._equalities.of(relation)

    def under(self, whole: frozenset[str], repartitions: Mapping[str, Repartition] = _NO_REPARTITIONS) -> Distribution:
        """The distribution under an assumption.

        Args:
            whole: The scans, by the names of their relations, that see all rows at every member; replicated tables
                always do.
            repartitions: The scans whose rows are routed.

        Cost: some microseconds a relation.
        """
        distribution = _Reader(whole, repartitions, self._equalities, orderless=self._orderless).read(
            self._relation, (), ()
        )
        return _LOSSY if _is_lossy(distribution) else distribution


class _Reader:
    """Reads relations from the root down.

    ``known`` are equalities that hold for all rows that matter, ``around`` the pieces whose rows a correlated subquery
    is evaluated for.
    """

    def __init__(
        self,
        whole: frozenset[str],
        repartitions: Mapping[str, Repartition],
        equalities: RelationEqualities,
        *,
        orderless: bool,
    ) -> None:
        self._whole = whole
        self._routes = repartitions
        self._equalities = equalities
        self._orderless = orderless

    def read(self, relation: Relation, known: Known, around: tuple[HashPartitioned, ...]) -> Distribution:
        match relation:
            case Scan():
                return self._scan(relation, known, around)
            case Values() | Unknown():
                return Replicated()
            case Derived(input) | Sort(input):
                return self.read(input, known, around)
            case Project():
                return self._project(relation, known, around)
            case Filter(input):
                holding = (*known, *self._equalities.of(relation))
                return self._with_equals(self.read(input, holding, around), holding)
            case Limit(input, word):
                found = self.read(input, (), around)
                if isinstance(found, HashPartitioned):
                    return UnsupportedDistribution(f"{word} chooses among the rows of several members")
                return _once(found, f"{word} may choose other rows on each member")
            case Aggregate(input, keys):
                found = self.read(input, self._about(known, input, keys), around)
                if not self._orderless:
                    found = _once(
                        found, "an aggregate depends on the order of its rows, which may differ between members"
                    )
                return _grouped(found, keys, "GROUP BY does not name the partitioning key: add it")
            case Distinct(input, keys):
                if keys is None:
                    return _grouped(
                        self.read(input, (), around),
                        frozenset(),
                        "DISTINCT compares rows of several members: select the partitioning key as well",
                    )
                found = self.read(input, self._about(known, input, keys), around)
                found = _once(found, "DISTINCT ON may choose another of several rows on each member")
                return _grouped(found, keys, "DISTINCT ON does not name the partitioning key: add it")
            case Window(input, partition):
                found = self.read(input, self._about(known, input, partition), around)
                return _grouped(
                    _once(found, "a window may number equal rows differently on each member: order it by a unique key"),
                    partition,
                    "a window is not partitioned by the partitioning key: add it to PARTITION BY",
                )
            case AsOfRight(input, keys):
                return _grouped(
                    self.read(input, self._about(known, input, keys), around),
                    keys,
                    "an ASOF JOIN does not compare the partitioning key: join on it as well",
                )
            case SetOperation():
                return self._set_operation(relation, around)
            case Join():
                return self._join(relation, known, around)
            case Apply():
                return self._apply(relation, known, around)
            case Opaque(input, reason):
                distribution = self.read(input, (), around)
                return distribution if isinstance(distribution, Replicated) else UnsupportedDistribution(reason)
            case _:
                assert_never(relation)

    def _scan(self, relation: Scan, known: Known, around: tuple[HashPartitioned, ...]) -> Distribution:
        scan = relation.scan
        if scan.table.replicated or scan.relation in self._whole:
            return Replicated()
        columns = {attribute.name: attribute for attribute in relation.attributes}
        route = self._routes.get(scan.relation)
        if route is None:
            place = tuple(columns[name] for name in scan.table.scheme.columns)
            pieces = HashPartitioned(
                scan.table.scheme.affinity_group(), frozenset({place}), anchors=frozenset({scan.relation})
            )
        else:
            pieces = HashPartitioned(route.group, frozenset({tuple(columns[name] for name in route.columns)}))
            if route.anchor is not None and not route.keeps_unmatched:
                pieces = replace(pieces, dropped=frozenset({route.anchor}))
        classes = self._equalities.classes(known)
        # For each outer row, the subquery rows that matter are on the member of that row.
        pinned = any(_colocated(pieces, outer, classes) and pieces.dropped <= outer.anchors for outer in around)
        return Replicated() if pinned else self._with_equals(pieces, known)

    def _project(self, relation: Project, known: Known, around: tuple[HashPartitioned, ...]) -> Distribution:
        shown = dict(zip(relation.attributes, relation.sources, strict=True))
        sources = ((shown.get(left, left), shown.get(right, right)) for left, right in known)
        below = tuple(
            (left, right)
            for left, right in sources
            if left is not None and right is not None and left != right and compares_alike(left, right)
        )
        input = relation.input
        if isinstance(input, Distinct) and input.keys is None:
            named = frozenset(source for source in relation.sources if source is not None)
            distribution = _grouped(
                self.read(input.input, self._about(below, input.input, named), around),
                named,
                "DISTINCT does not name the partitioning key: select it as well",
            )
        else:
            distribution = self.read(input, below, around)
        if not isinstance(distribution, HashPartitioned):
            return distribution
        names: dict[Attribute, list[Attribute]] = {}
        for attribute, source in shown.items():
            if source is not None:
                names.setdefault(source, []).append(attribute)
        own = self._equalities.owners(input)

        def renamed(attribute: Attribute) -> Sequence[Attribute]:
            return names.get(attribute, ()) if attribute.owner in own else (attribute,)

        return replace(
            distribution,
            partition_keys=_mapped(distribution.partition_keys, renamed),
            nullable_keys=_mapped(distribution.nullable_keys, renamed),
        )

    def _set_operation(self, relation: SetOperation, around: tuple[HashPartitioned, ...]) -> Distribution:
        distributions = [self.read(input, (), around) for input in relation.inputs]
        for found in distributions:
            if isinstance(found, UnsupportedDistribution):
                return found
        if any(map(_is_lossy, distributions)):
            return UnsupportedDistribution(
                "a set operation combines routed rows with others: move it into a subquery of its own"
            )
        if all(isinstance(distribution, Replicated) for distribution in distributions):
            return next((distribution for distribution in distributions if distribution != Replicated()), Replicated())
        first_whole = isinstance(distributions[0], Replicated)
        if any(isinstance(distribution, Replicated) for distribution in distributions) and (
            relation.kind is SetKind.UNION or first_whole
        ):
            return UnsupportedDistribution(
                f"{relation.kind.value} combines replicated rows with partitioned rows: partition both tables alike"
            )
        if reason := _singleton_reason(distributions):
            return UnsupportedDistribution(reason)
        pieces = [distribution for distribution in distributions if isinstance(distribution, HashPartitioned)]
        group = pieces[0].group if len({distribution.group for distribution in pieces}) == 1 else None
        common = frozenset[PartitionKey]() if group is None else _common(relation, distributions)
        if relation.all and relation.kind is SetKind.UNION:
            return HashPartitioned(group, common)
        return (
            HashPartitioned(group, common)
            if common
            else UnsupportedDistribution(
                f"{relation.kind.value} compares rows of several members: select the partitioning key in every input"
            )
        )

    def _join(self, relation: Join, known: Known, around: tuple[HashPartitioned, ...]) -> Distribution:
        kind, on = relation.kind, self._equalities.of(relation)
        left_known, right_known = known, (*known, *on)
        match kind:
            case JoinType.INNER | JoinType.SEMI:
                left_known = right_known
            case JoinType.LEFT:
                pass
            case JoinType.ANTI:
                right_known = on
            case JoinType.RIGHT:
                left_known, right_known = right_known, left_known
            case JoinType.FULL:
                left_known = right_known = ()
            case _:
                assert_never(kind)
        left = self.read(relation.left, left_known, around)
        # Then the right side is evaluated for each row of the left one, on the member of that row.
        inside = around
        if isinstance(left, HashPartitioned) and self._equalities.is_correlated(relation.right, relation.left):
            inside = (*around, left)
        right = self.read(relation.right, right_known, inside)
        for side in (left, right):
            if isinstance(side, UnsupportedDistribution):
                return side
        if isinstance(left, Replicated) and isinstance(right, Replicated):
            both = left if left.singleton_reason else right
            return (
                _once(both, "an ASOF JOIN may choose another of several equally near rows on each member")
                if isinstance(relation.right, AsOfRight)
                else both
            )
        if reason := _singleton_reason((left, right) if inside is around else (left,)):
            return UnsupportedDistribution(reason)
        holding = on if kind in (JoinType.FULL, JoinType.ANTI) else (*known, *on)
        classes = self._equalities.classes(holding)
        if isinstance(left, HashPartitioned) and isinstance(right, HashPartitioned):
            if not _colocated(left, right, classes, self._equalities.never_null_in(relation)):
                return UnsupportedDistribution(
                    "the sides of a join are not partitioned by the columns that it compares: join on "
                    "the partitioning keys"
                )
            match kind:
                case JoinType.INNER | JoinType.SEMI:
                    dropped = (left.dropped - right.anchors) | (right.dropped - left.anchors)
                    partition_keys = (
                        left.partition_keys | right.partition_keys if kind is JoinType.INNER else left.partition_keys
                    )
                    nullable_keys = left.nullable_keys | (
                        right.nullable_keys if kind is JoinType.INNER else frozenset()
                    )
                    return self._with_equals(
                        HashPartitioned(
                            left.group, partition_keys, left.anchors | right.anchors, dropped, nullable_keys
                        ),
                        holding,
                    )
                case JoinType.ANTI:
                    return left if right.dropped <= left.anchors else _LOSSY
                case JoinType.LEFT:
                    return _filled(left, right) if right.dropped <= left.anchors else _LOSSY
                case JoinType.RIGHT:
                    return _filled(right, left) if left.dropped <= right.anchors else _LOSSY
                case JoinType.FULL:
                    if left.dropped or right.dropped:
                        return _LOSSY
                    merged = {ours: both for both, ours, _ in relation.merged}
                    return HashPartitioned(
                        left.group,
                        _mapped(
                            left.partition_keys, lambda attribute: [merged[attribute]] if attribute in merged else ()
                        ),
                        nullable_keys=left.keys | right.keys,
                    )
                case _:
                    assert_never(kind)
        pieces = left if isinstance(left, HashPartitioned) else right
        assert isinstance(pieces, HashPartitioned)
        preserved = {JoinType.INNER: (left, right), JoinType.RIGHT: (right,), JoinType.FULL: ()}.get(kind, (left,))
        if pieces not in preserved:
            return UnsupportedDistribution(
                f"the {kind.value} JOIN preserves rows that are replicated: preserve the partitioned side, "
                "or use an inner join"
            )
        return self._with_equals(pieces, holding) if kind is JoinType.INNER else pieces

    def _apply(self, relation: Apply, known: Known, around: tuple[HashPartitioned, ...]) -> Distribution:
        input = self.read(relation.input, known, around)
        if isinstance(input, UnsupportedDistribution):
            return input
        correlated = self._equalities.is_correlated(relation.subquery, relation.input)
        inside = (*around, input) if isinstance(input, HashPartitioned) and correlated else around
        subquery = self.read(relation.subquery, known if correlated else (), inside)
        match subquery:
            case UnsupportedDistribution():
                return subquery
            case Replicated(singleton_reason):
                if singleton_reason is None or (isinstance(input, HashPartitioned) and correlated):
                    return input
                return (
                    Replicated(singleton_reason)
                    if isinstance(input, Replicated)
                    else UnsupportedDistribution(singleton_reason)
                )
            case HashPartitioned():
                if isinstance(input, Replicated):
                    return _OTHER_PARTITIONS
        if not subquery.dropped <= input.anchors:
            return _LOSSY
        if relation.form is SubqueryForm.IN or (relation.form is SubqueryForm.NOT_IN and _never_null(relation)):
            classes = self._equalities.classes((*known, *self._equalities.of(relation)))
            if _colocated(input, subquery, classes):
                return input
        return _OTHER_PARTITIONS

    def _about(self, known: Known, input: Relation, keys: frozenset[Attribute]) -> Known:
        """Keep the equalities that hold for an input's keys: rows of other groups do not matter."""
        own = self._equalities.owners(input)
        return tuple(
            pair for pair in known if all(attribute.owner not in own or attribute in keys for attribute in pair)
        )

    def _with_equals(self, distribution: Distribution, known: Known) -> Distribution:
        """Add partition keys in which columns are exchanged for equal ones."""
        if not isinstance(distribution, HashPartitioned) or not known:
            return distribution
        classes = self._equalities.classes(known)

        def equals(attribute: Attribute) -> Sequence[Attribute]:
            return [
                attribute,
                *(
                    other
                    for other in classes.equal_to(attribute)
                    if other != attribute and compares_alike(attribute, other)
                ),
            ]

        return replace(distribution, partition_keys=_mapped(distribution.partition_keys, equals))


def _once(distribution: Distribution, reason: str) -> Distribution:
    """Return the distribution of an operator whose result may differ between members that compute it for all rows."""
    if not isinstance(distribution, Replicated):
        return distribution
    return Replicated(distribution.singleton_reason or reason)


def _singleton_reason(distributions: Iterable[Distribution]) -> str | None:
    return next(
        (each.singleton_reason for each in distributions if isinstance(each, Replicated) and each.singleton_reason),
        None,
    )


def _is_lossy(distribution: Distribution) -> bool:
    return isinstance(distribution, HashPartitioned) and bool(distribution.dropped)


def _common(relation: SetOperation, distributions: Sequence[Distribution]) -> frozenset[PartitionKey]:
    """The places that the pieces among the inputs of a set operation have in common, in its own attributes."""
    shown: list[frozenset[PartitionKey]] = []
    for distribution, sources in zip(distributions, relation.sources, strict=False):
        if isinstance(distribution, HashPartitioned):
            names: dict[Attribute, list[Attribute]] = {}
            for attribute, source in zip(relation.attributes, sources, strict=True):
                if source is not None:
                    names.setdefault(source, []).append(attribute)
            shown.append(_mapped(distribution.partition_keys, lambda attribute, names=names: names.get(attribute, ())))  # type: ignore[misc]
    return frozenset.intersection(*shown) if shown else frozenset()


def _grouped(distribution: Distribution, keys: frozenset[Attribute], reason: str) -> Distribution:
    """Return the distribution of an operator that combines rows of equal keys."""
    if not isinstance(distribution, HashPartitioned):
        return distribution
    kept = frozenset(place for place in distribution.partition_keys if keys.issuperset(place))
    return (
        replace(distribution, partition_keys=kept, nullable_keys=frozenset())
        if kept
        else UnsupportedDistribution(reason)
    )


def _filled(preserved: HashPartitioned, filled: HashPartitioned) -> HashPartitioned:
    """The rows of an outer join: they are where the preserved side is, and the keys of the other side may be NULL."""
    return replace(preserved, nullable_keys=preserved.nullable_keys | filled.keys)


def _mapped(
    partition_keys: frozenset[PartitionKey], names: Callable[[Attribute], Sequence[Attribute]]
) -> frozenset[PartitionKey]:
    """The places in other names; one with an attribute that has none is none."""
    found = {
        combination
        for place in partition_keys
        for combination in islice(product(*map(names, place)), _PARTITION_KEYS_MAX)
    }
    return frozenset(
        sorted(found, key=lambda place: [(attribute.owner, attribute.position) for attribute in place])[
            :_PARTITION_KEYS_MAX
        ]
    )


def _colocated(
    left: HashPartitioned,
    right: HashPartitioned,
    classes: EquivalenceClasses,
    never_null: frozenset[Attribute] = frozenset(),
) -> bool:
    """Whether rows that are equal according to ``classes`` are on one member.

    Args:
        left: Where the rows of one side are.
        right: Where those of the other side are.
        classes: The equalities.
        never_null: Attributes that are not NULL in any pair of rows that match.
    """
    if left.group is None or left.group != right.group:
        return False
    return any(
        all(
            ours == theirs or any(other is theirs or other == theirs for other in classes.equal_to(ours))
            for ours, theirs in zip(here, there, strict=True)
        )
        for here in _certain(left, never_null)
        for there in _certain(right, never_null)
    )


def _certain(distribution: HashPartitioned, never_null: frozenset[Attribute]) -> frozenset[PartitionKey]:
    """The keys that determine where the rows are in which some attributes are not NULL."""
    return distribution.partition_keys | {place for place in distribution.nullable_keys if never_null.issuperset(place)}


def _never_null(relation: Apply) -> bool:
    """Whether neither side of NOT IN is ever NULL: a NULL affects rows of other partitions."""
    ours = all(operand is not None and is_never_null(operand, relation.input) for operand in relation.operands)
    return ours and all(output is not None and is_never_null(output, relation.subquery) for output in relation.outputs)
