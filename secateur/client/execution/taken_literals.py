"""Literals taken out of a text as parameters, so that texts which differ only in them have one plan.

A scan of the tokens takes only what certainly means the same as a parameter:

- in a WHERE, a literal with which a bare column name is compared (``a = 5``, ``a BETWEEN 1 AND 2``, ``a IN (1, 2)``),
  where the comparison stands alone between AND, OR, NOT and parentheses;
- the new value in ``UPDATE t SET a = 5``;
- the values of an INSERT of one row that has nothing but literals.

Everything else stays in the text, because it may decide about the plan or about names of columns: select lists with
all that is in them, ON, HAVING, GROUP BY, ORDER BY, LIMIT, patterns, arguments of functions, intervals, TRUE, FALSE and
NULL. A text with comments, escapes, dollar quotes, parameters, a second statement or a BETWEEN that is not plain is
left as it stands. What is taken out is judged once more for each text that is left
(:mod:`~secateur.client.execution.shared_plans`).

A value has the type that DuckDB gives the literal: INTEGER or BIGINT, DECIMAL by its digits, DOUBLE with an exponent,
DATE, TIMESTAMP; and DuckDB takes a parameter of text for a string literal. ``0.5`` stays in the text: the decimal that
Python makes of it has a digit less than the literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple

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
_SPELLED: Final[Mapping[str, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    "DATE": (re.compile(r"'[0-9]{4}-[0-9]{2}-[0-9]{2}'"), date.fromisoformat),
    "TIMESTAMP": (
        re.compile(r"'[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?'"),
        datetime.fromisoformat,
    ),
}


class TakenText(NamedTuple):
    """A text without its literals.

    Attributes:
        text: The text, with ``?`` for each of them.
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
    """Those of a query in parentheses are taken. The head of a statement is one as well."""
    ASSIGNMENTS = "SET"
    """New values are taken, and nothing in parentheses."""
    OTHER = "SELECT"
    """Nothing is taken, nor in parentheses."""
    INSIDE_OTHER = ""
    """In parentheses there, whatever clause begins."""


class _Sign(Enum):
    """A token at which there is something to do."""

    COMPARISON = "="
    RANGE = "<"
    BETWEEN = "BETWEEN"
    IN = "IN"
    OPENING = "("
    CLOSING = ")"
    END = ";"
    DOUBT = "?"


_SIGNS: Final[Mapping[str, _Sign | _Clause]] = {
    **dict.fromkeys(("=", "<>", "!="), _Sign.COMPARISON),
    **dict.fromkeys(("<", "<=", ">", ">="), _Sign.RANGE),
    **{sign.value: sign for sign in (_Sign.BETWEEN, _Sign.IN, _Sign.OPENING, _Sign.CLOSING, _Sign.END)},
    **dict.fromkeys(("'", '"', "--", "/*", "\\", "$", "?"), _Sign.DOUBT),
    "WHERE": _Clause.CONDITION,
    **dict.fromkeys(("FROM", "USING", "ON"), _Clause.SOURCES),
    "SET": _Clause.ASSIGNMENTS,
    **dict.fromkeys(("SELECT", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "QUALIFY", "WINDOW"), _Clause.OTHER),
    **dict.fromkeys(("UNION", "EXCEPT", "INTERSECT", "RETURNING", "VALUES", "PIVOT", "UNPIVOT"), _Clause.OTHER),
}
_BEFORE_OPERAND: Final = frozenset({"WHERE", "AND", "OR", "NOT", "("})
_BEHIND_OPERAND: Final = frozenset(
    {"", ")", ";", "AND", "OR", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "QUALIFY", "WINDOW", "UNION", "EXCEPT"}
    | {"INTERSECT", "RETURNING"}
)
_BEHIND_ASSIGNED: Final = frozenset({"", ",", ";", "FROM", "WHERE", "RETURNING"})
_STATEMENTS: Final = frozenset({"SELECT", "WITH", "FROM", "(", "UPDATE", "DELETE"})
_CONSTANTS: Final = frozenset({"NULL", "TRUE", "FALSE"})
_INSIDE: Final = {
    _Clause.CONDITION: _Clause.CONDITION,
    _Clause.SOURCES: _Clause.SOURCES,
    _Clause.ASSIGNMENTS: _Clause.INSIDE_OTHER,
    _Clause.OTHER: _Clause.INSIDE_OTHER,
    _Clause.INSIDE_OTHER: _Clause.INSIDE_OTHER,
}


class _DoubtError(Exception):
    """The text is left as it stands."""


def take_literals(sql: str) -> TakenText | None:
    """Take the literals out of a statement; None for one that has none to take, or about which there is any doubt.

    Cost: some 20 microseconds for a text of 200 characters.
    """
    if len(sql) > _CHARS_MAX:
        return None
    tokens = _TOKEN.findall(sql)
    scan = _Scan(tokens)
    first = scan.words[0]
    try:
        if first == "INSERT":
            scan.take_cells()
        elif first in _STATEMENTS:
            scan.take_operands(is_update=first == "UPDATE")
    except (_DoubtError, ValueError):  # a day that the calendar does not have
        return None
    return TakenText("".join(tokens), scan.values, scan.has_ranges) if scan.values else None


