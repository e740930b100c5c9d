"""What a bound plan is to conditions: relations over numbered columns.

Filters, projections, sorts and inner joins are one :class:`JoinBlock`. A column that some conditions must not pass has
another number above the relation that stops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from secateur.planner.constrain.condition import Condition
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import Join as BoundJoin

Renamed: TypeAlias = Mapping[int, ex.AnyExpression]
"""What a column that has another number above a relation is below it."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Any relation, with the columns that its rows have."""

    columns: frozenset[int]


@dataclass(frozen=True, slots=True)
class ScannedTable(Numbered):
    """A scan of a table.

    Attributes:
        table: The name of its relation.
        names: The names of its columns.
        own: Its columns.
    """

    table: str
    names: tuple[str, ...]
    own: tuple[ex.InputColumn, ...]


@dataclass(frozen=True, slots=True)
class JoinBlock(Numbered):
    """Inputs that are joined in any order, and conditions on the joined rows."""

    inputs: tuple[Relation, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Join(Numbered):
    """A join that is not inner.

    Attributes:
        bound: The join that it stands for.
        kind: LEFT, RIGHT, FULL, SEMI, ANTI, SINGLE or MARK.
        left: The left side.
        right: The right side.
        on: The conditions, over the columns of both sides.
        lefts: The columns of the left side above the join, with what they are below it, where NULL fills them.
        rights: Those of the right side.
        merged: The values that both sides have where they match: on the left, and on the right.
        mark: Of a MARK join, the column that says whether there is a match.
    """

    bound: BoundJoin
    kind: str
    left: Relation
    right: Relation
    on: tuple[Condition, ...]
    lefts: Renamed
    rights: Renamed
    merged: tuple[tuple[ex.AnyExpression, ex.AnyExpression], ...] = ()
    mark: ex.InputColumn | None = None

    @property
    def filled(self) -> Renamed:
        """The columns of both sides that NULL fills."""
        return {**self.lefts, **self.rights}

    def filled_of(self, side: Relation) -> Renamed:
        """The columns of a side that NULL fills."""
        return self.lefts if side is self.left else self.rights


@dataclass(frozen=True, slots=True)
class Barrier(Numbered):
    """A relation that conditions on some of its columns do not pass.

    Attributes:
        input: The relation below it.
        stopped: These columns, with what they are below.
        reason: Why, with ``{predicate}`` and ``{name}``.
        keeps_facts: Whether what holds for all rows below holds for all of its rows.
        chosen: The columns that are the value of a column in one of the rows below, or NULL.
        groups: Whether a row of it stands for several below.
        unique: The columns, below it, that no two of its rows agree in; None where that is not known.
    """

    input: Relation
    stopped: Renamed
    reason: str
    keeps_facts: bool = True
    chosen: Renamed | None = None
    groups: bool = False
    unique: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class SetOperation(Numbered):
    """UNION, EXCEPT or INTERSECT.

    Attributes:
        kind: Which.
        made: Its columns.
        inputs: What it reads.
        sources: What the columns are in each input.
    """

    kind: str
    made: tuple[ex.InputColumn, ...]
    inputs: tuple[Relation, ...]
    sources: tuple[tuple[ex.AnyExpression, ...], ...]


@dataclass(frozen=True, slots=True)
class With(Numbered):
    """A common table expression, which the query reads more than once."""

    index: int
    definition: Relation
    query: Relation


@dataclass(frozen=True, slots=True)
class Reference(Numbered):
    """The rows of a common table expression.

    Attributes:
        index: Which.
        made: Its columns.
        sources: What they are in the definition.
        is_outer: Whether they are the outer rows of a correlated subquery.
    """

    index: int
    made: tuple[ex.InputColumn, ...]
    sources: tuple[ex.AnyExpression, ...]
    is_outer: bool = False


@dataclass(frozen=True, slots=True)
class Apart(Numbered):
    """Rows that say nothing about those below: recursion, joins by position, functions, constants.

    Attributes:
        inputs: What it reads.
        facts: What holds for all of its rows.
    """

    inputs: tuple[Relation, ...] = ()
    facts: tuple[Condition, ...] = ()


Relation: TypeAlias = ScannedTable | JoinBlock | Join | Barrier | SetOperation | With | Reference | Apart
