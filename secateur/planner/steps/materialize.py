"""The rule ``materialize_subquery``: an uncorrelated subquery runs first, and its values prune the scans of the rest.

``SELECT ... FROM orders WHERE customer_id IN (SELECT customer_id FROM vip WHERE region = $1)`` gets a second form
beside the ordinary plan: a step, which is the subquery as a statement of its own, and an outer query, ``... WHERE
customer_id IN (SELECT unnest($2))``, whose partition tree has the list as a parameter. Partitions and members are
selected when the values are known. A scalar subquery becomes a plain parameter, in an expression ``CAST($2 AS type)``.

**Why the answer is the same.** The outer query is the user's own text with the subquery's values in place of the
subquery. NULLs are among them, and only the set of its values matters behind IN. A subquery qualifies if it binds
without the statement around it (so it reads nothing of it), is repeatable, gives no collation to its values, and stands
where DuckDB's parser sees it too (:mod:`secateur.planner.steps.subqueries`). The two reads are two moments:
the subquery may be answered from before a write and the rest from after it, as if the user had sent two statements.

**When.** Only if the list or value is used in the partition tree of a scan that other conjuncts do not already bound to
a few keys. A list is not found first where each member has all rows that its own rows meet, as after IN over tables
that are co-located by the compared columns: there an estimate decides whether to find the keys of the semi-join first
(:mod:`secateur.planner.steps.join_keys`).

Source: Apache Ignite IEP-24, "Materialization".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from secateur.errors import DatabaseError, NotSupportedError
from secateur.partitioning.pruning.comparison import OPERATORS
from secateur.partitioning.pruning.comparison_target import AbsoluteColumn, BareColumn, LinearColumn
from secateur.partitioning.pruning.nodes import tests_of
from secateur.partitioning.pruning.operand import Evaluated, Operand, ParameterList, parameters_of
from secateur.partitioning.types.column_type import UNIT_TIMESTAMPS, SqlType, parse_type
from secateur.planner.cost_model import CostModel
from secateur.planner.row_estimates import is_few
from secateur.planner.select import BoundSelect
from secateur.planner.statement import PlannedSelect, PlannedStep, PlannedSteps
from secateur.planner.steps.subqueries import VALUES_MAX, EnclosingCTEs, Subquery, find_subqueries, is_substituted
from secateur.planner.text.parameters import Parameters, read_parameters
from secateur.planner.text.positions import spliced
from secateur.planner.text.syntax import compared_trees, parse_query
from secateur.planner.text.tokens import Token, tokenize
from secateur.protocol.query_parts import SubqueryUse

RULE: Final = "materialize_subquery"
"""The name by which the rule is switched off."""

BindText = Callable[[str, Sequence[Token], Parameters, Sequence[str]], BoundSelect]
"""Binds a text whose tokens and parameters are read; the last argument has the types of the parameters at the end that
replace subqueries."""

_TEXTS_MAX: Final = 24
"""Subqueries inside of subqueries can be tried in any number of combinations; what has not been found after so many
texts is not worth the time.
"""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A subquery that may run as a step.

    Attributes:
        subquery: Its place.
        own_text: Its own text, parameters numbered.
        query: The query to run for it.
        type: The type of its values.
        text: The text of that query.
        alone: Its text with the outer common table expressions that it uses, which binds without the statement.
    """

    subquery: Subquery
    own_text: str
    query: BoundSelect
    type: SqlType
    text: str
    alone: str

    @property
    def parameter_type(self) -> str:
        """The type of the parameter that stands for it."""
        return f"{self.type}" if self.subquery.use is SubqueryUse.VALUE else f"{self.type}[]"


def materialize_subqueries(
    statement: PlannedSelect,
    text: str,
    tokens: Sequence[Token],
    parameters: Parameters,
    bind: BindText,
    model: CostModel,
) -> PlannedSelect:
    """Return the statement with a form in steps, if some of its subqueries can run first and prune the rest.

    Returns:
        ``statement`` itself when there is nothing to gain. Never raises if a step cannot be planned: then only the
        ordinary plan is used.
        Cost: nothing for a text without such subqueries; else binding each of them and reading the rest, and plans for
            those that are found.
    """
    if all(scan.replicated or is_few(scan.tree, parameters.total, model) for scan in statement.plan.scans):
        return statement
    subqueries = find_subqueries(tokens)
    if not subqueries:
        return statement
    bounded = bind if isinstance(bind, _BoundedBinder) else _BoundedBinder(bind)
    try:
        found = _Statement(statement, text, tokens, parameters, bounded).materialized(subqueries)
    except (DatabaseError, RecursionError, _TooManyTextsError):
        # A statement that cannot be planned in steps may be planned whole: it is known to be valid.
        return statement
    return statement if found is None else replace(statement, materialized=found)