class _Scan:
    """The scan of one text.

    Args:
        tokens: Those of the text; a literal that is taken becomes ``?`` there.

    Attributes:
        words: The tokens in capital letters, without spaces, and some empty ones behind them.
        values: The literals that were taken.
        has_ranges: As in :class:`TakenText`.
    """

    def __init__(self, tokens: list[str]) -> None:
        self.words = [token.lstrip().upper() for token in tokens]
        self.words += ("", "", "")
        self.values: list[Any] = []
        self.has_ranges = False
        self._tokens = tokens

    def take_cells(self) -> None:
        """Take the literals of an INSERT of one row that has nothing else."""
        words = self.words
        if "VALUES" not in words:
            return
        position = words.index("VALUES") + 1
        if words[position] != "(" or any(_SIGNS.get(word) is _Sign.DOUBT for word in words[:position]):
            return
        cells: list[tuple[int, int]] = []
        while words[position] != ")":
            position += 1  # behind the parenthesis or the comma
            end = self._literal_end(position)
            if end:
                cells.append((position, end))
            elif words[position] in _CONSTANTS:
                end = position + 1
            else:
                return
            position = end
            if words[position] not in (",", ")"):
                return
        if words[position + 1] in ("", ";") and not words[position + 2]:
            self._take(cells)

    def take_operands(self, *, is_update: bool) -> None:
        """Take the literals of conditions, and of the assignments of an UPDATE.

        Raises:
            _DoubtError: The text has something that the scan does not know for certain.
        """
        words = self.words
        outer: list[_Clause] = []
        clause = _Clause.SOURCES
        ready = 0  # what lies before it has been read
        for position, word in enumerate(words):
            sign = _SIGNS.get(word)
            if sign is None or position < ready:
                continue
            if isinstance(sign, _Clause):
                if clause is _Clause.INSIDE_OTHER or (word == "FROM" and words[position - 1] == "DISTINCT"):
                    continue
                clause = _Clause.OTHER if sign is _Clause.ASSIGNMENTS and not is_update else sign
            elif sign is _Sign.OPENING:
                outer.append(clause)
                clause = _INSIDE[clause]
            elif sign is _Sign.CLOSING:
                if not outer:
                    raise _DoubtError
                clause = outer.pop()
            elif sign is _Sign.DOUBT or (sign is _Sign.END and words[position + 1]):
                raise _DoubtError
            elif sign is _Sign.BETWEEN:
                ready = self._between(position, is_taken=clause is _Clause.CONDITION)
            elif clause is _Clause.CONDITION:
                if sign is _Sign.IN:
                    ready = self._members(position)
                elif sign is not _Sign.END:
                    self._side(position, is_range=sign is _Sign.RANGE)
            elif clause is _Clause.ASSIGNMENTS and word == "=" and words[position - 2] in ("SET", ","):
                end = self._literal_end(position + 1)
                if end and words[end] in _BEHIND_ASSIGNED:
                    self._take([(position + 1, end)])

    def _side(self, position: int, *, is_range: bool) -> None:
        """Take the right side of a comparison with a column."""
        operand = position + 1
        end = self._literal_end(operand)
        # "=-" may be an operator.
        if end and self._tokens[operand] != "-" and self._is_condition(position, end):
            self._take([(operand, end)])
            self.has_ranges |= is_range

    def _between(self, position: int, *, is_taken: bool) -> int:
        """Take both bounds; returns the position behind them.

        Raises:
            _DoubtError: The bounds are no literals, so that it is not known which AND is its own.
        """
        words = self.words
        middle = self._literal_end(position + 1)
        end = self._literal_end(middle + 1) if middle and words[middle] == "AND" else 0
        if not end or words[end] not in _BEHIND_OPERAND:
            raise _DoubtError
        if is_taken and self._is_condition(position, end):
            self._take([(position + 1, middle), (middle + 1, end)])
            self.has_ranges = True
        return end

    def _members(self, position: int) -> int:
        """Take the literals of a list of integers or of one of strings; returns the position behind what was read."""
        words = self.words
        members: list[tuple[int, int]] = []
        end = position + 1
        if words[end] != "(":
            return position
        while words[end] != ")":
            start = end + 1
            end = self._literal_end(start)
            if not end or words[end] not in (",", ")"):
                return position
            members.append((start, end))
        kinds = {"'" if words[start][:1] == "'" else words[stop - 1].isdecimal() for start, stop in members}
        if kinds in ({"'"}, {True}) and len(members) <= _MEMBERS_MAX and self._is_condition(position, end + 1):
            self._take(members)
        return end + 1

    def _is_condition(self, position: int, end: int) -> bool:
        """Whether an operator is of a bare column name, and its comparison, with this end, stands alone."""
        words = self.words
        if words[end] not in _BEHIND_OPERAND:
            return False
        name = position - (2 if words[position - 1] == "NOT" else 1)
        while words[name].isidentifier() or words[name][:1] == '"':
            if words[name - 1] != ".":
                return words[name - 1] in _BEFORE_OPERAND
            name -= 2
        return False

    def _literal_end(self, start: int) -> int:
        """The position behind the literal that begins somewhere; 0 if none does that may be taken."""
        word, behind = self.words[start], self.words[start + 1]
        if word[:1] == "'":
            return start + 1
        if word == "-":
            return start + 2 if _NUMBER.fullmatch(behind) else 0
        if word in _SPELLED:
            return start + 2 if _SPELLED[word][0].fullmatch(behind) else 0
        return start + 1 if _NUMBER.fullmatch(word) else 0

    def _take(self, places: Sequence[tuple[int, int]]) -> None:
        """Take the literals at some places.

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
                number = "".join(words[start:end])
                value = float(number) if "E" in number else Decimal(number) if "." in number else int(number)
            self.values.append(value)
            tokens[start] = " ?"  # apart, because "=?" may be an operator
            tokens[start + 1 : end] = [""] * (end - start - 1)
