"""The relational operators, as frozen values.

Source: "RelNode Prunability Rules" (Hazelcast), "Joins" (Ignite).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never

from secateur.planner.binding.query import TableReference as TableScan
from secateur.planner.relations.attribute import Attribute
from secateur.planner.relations.bound_predicate import BoundPredicate


class JoinType(Enum):
    """The kinds of joins; a cross join is an inner join without conditions."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"


class SetKind(Enum):
    """The set operations, with and without ALL."""

    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


class SubqueryForm(Enum):
    """The kind of place in which a subquery stands in an expression."""

    IN = "IN"
    NOT_IN = "NOT IN"
    EXISTS = "EXISTS"
    NOT_EXISTS = "NOT EXISTS"
    VALUE = "VALUE"
    """Anywhere else: its value is computed for each row."""


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """A reference to a table.

    A common table expression that is mentioned twice has two of these for one scan of the text.
    """

    scan: TableScan
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Rows of constants; one row without columns where there is no FROM. ``facts`` hold for all of the rows."""

    attributes: tuple[Attribute, ...]
    facts: tuple[BoundPredicate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """Rows that come from no table: a table function, UNNEST, the recursion of a recursive query."""


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """Columns by name. ``sources`` has the input's attribute of each, None for a computed one."""

    input: Relation
    attributes: tuple[Attribute, ...]
    sources: tuple[Attribute | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """WHERE, HAVING, QUALIFY: keeps the rows for which every conjunct is TRUE."""

    input: Relation
    conjuncts: tuple[BoundPredicate, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sort:
    """ORDER BY."""

    input: Relation


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """LIMIT, OFFSET and samples: the rows that remain depend on the other rows. ``word`` is the user's keyword."""

    input: Relation
    word: str = "LIMIT"


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """GROUP BY, or aggregates over all rows.

    Attributes:
        input: The rows.
        keys: The columns by which every grouping set groups.
        plain: False where there are several grouping sets.
        exact: Whether it groups by the keys alone, and by nothing computed.
    """

    input: Relation
    keys: frozenset[Attribute]
    plain: bool = True
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """DISTINCT. ``keys`` are those of DISTINCT ON, None without ON.

    ``exact`` is True if ``keys`` are complete and none of them is computed.
    """

    input: Relation
    keys: frozenset[Attribute] | None
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Window functions. ``partition`` are the attributes by which every one of them is partitioned."""

    input: Relation
    partition: frozenset[Attribute]


@dataclass(frozen=True, slots=True, eq=False)
class AsOfRight:
    """The right side of an ASOF join: for a row of the left side, one of the rows that are equal in ``keys``."""

    input: Relation
    keys: frozenset[Attribute]


@dataclass(frozen=True, slots=True, eq=False)
class SetOperation:
    """UNION, INTERSECT, EXCEPT.

    Attributes:
        kind: Which.
        inputs: Two, or more where unions are chained.
        attributes: Its columns; none where the inputs' are not all known.
        sources: Per input its attribute for each column, None where there is none.
        all: Whether equal rows all stay.
    """

    kind: SetKind
    inputs: tuple[Relation, ...]
    attributes: tuple[Attribute, ...]
    sources: tuple[tuple[Attribute | None, ...], ...]
    all: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """A join.

    Attributes:
        kind: SEMI and ANTI have the columns of the left side alone.
        left: The left side.
        right: The right side, :class:`AsOfRight` for ASOF; it may refer to attributes of the left side (LATERAL, or a
            subquery that was rewritten to a join).
        on: The conjuncts of ON, and the equalities of USING.
        merged: For FULL JOIN ... USING: the merged attribute, and its attributes on the left and on the right.
        unread: For LEFT and RIGHT: whether only ON refers to the side that is filled with NULLs.
    """

    kind: JoinType
    left: Relation
    right: Relation
    on: tuple[BoundPredicate, ...] = ()
    merged: tuple[tuple[Attribute, Attribute, Attribute], ...] = ()
    unread: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A subquery in WHERE or SELECT, evaluated for each row of the input. Rewrites turn it into a join.

    Attributes:
        input: The rows for which it is evaluated.
        subquery: It may refer to attributes of the input.
        form: The kind of place in which it stands; IN and EXISTS only as a conjunct of WHERE.
        operands: For IN and NOT IN the compared attributes, None for those that are not bare columns.
        outputs: The columns of the subquery that they are compared with.
        conjunct: The conjunct of WHERE, or None.
        compared: The comparisons of the conjunct between an attribute of the input and the value of the subquery, where
            that is the value of an attribute in one of the subquery's rows, or NULL.
    """

    input: Relation
    subquery: Relation
    form: SubqueryForm
    operands: tuple[Attribute | None, ...] = ()
    outputs: tuple[Attribute | None, ...] = ()
    conjunct: BoundPredicate | None = None
    compared: tuple[BoundPredicate, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """A subquery in FROM, or a reference to a common table expression."""

    input: Relation
    alias: str


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """Something that is not understood, with the reason: nothing passes."""

    input: Relation
    reason: str


Relation: TypeAlias = (
    Scan
    | Values
    | Unknown
    | Project
    | Filter
    | Sort
    | Limit
    | Aggregate
    | Distinct
    | Window
    | AsOfRight
    | SetOperation
    | Join
    | Apply
    | Derived
    | Opaque
)


def children(relation: Relation) -> tuple[Relation, ...]:
    """The inputs of a relation."""
    match relation:
        case Scan() | Values() | Unknown():
            return ()
        case SetOperation(_, inputs):
            return inputs
        case Join(_, left, right):
            return left, right
        case Apply(input, subquery):
            return input, subquery
        case _:
            return (relation.input,)


def postorder(relation: Relation) -> Iterator[Relation]:
    """A tree, inputs first. Without recursion, as joins may be many."""
    pending = [(relation, False)]
    while pending:
        node, visited = pending.pop()
        if visited:
            yield node
        else:
            pending.append((node, True))
            pending.extend((child, False) for child in reversed(children(node)))


def owners(relation: Relation) -> frozenset[int]:
    """The relations whose attributes the rows of a relation have."""
    pending = [relation]
    found: set[int] = set()
    while pending:
        match pending.pop():
            case Scan(_, attributes) | Values(attributes) | Project(_, attributes) | SetOperation(_, _, attributes):
                found.update(attribute.owner for attribute in attributes)
            case Join(kind, left, right, _, merged):
                found.update(attribute.owner for attribute, _, _ in merged)
                pending.append(left)
                if kind not in (JoinType.SEMI, JoinType.ANTI):
                    pending.append(right)
            case Apply(input):
                pending.append(input)
            case Unknown() | Opaque():
                pass
            case node:
                pending.append(node.input)
    return frozenset(found)


def is_never_null(attribute: Attribute, relation: Relation) -> bool:
    """Whether an attribute is not NULL in any row of a relation."""
    match relation:
        case Scan(_, attributes):
            return attribute in attributes and not attribute.nullable
        case Project(input, attributes, sources):
            source = dict(zip(attributes, sources, strict=True)).get(attribute)
            return source is not None and is_never_null(source, input)
        case SetOperation(_, inputs, attributes, sources):
            if attribute not in attributes:
                return False
            position = attributes.index(attribute)
            return all(
                (source := given[position]) is not None and is_never_null(source, input)
                for input, given in zip(inputs, sources, strict=True)
            )
        case Aggregate(input, keys):
            return attribute in keys and is_never_null(attribute, input)
        case Join(kind, left, right):
            in_left = kind in (JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI) and is_never_null(
                attribute, left
            )
            return in_left or (kind in (JoinType.INNER, JoinType.RIGHT) and is_never_null(attribute, right))
        case Values() | Unknown() | Opaque():
            return False
        case Filter() | Sort() | Limit() | Distinct() | Window() | AsOfRight() | Apply() | Derived():
            return is_never_null(attribute, relation.input)
        case _:
            assert_never(relation)
