"""Converts a predicate to boxes: the keys that can make it TRUE.

Each node is read for the truth values that are asked for (:mod:`~secateur.planner.prune.truth`): NOT p is TRUE
where p is FALSE, a conjunction is FALSE where some part is FALSE, and where it is neither it is NULL. A form that is
not understood is *unbounded*, and leaves a prune reason for the user.

Source: the filter analysis of "SQL Optimization for Partition Pruning" (Hazelcast), on value sets instead of branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from secateur.engine.kernels.duckdb.cancellation import check_cancelled
from secateur.partitioning.pruning.condition import Box
from secateur.partitioning.pruning.operand import Constant
from secateur.partitioning.types.column_type import SqlType
from secateur.planner.prune.bounds import NOWHERE, UNBOUNDED, Boxes, intersect, unite
from secateur.planner.prune.carried_values import ColumnEqualities, longest_texts, values_given
from secateur.planner.prune.comparisons import ComparisonReader
from secateur.planner.prune.conditional import BRANCHES_MAX, Conditional, conditional_in
from secateur.planner.prune.operands import is_free_of_rows, operand_of
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.prune.truth import Truth
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import COMPARISONS, CONTAINS, PATTERNS, compared, is_closed
from secateur.planner.tree.rewriting import within


@dataclass(slots=True)
class PredicateReader:
    """Reads predicates about the key columns of one scan, as they are evaluated on its own rows.

    A predicate that is evaluated above an outer join, on rows in which NULLs replace those of the scan, must not be
    read here.

    Attributes:
        types: The type of each column that matters, by name: those of the partitioning key, none of which holds NULL.
        columns: The columns of the scan. The others count where a conjunction equates them with one that matters.
        integers: The indexes of the parameters that are integers in every execution.
        notes: Why predicates on a key column could not be used, in the user's terms; grows as predicates are read.
    """

    types: Mapping[str, SqlType]
    columns: ScanColumns
    integers: frozenset[int] = frozenset()
    notes: list[str] = field(default_factory=list)
    _leaves: ComparisonReader = field(init=False)
    _branches_left: int = field(default=BRANCHES_MAX, init=False)

    def __post_init__(self) -> None:
        self._read_about(self.types)

    @classmethod
    def about(cls, types: Mapping[str, SqlType], columns: ScanColumns) -> PredicateReader:
        """Make a reader of predicates over columns, some of which may hold NULL."""
        reader = cls({name: type_ for name, type_ in types.items() if name in columns.never_null}, columns)
        reader._read_about(types)
        return reader

    def _read_about(self, types: Mapping[str, SqlType], nulls: frozenset[str] = frozenset()) -> None:
        nullable = frozenset(self.columns.types) - self.types.keys() - self.columns.never_null
        self._leaves = ComparisonReader(types, self.columns, nullable, self.notes, nulls=nulls & nullable)

    def read_conjuncts(self, conjuncts: Sequence[ex.AnyExpression]) -> list[Boxes]:
        """The boxes of each conjunct of a conjunction, for :meth:`close`.

        They may speak of other columns, where the conjuncts equate such a one with a column of the key.
        """
        read = self._read_beside(conjuncts)
        known = self.columns.types
        linked = ColumnEqualities.of(self._leaves.pairs, known).linked_with(self.types)
        if linked <= self.types.keys():
            return read
        self.notes.clear()
        self._read_about({**{name: known[name] for name in linked}, **self.types})
        return self._read_beside(conjuncts)

    def read_with(self, conjuncts: Sequence[ex.AnyExpression], others: Mapping[str, SqlType]) -> list[Boxes]:
        """The boxes of each conjunct over other columns as well, with whether these are NULL, for :meth:`close`."""
        self._read_about({**others, **self.types}, frozenset(others))
        return self._read_beside(conjuncts)

    def _read_beside(self, conjuncts: Sequence[ex.AnyExpression]) -> list[Boxes]:
        """The boxes in which each conjunct of a conjunction is TRUE, for rows that satisfy the others."""
        longest, values = self._leaves.longest, self._leaves.values
        self._leaves.longest = {**longest, **longest_texts(conjuncts, self.columns)}
        self._leaves.values = {**values, **values_given(conjuncts, self.columns, self.integers)}
        read = [self.read(conjunct) for conjunct in conjuncts]
        self._leaves.longest, self._leaves.values = longest, values
        return read

    def close(self, boxes: Boxes, conjuncts: Sequence[ex.AnyExpression], others: Iterable[str] = ()) -> Boxes:
        """Apply the equalities of a conjunction to ``boxes``, which hold all rows that pass it.

        The result is over the columns of ``types``, and ``others``.
        """
        equalities = self._equalities(conjuncts, Truth.TRUE)
        if not equalities.classes and all(column in self.types for box in boxes for column, _ in box.constraints):
            return boxes
        types = self._leaves.types
        return unite(
            (box.restrict((*self.types, *others)),) for box in equalities.applied(boxes) if not box.is_impossible(types)
        )

    def read(self, node: ex.AnyExpression, wanted: Truth = Truth.TRUE) -> Boxes:
        """Return boxes outside of which ``node`` has none of the truth values ``wanted``."""
        check_cancelled()  # most of what takes long while a large statement is planned comes by here
        constant = _constant(node)
        if constant is not None:
            return UNBOUNDED if constant in wanted else NOWHERE
        conditional = conditional_in(node)
        if conditional is not None:
            return self._conditional(conditional, wanted)
        match node:
            case ex.Conjunction():
                return self._junction(flat(node), wanted, conjunction=node.type == "CONJUNCTION_AND")
            case ex.BoundOperation(type="OPERATOR_NOT", children=(inner,)):
                return self.read(inner, wanted.negated)
            case ex.BoundOperation(type="OPERATOR_IS_NULL", children=(inner,)):
                return self._is_null(inner, node, wanted)
            case ex.BoundOperation(type="OPERATOR_IS_NOT_NULL", children=(inner,)):
                return self._is_null(inner, node, wanted.negated)
            case ex.BoundOperation(type="COMPARE_IN" | "COMPARE_NOT_IN", children=(needle, *listed)):
                asked = wanted if node.type == "COMPARE_IN" else wanted.negated
                if is_free_of_rows(needle):
                    # A value in the place of the column: the columns are among the values.
                    parts = [compared("COMPARE_EQUAL", needle, each) for each in listed]
                    return self._junction(parts, asked, conjunction=False)
                return self._leaves.in_list(node, asked)
            case ex.Call() if node.type in COMPARISONS:
                found = _with_boolean(node)
                if found is None:
                    return self._leaves.comparison(node, wanted)
                return self._compared_with(*found, node.type, wanted)
            case ex.Call(type="COMPARE_BETWEEN", children=(value, low, high)) if is_closed(node):
                # Another BETWEEN is an AND already: this one has a value that is evaluated once.
                above = compared("COMPARE_GREATERTHANOREQUALTO", value, low)
                below = compared("COMPARE_LESSTHANOREQUALTO", value, high)
                return self._junction([above, below], wanted, conjunction=True)
            case ex.Call(children=(list_, _)) if node.name in CONTAINS and list_.return_type.id == "LIST":
                return self._leaves.member(node, wanted)
            case ex.Call() if node.name in PATTERNS:
                return self._leaves.pattern(node, wanted)
            case ex.InputColumn():
                return self._leaves.boolean(node, wanted)
            case _:
                self._leaves.note_unused(node)
                return UNBOUNDED

    def _compared_with(self, predicate: ex.AnyExpression, value: bool, compared: str, wanted: Truth) -> Boxes:
        """A predicate that is compared with TRUE or FALSE, by ``=``, ``<>`` or ``IS [NOT] DISTINCT FROM``."""
        if compared in ("COMPARE_EQUAL", "COMPARE_NOTEQUAL"):
            return self.read(predicate, wanted if value == (compared == "COMPARE_EQUAL") else wanted.negated)
        asked = wanted if compared == "COMPARE_NOT_DISTINCT_FROM" else wanted.negated
        return self.read(predicate, _asked(Truth.TRUE if value else Truth.FALSE, asked))

    def _junction(self, parts: Sequence[ex.AnyExpression], wanted: Truth, *, conjunction: bool) -> Boxes:
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

    def _all(self, parts: Sequence[ex.AnyExpression], wanted: Truth) -> Boxes:
        read = self._read_beside(parts) if wanted is Truth.TRUE else [self.read(part, wanted) for part in parts]
        boxes = intersect(*read)
        return self._equalities(parts, wanted).applied(boxes)

    def _equalities(self, parts: Sequence[ex.AnyExpression], wanted: Truth) -> ColumnEqualities:
        pairs = [pair for part in parts if (pair := self._leaves.equated(part, wanted)) is not None]
        types = self._leaves.types
        return (
            ColumnEqualities.of([pair for pair in pairs if pair[0] in types and pair[1] in types], types)
            if pairs
            else ColumnEqualities()
        )

    def _any(self, parts: Sequence[ex.AnyExpression], wanted: Truth) -> Boxes:
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
            branch, columns = self.columns.shown(unbounded), " and ".join(self.types)
            self.notes.append(
                f"the OR branch {branch} does not restrict the key: compare {columns} with values in every branch"
            )
        return unite(alternatives)

    def _conditional(self, conditional: Conditional, wanted: Truth) -> Boxes:
        """Return the boxes of each branch, where the branch is reached."""
        self._branches_left -= len(conditional.branches)
        if self._branches_left < 0:
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

    def _is_null(self, tested: ex.AnyExpression, whole: ex.AnyExpression, wanted: Truth) -> Boxes:
        """``x IS NULL``, which is never NULL itself."""
        asked = _asked(Truth.NULL, wanted)
        if tested.return_type == ex.BOOLEAN and not isinstance(tested, ex.InputColumn):
            return self.read(tested, asked)
        if self.columns.name_of(tested) in self.columns.never_null - self.types.keys():
            return UNBOUNDED if Truth.FALSE in wanted else NOWHERE
        if asked is Truth.NULL:
            return self._leaves.is_null(tested, whole)
        if asked is Truth.NOT_NULL:
            return self._leaves.is_not_null(tested)
        return UNBOUNDED if asked else NOWHERE


def _asked(held: Truth, wanted: Truth) -> Truth:
    """The values of p for which ``p IS held`` has one of some values. It is never NULL."""
    return (held if Truth.TRUE in wanted else Truth(0)) | (~held if Truth.FALSE in wanted else Truth(0))


def flat(node: ex.Conjunction) -> list[ex.AnyExpression]:
    """The operands of a chain of AND or OR, in order; without recursion, as chains may be long."""
    found: list[ex.AnyExpression] = []
    pending: list[ex.AnyExpression] = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, ex.Conjunction) and item.type == node.type:
            pending.extend(reversed(item.children))
        else:
            found.append(item)
    return found


def _constant(node: ex.AnyExpression) -> Truth | None:
    """The one truth value of a predicate that depends on nothing, such as ``1 = 2``."""
    if node.return_type != ex.BOOLEAN or any(
        isinstance(part, (ex.InputColumn, ex.BoundParameter)) for part in within(node)
    ):
        return None
    match operand_of(node):
        case Constant(value=None):
            return Truth.NULL
        case Constant(value=bool(value)):
            return Truth.TRUE if value else Truth.FALSE
        case _:
            return None


def _with_boolean(node: ex.Call) -> tuple[ex.AnyExpression, bool] | None:
    """The predicate that is compared with TRUE or FALSE, and with which."""
    if node.type not in ("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"):
        return None
    left, right = node.children
    for predicate, value in ((left, right), (right, left)):
        if (
            predicate.return_type == ex.BOOLEAN
            and isinstance(value, ex.BoundConstant)
            and type(value.value.value) is bool
        ):
            return predicate, value.value.value
    return None
