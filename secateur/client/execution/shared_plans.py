"""Plans that texts share which differ only in literals: when the text without them may stand for all of them.

The first text of a kind is planned as it stands. At the second one, the text without literals is planned as well, and
shared from then on if nothing tells the two plans apart: same columns, same partitions for the literals of the first.
Otherwise, and where the text without literals is refused, every text of that kind has a plan of its own. So a text that
comes once costs nothing more, and errors of planning have their places in the user's text.

Partitions may be more than those of a plan of its own where literals contradict each other in columns that are no
partitioning keys: no row meets both, and only the text shows it.

The controller could judge better which texts have the same plan, but only after a round trip.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple

from msgspec import structs

from secateur.client.dbapi.parameters import values_of
from secateur.client.execution.execute import StatementCall, planned
from secateur.client.execution.routing import partitions_of
from secateur.client.session import Cached, Prepared, Session, cacheable
from secateur.errors import DatabaseError, OperationalError
from secateur.protocol.hello import Pruning
from secateur.protocol.statements import ChangeStatement, CoordinatedChange, InsertRows, SelectStatement

_CHARS_MAX: Final = 4096
"""A longer text takes longer to send and to plan than a plan of its own is worth."""
_MEMBERS_MAX: Final = 63
"""The planner takes longer lists out by itself."""

_TOKEN: Final = re.compile(
    r"[ \t\r\n\f]*+(?:(?<=[\w&])'|'[^']*+(?:''[^']*+)*+'|\"[^\"]*+\"|[0-9][\w.]*+(?:(?<=[eE])[+-][0-9]++)?+|\w++"
    r"|<>|!=|<=|>=|==|--|/\*|.)",
    re.DOTALL,
)
"""A token with the spaces before it. A quote alone is one that never ends, or of a string with a prefix."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}|[1-9][0-9]{0,14}\.[0-9]{1,15}|[0-9]{1,15}(?:\.[0-9]{1,15})?E[+-]?[0-9]{1,2}")
_DAY: Final = "'[0-9]{4}-[0-9]{2}-[0-9]{2}"
_SPELLED: Final[Mapping[str, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    "DATE": (re.compile(f"{_DAY}'"), date.fromisoformat),
    "TIMESTAMP": (re.compile(rf"{_DAY} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(?:\.[0-9]{{1,6}})?'"), datetime.fromisoformat),
}


class TakenText(NamedTuple):
    """A text without its literals.

    Attributes:
        text: The text, with ``?`` for each of them, or ``$1`` to ``$n`` where columns of one name are compared with
            equal ones: a plan may depend on that.
        values: The literals, in order.
        has_ranges: Whether one of them bounds a range of values, so that it decides about estimates.
    """

    text: str
    values: list[Any]
    has_ranges: bool


class _Clause(Enum):
    """The clause in which the scan is, at one level of parentheses."""

    CONDITION = "WHERE"
    """Its literals are taken."""
    SOURCES = "FROM"
    """The literals of a query in parentheses are taken. The head of a statement is such a clause as well."""
    ASSIGNMENTS = "SET"
    """New values are taken, and nothing in parentheses."""
    OTHER = "SELECT"
    """Nothing is taken, and nothing in parentheses."""
    INSIDE_OTHER = "("
    """A level of parentheses in ``OTHER``, in which nothing is taken, whatever clause begins."""


class _Sign(Enum):
    """A token at which there is something else to do than to begin a clause."""

    COMPARISON = "="
    RANGE = "<"
    BETWEEN = "BETWEEN"
    IN = "IN"
    OPENING = "("
    CLOSING = ")"
    END = ";"
    DOUBT = "?"


_OTHER_CLAUSES: Final = (
    *("SELECT", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "QUALIFY", "WINDOW", "UNION", "EXCEPT", "INTERSECT"),
    *("RETURNING", "VALUES", "PIVOT", "UNPIVOT"),
)
_SIGNS: Final[Mapping[str, _Sign | _Clause]] = {
    **{sign.value: sign for sign in (*_Sign, _Clause.CONDITION, _Clause.SOURCES, _Clause.ASSIGNMENTS)},
    **dict.fromkeys(("<>", "!="), _Sign.COMPARISON),
    **dict.fromkeys(("<=", ">", ">="), _Sign.RANGE),
    **dict.fromkeys(("'", '"', "--", "/*", "\\", "$"), _Sign.DOUBT),
    **dict.fromkeys(_OTHER_CLAUSES, _Clause.OTHER),
}
_BEFORE_OPERAND: Final = frozenset({"WHERE", "AND", "OR", "NOT", "("})
_BEHIND_OPERAND: Final = frozenset({"", ")", ";", "AND", "OR", *_OTHER_CLAUSES})
_BEHIND_ASSIGNED: Final = frozenset({"", ",", ";", "FROM", "WHERE", "RETURNING"})
_STATEMENTS: Final = frozenset({"SELECT", "WITH", "FROM", "(", "UPDATE", "DELETE"})
_CONSTANTS: Final = frozenset({"NULL", "TRUE", "FALSE"})


def take_literals(sql: str) -> TakenText | None:
    """Take the literals out of a statement; None for one that has none to take, or about which there is any doubt.

    A scan of the tokens takes only what certainly means the same as a parameter:

    - in a WHERE, a literal with which a bare column name is compared (``a = 5``, ``a BETWEEN 1 AND 2``, ``a IN (1,
      2)``), where the comparison stands alone between AND, OR, NOT and parentheses;
    - the new value in ``UPDATE t SET a = 5``;
    - the values of an INSERT of one row that has nothing but literals.

    Everything else stays in the text, because it may decide about the plan or about names of columns: select lists with
    all that is in them, ON, HAVING, GROUP BY, ORDER BY, LIMIT, patterns, arguments of functions, intervals, TRUE, FALSE
    and NULL. A text with comments, escapes, dollar quotes, parameters, a second statement or a BETWEEN that is not
    plain is left as it stands. What is taken out is judged once more for each text that is left
    (:func:`shared_call`).

    A value has the type that DuckDB gives the literal: INTEGER or BIGINT, DECIMAL by its digits, DOUBLE with an
    exponent, DATE, TIMESTAMP; and DuckDB takes a parameter of text for a string literal. ``0.5`` stays in the text: the
    decimal that Python makes of it has a digit less than the literal.

    Cost: some 30 microseconds for a text of 200 characters.
    """
    if len(sql) > _CHARS_MAX:
        return None
    scan = _Scan(_TOKEN.findall(sql))
    first = scan.words[0]
    try:
        if first == "INSERT":
            scan.take_cells()
        elif first in _STATEMENTS:
            scan.take_operands(is_update=first == "UPDATE")
    except ValueError:  # a doubt, or a day that the calendar does not have
        return None
    return scan.left() if scan.values else None


class _Scan:
    """The scan of the tokens of one text, and the literals that it has taken."""

    def __init__(self, tokens: list[str]) -> None:
        self.words = [*[token.lstrip().upper() for token in tokens], "", "", ""]
        self.values: list[Any] = []
        self._tokens = tokens
        self._has_ranges = False
        self._numbers: dict[tuple[object, ...], int] = {}  # of the values, by column, type and value
        self._places: list[tuple[int, int]] = []  # tokens of literals, and the numbers of their values

    def left(self) -> TakenText:
        """The text without the literals that were taken."""
        is_numbered = len(self._places) > len(self.values)
        for place, number in self._places:
            self._tokens[place] = f" ${number + 1}" if is_numbered else " ?"  # apart: "=?" may be an operator
        return TakenText("".join(self._tokens), self.values, self._has_ranges)

    def take_cells(self) -> None:
        """Take the literals of an INSERT of one row that has nothing else."""
        words = self.words
        start = words.index("VALUES") + 1 if "VALUES" in words else 0
        cells, end = self._row(start)
        is_known = all(_SIGNS.get(word) is not _Sign.DOUBT for word in words[:start])
        if cells and is_known and words[end] in ("", ";") and not words[end + 1]:
            self._take([cell for cell in cells if words[cell[0]] not in _CONSTANTS], None)

    def take_operands(self, *, is_update: bool) -> None:
        """Take the literals of conditions, and of the assignments of an UPDATE.

        Raises:
            ValueError: The text has something that the scan does not know for certain.
        """
        words = self.words
        outer: list[_Clause] = []
        clause = _Clause.SOURCES
        ready = 0  # what lies before it has been read
        for position, word in enumerate(words):
            sign = _SIGNS.get(word)
            if sign is None or position < ready:
                continue
            if sign is _Sign.DOUBT or (sign is _Sign.END and words[position + 1]):
                raise ValueError(word)
            if sign is _Sign.OPENING:
                outer.append(clause)
                if clause is not _Clause.CONDITION and clause is not _Clause.SOURCES:
                    clause = _Clause.INSIDE_OTHER
            elif sign is _Sign.CLOSING:
                if not outer:
                    raise ValueError(word)
                clause = outer.pop()
            elif isinstance(sign, _Clause):
                if clause is not _Clause.INSIDE_OTHER and (word != "FROM" or words[position - 1] != "DISTINCT"):
                    clause = sign if is_update or sign is not _Clause.ASSIGNMENTS else _Clause.OTHER
            elif clause is _Clause.CONDITION:
                ready = self._condition(sign, position)
            elif clause is _Clause.ASSIGNMENTS and word == "=" and words[position - 2] in ("SET", ","):
                end = self._literal_end(position + 1)
                if words[end] in _BEHIND_ASSIGNED:
                    self._take([(position + 1, end)], None)

    def _condition(self, sign: _Sign, position: int) -> int:
        """Take what a column is compared with; returns a position up to which the text has been read.

        Raises:
            ValueError: Bounds that are no literals, so that it is not known which AND is that of the BETWEEN.
        """
        words, start = self.words, position + 1
        end = self._literal_end(start)
        operands = [(start, end)]
        if sign is _Sign.BETWEEN:
            operands.append((end + 1, self._literal_end(end + 1) if end and words[end] == "AND" else 0))
            end = operands[1][1]
            if not end or words[end] not in _BEHIND_OPERAND:
                raise ValueError(words[position])
        elif sign is _Sign.IN:
            operands, end = self._row(start)
            kinds = {"'" if words[first][:1] == "'" else words[behind - 1].isdecimal() for first, behind in operands}
            if kinds not in ({"'"}, {True}) or len(operands) > _MEMBERS_MAX:
                return end
        elif self._tokens[start : start + 1] == ["-"]:  # "=-" may be an operator
            return position
        column = self._column(position) if end and words[end] in _BEHIND_OPERAND else ""
        if column:
            self._take(operands, column)
            self._has_ranges |= sign is _Sign.BETWEEN or sign is _Sign.RANGE
        return end

    def _column(self, position: int) -> str:
        """The bare column name before an operator, if nothing stands before it; empty for anything else."""
        words = self.words
        name = first = position - (2 if words[position - 1] == "NOT" else 1)
        while words[first].isidentifier() or words[first][:1] == '"':
            if words[first - 1] != ".":
                return words[name] if words[first - 1] in _BEFORE_OPERAND else ""
            first -= 2
        return ""

    def _row(self, opening: int) -> tuple[list[tuple[int, int]], int]:
        """The places of the literals in parentheses, NULL, TRUE and FALSE among them, and the position behind them.

        None, and 0, if there is anything else.
        """
        words, end = self.words, opening
        items: list[tuple[int, int]] = []
        while words[end] == ("," if items else "("):
            start = end + 1
            end = start + 1 if words[start] in _CONSTANTS else self._literal_end(start)
            items.append((start, end))
        return (items, end + 1) if items and words[end] == ")" else ([], 0)

    def _literal_end(self, start: int) -> int:
        """The position behind the literal that begins somewhere; 0 if none does that may be taken."""
        word, behind = self.words[start], self.words[start + 1]
        if word[:1] == "'":
            return start + 1 if len(word) > 1 else 0
        if word == "-":
            return start + 2 if _NUMBER.fullmatch(behind) else 0
        if word in _SPELLED:
            return start + 2 if _SPELLED[word][0].fullmatch(behind) else 0
        return start + 1 if _NUMBER.fullmatch(word) else 0

    def _take(self, places: Sequence[tuple[int, int]], column: str | None) -> None:
        """Take the literals at some places; equal ones that a column is compared with are one value.

        Raises:
            ValueError: A day or a time that does not exist.
        """
        words, tokens = self.words, self._tokens
        for start, end in places:
            word = words[start]
            if word[:1] == "'":
                value: Any = tokens[start].lstrip()[1:-1].replace("''", "'")
            elif word in _SPELLED:
                value = _SPELLED[word][1](words[start + 1][1:-1])
            else:
                digits = "".join(words[start:end])
                value = float(digits) if "E" in digits else Decimal(digits) if "." in digits else int(digits)
            count = len(self.values)
            number = self._numbers.setdefault((count if column is None else column, type(value), repr(value)), count)
            if number == count:
                self.values.append(value)
            self._places.append((start, number))
            tokens[start + 1 : end] = [""] * (end - start - 1)


def shared_call(session: Session, sql: str, started_s: float) -> StatementCall[Prepared] | None:
    """The call of a text without parameters, as that of the text without literals; None where it has its own plan.

    ``started_s`` is ``time.perf_counter()`` when the user called.

    Raises:
        OperationalError: The controller does not answer.
    """
    # What is compared with the user's own text needs that text.
    taken = None if session.pruning is Pruning.VERIFY else take_literals(sql)
    if taken is None:
        return None
    text, values, _ = taken
    key = session.key_of(text)
    standing = session.standings.get(key, values)
    if standing is None:
        session.standings.put(key, values, sql, ())
    if standing is None or standing is False:
        return None
    try:
        call = structs.replace(planned(session, text, values), started_s=started_s)
    except OperationalError:
        raise
    except DatabaseError:  # the user's own text shows what is wrong, and where
        session.standings.put(key, values, False, ())
        return None
    if standing is not True:
        standing = _stands(session, standing, cacheable(call.statement))
        session.standings.put(key, values, sql if standing is None else standing, ())
    return call if standing else None


def _stands(session: Session, first: str, shared: Cached | None) -> bool | None:
    """Whether a text without literals stands for others, by the plan of the first of them; None if that is gone."""
    if shared is None or isinstance(shared, InsertRows):
        return shared is not None  # values that are not exactly of their columns' types are evaluated as a text is
    written, taken = session.statements.get(session.key_of(first), []), take_literals(first)
    if written is None or taken is None:
        return None
    match written, shared:
        case SelectStatement(), SelectStatement():
            return _agree(session, written, shared, taken)
        case ChangeStatement(), ChangeStatement():
            return _agree(session, written.select, shared.select, taken)
        case CoordinatedChange(returning=returned), CoordinatedChange(returning=returns):
            same = (returned and returned.columns) == (returns and returns.columns)
            return same and _agree(session, written.select, shared.select, taken)
        case _:
            return False


def _agree(session: Session, written: SelectStatement, shared: SelectStatement, taken: TakenText) -> bool:
    """Whether nothing tells the queries apart.

    Where estimates choose between plans, a bound of a range decides about them, and any other literal does not.
    """
    if (
        shared.typed
        or (taken.has_ranges and (written.is_estimated or shared.is_estimated))
        or written.columns != shared.columns
        or (written.steps is None) != (shared.steps is None)
        or len(written.scans) != len(shared.scans)
    ):
        return False
    started = time.time()
    try:
        own, given = values_of(written, [], started), values_of(shared, taken.values, started)
        return session.when_known(
            lambda: all(
                list(partitions_of(scan, own)) == list(partitions_of(other, given))
                for scan, other in zip(written.scans, shared.scans, strict=True)
            )
        )
    except DatabaseError:
        return False