class _TooManyTextsError(Exception):
    """A statement has been taken to pieces often enough."""


@dataclass(slots=True)
class _BoundedBinder:
    """Binds no more than so many texts for one statement."""

    bind: BindText
    left: int = _TEXTS_MAX

    def __call__(self, text: str, tokens: Sequence[Token], parameters: Parameters, types: Sequence[str]) -> BoundSelect:
        if not self.left:
            raise _TooManyTextsError
        self.left -= 1
        return self.bind(text, tokens, parameters, types)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A planned query and the texts from which its steps are made."""

    statement: PlannedSelect
    text: str
    tokens: Sequence[Token]
    parameters: Parameters
    bind: _BoundedBinder

    @property
    def _is_co_located(self) -> bool:
        """Whether one stage reads all partitioned tables: each member has all rows that its own rows meet."""
        plan = self.statement.plan
        scans = {number for number, scan in enumerate(plan.scans) if not scan.replicated}
        return any(scans <= set(stage.scans) for stage in plan.stages if not stage.at_coordinator)

    def materialized(self, subqueries: Sequence[Subquery]) -> PlannedSteps | None:
        """Make steps of the subqueries that prune something.

        If one cannot run on its own, or prunes nothing, the ones inside of it are tried.
        """
        around = EnclosingCTEs.of(self.text, self.tokens, self.parameters)
        found = list(self._candidates(subqueries, around))
        while found:
            unneeded = around.unneeded_without([self._span(candidate.subquery) for candidate in found])
            outer_text = self._outer_text(found, around, unneeded)
            outer = self._bound(outer_text, [candidate.parameter_type for candidate in found])
            used = _used_parameters(outer, self.parameters.total, [candidate.type for candidate in found])
            if len(used) == len(found):
                return self._confirmed(found, outer_text, outer, around, unneeded)
            found = [
                candidate
                for position, tried in enumerate(found)
                for candidate in (
                    [tried]
                    if self.parameters.total + position in used
                    else self._candidates(tried.subquery.inner, around)
                )
            ]
        return None

    def _confirmed(
        self,
        found: Sequence[_Candidate],
        outer_text: str,
        outer: BoundSelect,
        around: EnclosingCTEs,
        unneeded: frozenset[int],
    ) -> PlannedSteps | None:
        if outer.columns != self.statement.plan.columns:
            # An unnamed column is named by its text, which has changed.
            return None
        texts = [
            self._numbered(0, len(self.tokens) - 1),
            outer_text,
            *(text for candidate in found for text in (candidate.own_text, candidate.alone)),
        ]
        original, other, *rest = compared_trees(texts)
        readings = {self.parameters.total + 1 + position: reading for position, reading in enumerate(rest[::2])}
        known = {number: reading for number, reading in readings.items() if reading is not None}
        if original is None or other is None or len(known) < len(found):
            return None
        without = around.left_out(original, other, unneeded)
        if without is None or not is_substituted(without, other, known):
            return None
        for candidate, reading in zip(found, rest[1::2], strict=True):
            if reading is None or not candidate.query.runs_apart or not around.are_those_of(original, reading):
                return None
        return PlannedSteps(tuple(self._in_steps(candidate) for candidate in found), outer.planned())

    def _in_steps(self, candidate: _Candidate) -> PlannedStep:
        """A step that has been chosen, with steps of its own where these prune it."""
        tokens, own = self._read(candidate.text, 0)
        query = materialize_subqueries(
            candidate.query.planned(), candidate.text, tokens, own, self.bind, candidate.query.cost_model
        )
        return PlannedStep(candidate.own_text, query, candidate.subquery.use, VALUES_MAX[candidate.subquery.use])

    def _candidates(self, subqueries: Sequence[Subquery], around: EnclosingCTEs) -> Iterator[_Candidate]:
        for subquery in subqueries:
            try:
                candidate = self._candidate(subquery, around)
            except DatabaseError:
                # It is correlated.
                candidate = None
            if candidate is not None:
                yield candidate
            else:
                yield from self._candidates(subquery.inner, around)

    def _candidate(self, subquery: Subquery, around: EnclosingCTEs) -> _Candidate | None:
        text = self._numbered(subquery.opening + 1, subquery.closing - 1)
        syntax = parse_query(text, tokenize(text))
        opening, closing = self.tokens[subquery.opening], self.tokens[subquery.closing]
        needed = around.needed_by(syntax, opening, closing, subquery.opening)
        if needed is None:
            return None
        definitions = (
            f"WITH {around.keywords}{', '.join(self._numbered(first, last) for first, last in needed)}\n"
            if needed
            else ""
        )
        bounded = definitions + _bounded(text, subquery.use)
        query = self._bound(bounded, ())
        if not query.reads_tables or len(query.columns) != 1:
            return None
        if (
            self._is_co_located
            and subquery.use is SubqueryUse.LIST
            and not all(scan.replicated for scan in query.scans)
        ):
            return None
        ((_, type_text),) = query.columns
        try:
            type_ = parse_type(type_text)
            if type_.contains(UNIT_TIMESTAMPS):  # they prune nothing, and values of Python lose their nanoseconds
                return None
            alone = f"{definitions}SELECT * FROM (\n{text}\n) AS subquery" if needed else text
            return _Candidate(subquery, text, query, type_, bounded, alone)
        except NotSupportedError:
            return None

    def _bound(self, text: str, types: Sequence[str]) -> BoundSelect:
        return self.bind(text, *self._read(text, len(types)), types)

    def _read(self, text: str, values: int) -> tuple[list[Token], Parameters]:
        """Return the tokens and parameters of a text that is made from the statement.

        The text gets all of the statement's parameters, used or not, and ``values`` more.
        """
        tokens, own = read_parameters(text, tokenize(text))
        return tokens, replace(own, count=self.parameters.total + values).with_hidden_of(self.parameters)

    def _outer_text(self, found: Sequence[_Candidate], around: EnclosingCTEs, unneeded: frozenset[int]) -> str:
        splices = []
        for number, candidate in enumerate(found, self.parameters.total + 1):
            start, end = self._span(candidate.subquery)
            match candidate.subquery.use:
                case SubqueryUse.LIST | SubqueryUse.KEYS:
                    splices.append((start, end, f"(SELECT unnest(${number}))"))
                case SubqueryUse.VALUE:
                    # Inside an expression the type of a NULL matters, and so does that of a small integer.
                    splices.append(
                        (
                            start,
                            end,
                            f" ${number} " if candidate.subquery.is_whole else f" CAST(${number} AS {candidate.type}) ",
                        )
                    )
        last = len(self.tokens) - 1
        if not unneeded:
            return self._numbered(0, last, splices)
        kept = [definition for index, definition in enumerate(around.outermost) if index not in unneeded]
        definitions = ", ".join(self._numbered(definition.first, definition.last, splices) for definition in kept)
        main = self._numbered(around.outermost[-1].last + 1, last, splices)
        return f"WITH {around.keywords}{definitions}\n{main}" if kept else main

    def _span(self, subquery: Subquery) -> tuple[int, int]:
        """The first offset of a subquery with its parentheses, and the one behind it."""
        return self.tokens[subquery.opening].start, self.tokens[subquery.closing].end + 1

    def _numbered(self, first: int, last: int, splices: Sequence[tuple[int, int, str]] = ()) -> str:
        """The text of some tokens with numbered parameters, and with other splices."""
        numbers = [(start, end, f"${index + 1}") for start, end, index in self.parameters.spans]
        kept = [number for number in numbers if not any(start <= number[0] < end for start, end, _ in splices)]
        return spliced(self.text, self.tokens[first].start, self.tokens[last].end + 1, [*splices, *kept])


def _bounded(text: str, use: SubqueryUse) -> str:
    """A subquery whose rows are as many as can be used, and one more; each value once for a list."""
    distinct = "" if use is SubqueryUse.VALUE else "DISTINCT "
    return f"SELECT {distinct}* FROM (\n{text}\n) AS subquery LIMIT {VALUES_MAX[use] + 1}"


def _used_parameters(outer: BoundSelect, first: int, types: Sequence[SqlType]) -> set[int]:
    """Return the indexes of the parameters from ``first`` on that prune some scan by comparison with columns.

    The columns, bare or in an expression that has their type, must have the parameter's own type.

    Values that are excluded save too little to pay for a round trip.
    """
    used: set[int] = set()
    refused: set[int] = set()
    for scan in outer.scans:
        if scan.reason is not None:
            # Values that leave none of a column, as contradictions do, are too rare to ask for.
            continue
        column_types = dict(scan.tree.scheme.types)
        helps = not is_few(scan.tree, first, outer.cost_model)
        for column, test in tests_of(scan.tree.root):
            is_invertible = isinstance(test.comparison_target, (BareColumn, LinearColumn, AbsoluteColumn))
            for operand in test.operands:
                for index in (index for index in parameters_of(operand) if index >= first):
                    exact = is_invertible and _is_exact(operand, types[index - first], column_types[column])
                    if not exact or OPERATORS[test.comparison].excludes:
                        refused.add(index)
                    elif helps:
                        used.add(index)
    return used - refused


def _is_exact(operand: Operand | ParameterList, own: SqlType, column_type: SqlType) -> bool:
    """Whether an operand with the values of a subquery compares with a column as the subquery itself does.

    Alone they are parameters of their own types, which compare with a column of the same type, or integers with
    integers; in expressions they are cast.
    """
    return isinstance(operand, Evaluated) or own == column_type or (own.is_integer and column_type.is_integer)
