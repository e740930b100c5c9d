"""Converts a predicate to boxes: the keys that can make it TRUE.

Each node is read for the truth values that are asked for (:mod:`~secateur.planner.predicates.truth`): NOT p is TRUE
where p is FALSE, a conjunction is FALSE where some part is FALSE, and where it is neither it is NULL. A form that is
not understood is *unbounded*, and leaves a prune reason for the user.

Source: the filter analysis of "SQL Optimization for Partition Pruning" (Hazelcast), on value sets instead of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from secateur.partitioning.pruning.comparison import Comparison
from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.operand import Constant
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.predicates.bounds import NOWHERE, UNBOUNDED, Boxes, intersect, unite
from secateur.planner.predicates.carried_values import values_given
from secateur.planner.predicates.column_equalities import ColumnEqualities, equated
from secateur.planner.predicates.comparisons import ComparisonReader
from secateur.planner.predicates.conditional import BRANCHES_MAX, Conditional, conditional_in
from secateur.planner.predicates.constants import operand_of
from secateur.planner.predicates.membership import list_membership, written_membership
from secateur.planner.predicates.text_lengths import longest_texts
from secateur.planner.predicates.truth import Truth
from secateur.planner.predicates.unused import shown
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.trees import copied

_PATTERNS: Final[dict[type[exp.Expr], Comparison]] = {
    exp.Like: Comparison.LIKE,
    exp.ILike: Comparison.ILIKE,
    exp.Glob: Comparison.GLOB,
    exp.SimilarTo: Comparison.SIMILAR_TO,
    exp.RegexpLike: Comparison.MATCHES,
}
_MATCHES: Final = {"regexp_full_match": Comparison.SIMILAR_TO, "regexp_matches": Comparison.MATCHES}
_STARTS_WITH: Final = frozenset({"starts_with", "prefix", "^@"})


@dataclass(slots=True)
class PredicateReader:
    """Reads predicates about the key columns of one scan, as they are evaluated on its own rows.

    A predicate that is evaluated above an outer join, on rows in which NULLs replace those of the scan, must not be
    read here (:mod:`~secateur.planner.relations.prunability` keeps such predicates away from the scan).

    Attributes:
        types: The type of each column that matters, by name: those of the partitioning key, none of which holds NULL.
        column_of: The name of the scan's column that a column node refers to, or None when it is another table's.
        further: The types of the table's other columns, which count where a conjunction equates them with one that
            matters.
        never_null: The other columns that do not hold NULL.
        integers: The indexes of the parameters that are integers in every execution.
        notes: Why predicates on a key column could not be used, in the user's terms; grows as predicates are read.
    """

    types: Mapping[str, SqlType]
    column_of: Callable[[exp.Column], str | None]
    further: Mapping[str, SqlType] = field(default_factory=dict)
    never_null: frozenset[str] = frozenset()
    integers: frozenset[int] = frozenset()
    notes: list[str] = field(default_factory=list)
    _leaves: ComparisonReader = field(init=False)
    _branches_left: int = field(default=BRANCHES_MAX, init=False)

    def __post_init__(self) -> None:
        self._read_about(self.types)

    @classmethod
    def about(
        cls,
        types: Mapping[str, SqlType],
        never_null: Mapping[str, SqlType],
        column_of: Callable[[exp.Column], str | None],
    ) -> PredicateReader:
        """Make a reader of predicates over columns, some of which may hold NULL.

        Args:
            types: The type of each column that matters, by name.
            never_null: The type of each column that does not hold NULL, by name.
            column_of: As the attribute.
        """
        reader = cls(never_null, column_of)
        reader._read_about(types)
        return reader

    def _read_about(self, types: Mapping[str, SqlType], nulls: frozenset[str] = frozenset()) -> None:
        further = {name: type_ for name, type_ in self.further.items() if name not in types}
        nullable = (types.keys() | further.keys()) - self.types.keys() - self.never_null
        self._leaves = ComparisonReader(
            types, self.column_of, further, frozenset(nullable), self.notes, nulls=nulls & nullable
        )

    def read_conjuncts(self, conjuncts: Sequence[exp.Expr]) -> list[Boxes]:
        """The boxes of each conjunct of a conjunction, for :meth:`close`.

        They may speak of ``further`` columns, where the conjuncts equate such a one with a column of the key.
        """
        read = self._read_beside(conjuncts)
        known = {**self.further, **self.types}
        linked = ColumnEqualities.of(self._leaves.pairs, known).linked_with(self.types)
        if linked <= self.types.keys():
            return read
        self.notes.clear()
        self._read_about({**{name: known[name] for name in linked}, **self.types})
        return self._read_beside(conjuncts)

    def read_with(self, conjuncts: Sequence[exp.Expr], others: Mapping[str, SqlType]) -> list[Boxes]:
        """The boxes of each conjunct over other columns as well, with whether these are NULL, for :meth:`close`.

        Args:
            conjuncts: The conjuncts.
            others: The types of the other columns, by name.
        """
        self._read_about({**others, **self.types}, frozenset(others))
        return self._read_beside(conjuncts)

    def _read_beside(self, conjuncts: Sequence[exp.Expr]) -> list[Boxes]:
        """The boxes in which each conjunct of a conjunction is TRUE, for rows that satisfy the others."""
        longest, values = self._leaves.longest, self._leaves.values
        types = {**self._leaves.further, **self._leaves.types}
        self._leaves.longest = {**longest, **longest_texts(conjuncts, self.column_of)}
        self._leaves.values = {**values, **values_given(conjuncts, self.column_of, types, self.integers)}
        read = [self.read(conjunct) for conjunct in conjuncts]
        self._leaves.longest, self._leaves.values = longest, values
        return read

    def close(self, boxes: Boxes, conjuncts: Sequence[exp.Expr]) -> Boxes:
        """Apply the equalities of a conjunction to ``boxes``, which hold all rows that pass it.

        The result is over the columns of ``types``.
        """
        equalities = self._equalities(conjuncts, Truth.TRUE)
        if not equalities.classes and all(column in self.types for box in boxes for column, _ in box.constraints):
            return boxes
        types = self._leaves.types
        return unite(
            (box.restrict(tuple(self.types)),) for box in equalities.applied(boxes) if not box.is_impossible(types)
        )

    @on_segmented_stack
    def read(self, node: exp.Expr, wanted: Truth = Truth.TRUE) -> Boxes:
        """Return boxes outside of which ``node`` has none of the truth values ``wanted``."""
        node = node.unnest()
        member = list_membership(node)
        if member is not None:
            return self._leaves.membership(node, *member, wanted)
        written = written_membership(node)
        if written is not None:
            return self._leaves.element(node, *written, wanted)
        constant = _constant(node)
        if constant is not None:
            return UNBOUNDED if constant in wanted else NOWHERE
        compared_columns = self._compared_with_columns(node)
        if compared_columns is not None:
            return self.read(compared_columns, wanted)
        conditional = conditional_in(node)
        if conditional is not None:
            return self._conditional(conditional, wanted)
        match node:
            case exp.And():
                return self._junction(list(flat(node, exp.And)), wanted, conjunction=True)
            case exp.Or():
                return self._junction(list(flat(node, exp.Or)), wanted, conjunction=False)
            case exp.Not():
                return self.read(node.this, wanted.negated)
            case exp.Is():
                return self._is(node, wanted)
            case exp.NullSafeEQ() | exp.NullSafeNEQ() if (compared := _with_boolean(node)) is not None:
                asked = wanted if isinstance(node, exp.NullSafeEQ) else wanted.negated
                return self.read(compared[0], _asked(Truth.TRUE if compared[1] else Truth.FALSE, asked))
            case exp.EQ() | exp.NEQ() if (compared := _with_boolean(node)) is not None:
                return self.read(compared[0], wanted if compared[1] == isinstance(node, exp.EQ) else wanted.negated)
            case (
                exp.EQ()
                | exp.NEQ()
                | exp.LT()
                | exp.LTE()
                | exp.GT()
                | exp.GTE()
                | exp.NullSafeEQ()
                | exp.NullSafeNEQ()
            ):
                return self._leaves.comparison(node, wanted)
            case exp.In() if not {"query", "unnest", "field"} & _given(node):
                return self._leaves.in_list(node, wanted)
            case exp.Between() if not node.args.get("symmetric"):
                return self._leaves.between(node, wanted)
            case exp.Escape(this=exp.Like() | exp.ILike() as like):
                operands = [like.expression, node.expression]
                return self._leaves.pattern(_PATTERNS[type(like)], like.this, operands, like, wanted)
            case exp.Like() | exp.ILike() | exp.Glob() | exp.SimilarTo() | exp.RegexpLike() if not node.args.get(
                "flag"
            ):
                return self._leaves.pattern(_PATTERNS[type(node)], node.this, [node.expression], node, wanted)
            case exp.Anonymous(expressions=[text, pattern, *options]) if str(node.this).lower() in _MATCHES and all(
                isinstance(option, exp.Literal) and option.is_string for option in options
            ):
                return self._leaves.pattern(_MATCHES[str(node.this).lower()], text, [pattern, *options], node, wanted)
            case exp.StartsWith():
                return self._leaves.starts_with(node.this, node.expression, node, wanted)
            case exp.Anonymous(expressions=[text, prefix]) if str(node.this).lower() in _STARTS_WITH:
                return self._leaves.starts_with(text, prefix, node, wanted)
            case exp.Column():
                return self._leaves.boolean(node, wanted)
            case _:
                self._leaves.note_unused(node)
                return UNBOUNDED

    def _junction(self, parts: Sequence[exp.Expr], wanted: Truth, *, conjunction: bool) -> Boxes:
        """Read AND or, as its mirror image, OR: the FALSE of one is the TRUE of the other."""
        if not conjunction:
            wanted = wanted.negated

        def every(truth: Truth) -> Boxes:
            return self._all(parts, truth if conjunction else truth.negated)

        def some(truth: Truth) -> Boxes:
            return self._any(parts, truth if conjunction else truth.negated)

        match wanted:
            case Truth.TRUE | Truth.NOT_FALSE:
                return every(wanted)
            case Truth.FALSE | Truth.NOT_TRUE:
                return some(wanted)
            case Truth.NULL:
                return intersect(every(Truth.NOT_FALSE), some(Truth.NULL))
            case Truth.NOT_NULL:
                return unite((every(Truth.TRUE), some(Truth.FALSE)))
            case _:
                return UNBOUNDED if wanted else NOWHERE

    def _all(self, parts: Sequence[exp.Expr], wanted: Truth) -> Boxes:
        read = self._read_beside(parts) if wanted is Truth.TRUE else [self.read(part, wanted) for part in parts]
        boxes = intersect(*read)
        return self._equalities(parts, wanted).applied(boxes)

    def _equalities(self, parts: Sequence[exp.Expr], wanted: Truth) -> ColumnEqualities:
        pairs = [pair for part in parts if (pair := equated(part, self.column_of, wanted)) is not None]
        types = self._leaves.types
        return (
            ColumnEqualities.of([pair for pair in pairs if pair[0] in types and pair[1] in types], types)
            if pairs
            else ColumnEqualities()
        )

    def _any(self, parts: Sequence[exp.Expr], wanted: Truth) -> Boxes:
        alternatives = []
        unbounded = None
        for part in parts:
            noted = len(self.notes)
            boxes = self.read(part, wanted)
            alternatives.append(boxes)
            # A branch that has a reason already needs no second one.
            if Box() in boxes and unbounded is None and len(self.notes) == noted:
                unbounded = part
        if unbounded is not None and any(Box() not in boxes and boxes for boxes in alternatives):
            columns = " and ".join(self.types)
            self.notes.append(
                f"the OR branch {shown(unbounded)} does not restrict the key: compare {columns} with "
                "values in every branch"
            )
        return unite(alternatives)

    def _conditional(self, conditional: Conditional, wanted: Truth) -> Boxes:
        """Return the boxes of each branch, where the branch is reached."""
        self._branches_left -= len(conditional.branches)
        if self._branches_left < 0 or not conditional.compares_alike(self._type_of):
            self._leaves.note_unused(conditional.whole)
            return UNBOUNDED
        noted = len(self.notes)
        found = []
        rest = UNBOUNDED
        for branch in conditional.branches:
            reached = rest if branch.condition is None else intersect(rest, self.read(branch.condition))
            if reached:
                found.append(intersect(reached, self.read(conditional.about(branch.value), wanted)))
            if branch.condition is not None:
                rest = intersect(rest, self.read(branch.condition, Truth.NOT_TRUE))
        boxes = unite(found)
        # A reason about one branch is none about the whole.
        del self.notes[noted:]
        if boxes == UNBOUNDED:
            self._leaves.note_unused(conditional.whole)
        return boxes

    def _compared_with_columns(self, node: exp.Expr) -> exp.Expr | None:
        """``5 BETWEEN low AND high`` and ``5 IN (a, b)`` as comparisons with each column.

        DuckDB compares all of them in one type, and so they must have one already.
        """
        match node:
            case exp.Between(this=value, args={"low": low, "high": high}) if not node.args.get("symmetric"):
                columns = [low.unnest(), high.unnest()]
            case exp.In(this=value, expressions=[_, *_] as listed):
                columns = [item.unnest() for item in listed]
            case _:
                return None
        types = {self._type_of(column) if isinstance(column, exp.Column) else None for column in columns}
        if len(types) > 1 or None in types or operand_of(value) is None:
            return None
        if isinstance(node, exp.In):
            return exp.or_(*(exp.EQ(this=copied(value), expression=copied(column)) for column in columns), copy=False)
        low, high = map(copied, columns)
        return exp.And(
            this=exp.GTE(this=copied(value), expression=low), expression=exp.LTE(this=copied(value), expression=high)
        )

    def _type_of(self, node: exp.Column) -> SqlType | None:
        name = self.column_of(node)
        return None if name is None else self.types.get(name) or self.further.get(name)

    def _is(self, node: exp.Is, wanted: Truth) -> Boxes:
        """``p IS TRUE``, ``p IS FALSE``, ``x IS NULL``: never NULL itself."""
        match node.expression.unnest():
            case exp.Boolean(this=value):
                held = Truth.TRUE if value else Truth.FALSE
            case exp.Null():
                held = Truth.NULL
            case _:
                return UNBOUNDED
        asked = _asked(held, wanted)
        tested = node.this.unnest()
        if held is Truth.NULL and not _is_predicate(tested):
            if isinstance(tested, exp.Column) and self.column_of(tested) in self.never_null - self.types.keys():
                return UNBOUNDED if Truth.FALSE in wanted else NOWHERE
            if asked is Truth.NULL:
                return self._leaves.is_null(node.this)
            if asked is Truth.NOT_NULL:
                return self._leaves.is_not_null(node.this)
            return UNBOUNDED if asked else NOWHERE
        return self.read(node.this, asked)


def _asked(held: Truth, wanted: Truth) -> Truth:
    """The values of p for which ``p IS held`` has one of some values. It is never NULL."""
    return (held if Truth.TRUE in wanted else Truth(0)) | (~held if Truth.FALSE in wanted else Truth(0))


def flat(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The operands of a chain of AND or OR, in order, through parentheses; without recursion, as chains may be long."""
    pending = [node]
    while pending:
        item = pending.pop().unnest()
        if isinstance(item, kind):
            pending.extend((item.expression, item.this))
        else:
            yield item


def _constant(node: exp.Expr) -> Truth | None:
    """The one truth value of a predicate that depends on nothing, such as ``1 = 2``."""
    if (
        not isinstance(node, (exp.Boolean, exp.Null, exp.Predicate))
        or node.find(exp.Column, exp.Query, exp.Placeholder, exp.Parameter) is not None
    ):
        return None
    match operand_of(node):
        case Constant(value=None):
            return Truth.NULL
        case Constant(value=bool(value)):
            return Truth.TRUE if value else Truth.FALSE
        case _:
            return None


def _with_boolean(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """The predicate that is compared with TRUE or FALSE, and with which."""
    left, right = node.this.unnest(), node.expression.unnest()
    for predicate, value in ((left, right), (right, left)):
        if isinstance(value, exp.Boolean) and _is_predicate(predicate):
            return predicate, bool(value.this)
    return None


def _is_predicate(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean))


def _given(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}
