"""The parameters of a statement: ``?``, ``$1`` or ``$name``, converted to one form, and their types for the binder.

A statement uses one style. Inside plans every parameter is ``$1`` to ``$n`` in the order of first appearance (or its
own number), and values are a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from typing import Any, Final

from secateur.drawing.quantity import count_text
from secateur.errors import NotSupportedError, ParameterError
from secateur.planner.text.positions import located, syntax_error
from secateur.planner.text.tokens import Token, TokenKind

_NUMBER_MAX: Final = 65_535
_NO_LISTS: Final[Mapping[int, list[Any]]] = {}
_SPECIMEN_ELEMENTS: Final = 2


class ParameterStyle(Enum):
    """The way in which a statement writes its parameters. The value is an example."""

    NONE = "none"
    QMARK = "?"
    NUMBERED = "$1"
    NAMED = "$name"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one statement.

    Attributes:
        style: How they are written.
        count: How many values the statement takes.
        names: In order of index when named, else empty.
        spans: The place of each reference in the text: first offset, end offset, index counted from 0.
        lists: Values of hidden parameters, which follow those of the user
            (:mod:`~secateur.planner.text.hoisted_lists`).
        claims: The claims that it reads, and the values that whoever executes it has of them: hidden parameters behind
            the lists (:mod:`~secateur.planner.binding.session_claims`).
        claims_at: The index of the first of these.
        foreign: The text to write instead of a placeholder of other databases' drivers, such as ``%s``; empty where
            there is none.
        clock: The index of the hidden parameter that is the time at which the statement starts; None if it has none.
    """

    style: ParameterStyle
    count: int
    names: tuple[str, ...]
    spans: tuple[tuple[int, int, int], ...]
    lists: tuple[list[Any], ...] = ()
    foreign: str = ""
    clock: int | None = None
    claims: tuple[tuple[str, str], ...] = ()
    claims_at: int = 0

    @property
    def hidden(self) -> tuple[Any, ...]:
        """The values of the hidden parameters but the time."""
        return (*self.lists, *(value for _, value in self.claims))

    @property
    def claim_places(self) -> Mapping[str, int]:
        """The index of each claim."""
        return {claim: place for place, (claim, _) in enumerate(self.claims, self.claims_at)}

    @property
    def total(self) -> int:
        """The number of values that the plan takes, hidden ones included."""
        claims = self.claims_at + len(self.claims) if self.claims else 0
        return max(self.count + len(self.lists), claims, 0 if self.clock is None else self.clock + 1)

    def with_claims(self, claims: Mapping[str, str]) -> Parameters:
        """The parameters of a statement that reads these claims, which have these values."""
        return replace(self, claims=tuple(claims.items()), claims_at=self.count + len(self.lists))

    def with_hidden_of(self, whole: Parameters) -> Parameters:
        """The parameters of a text that is made of a statement: with the claims and the time of the statement."""
        return replace(self, clock=whole.clock, claims=whole.claims, claims_at=whole.claims_at)

    def with_clock(self) -> Parameters:
        """The parameters of a statement that reads the clock: the last one is the time at which it starts."""
        return replace(self, clock=self.total)

    def arrange(self, params: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...]:
        """The values in order of index, hidden ones included.

        Raises:
            ParameterError: Too few or too many values, names that are missing or unknown, or a mapping where a sequence
                belongs and the other way round.
        """
        if self.style is ParameterStyle.NAMED:
            if not isinstance(params, Mapping):
                raise ParameterError(
                    f"the statement has named parameters ({self._names_text()}): pass a mapping of names to values"
                )
            missing = [name for name in self.names if name not in params]
            unknown = [name for name in params if name not in self.names]
            if missing:
                raise ParameterError(
                    f"no value for parameter{'s' if len(missing) > 1 else ''}"
                    f" {', '.join('$' + name for name in missing)}"
                )
            if unknown:
                raise ParameterError(
                    f"the statement has no parameter {', '.join('$' + str(name) for name in unknown)}; it has"
                    f" {self._names_text()}"
                )
            return (*(params[name] for name in self.names), *self.hidden)
        if isinstance(params, Mapping):
            if not params and not self.count:
                return self.hidden
            if not self.count:
                raise ParameterError(f"the statement has no parameters, {len(params)} given{self._foreign_text()}")
            raise ParameterError(
                f"the statement has no named parameters but {self.count} positional: pass a sequence of values"
            )
        if isinstance(params, (str, bytes)):
            raise ParameterError(f"parameters are a sequence of values, not {type(params).__name__}: pass [value]")
        if len(params) != self.count:
            raise ParameterError(
                f"the statement has {count_text(self.count, 'parameter')}, {len(params)} given{self._foreign_text()}"
            )
        return (*params, *self.hidden)

    def refuse_gaps(self, sql: str) -> None:
        """Refuse ``$2`` without ``$1``.

        Raises:
            ParameterError: A number below the highest is missing.
        """
        missing = sorted(set(range(self.count)) - {index for _, _, index in self.spans})
        if missing:
            start, end, highest = max((span for span in self.spans if span[2] < self.count), key=lambda span: span[2])
            listed = ", ".join(f"${index + 1}" for index in missing)
            raise located(
                ParameterError,
                f"the statement has ${highest + 1} but not {listed}: number parameters without gaps",
                sql,
                start,
                end - start,
            )

    def _foreign_text(self) -> str:
        return f": write {self.foreign}; secateur's paramstyle is qmark" if self.foreign else ""

    def _names_text(self) -> str:
        return ", ".join("$" + name for name in self.names)


NO_PARAMETERS: Final = Parameters(ParameterStyle.NONE, 0, (), ())
"""Those of a text that has none, or has them as ``$1``."""


def read_parameters(
    sql: str, tokens: Sequence[Token], hidden: Mapping[int, list[Any]] = _NO_LISTS
) -> tuple[list[Token], Parameters]:
    """Find the parameters and write each as ``$`` and its number.

    Args:
        sql: The user's whole text, for positions.
        tokens: The tokens of the statement.
        hidden: By offset in the text the lists for which a ``?`` stands that is not the user's.

    Returns:
        The tokens with every parameter in the numbered form, and the parameters.

    Raises:
        ParameterError: Two styles are mixed, or a number is out of range.
        SqlSyntaxError: A ``$`` without number or name.
        NotSupportedError: An ``@``.
    """
    found: list[Token] = []
    spans: list[tuple[int, int, int]] = []
    places: list[int] = []
    names: dict[str, int] = {}
    style = ParameterStyle.NONE
    highest = 0
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token.text == "@" and token.word:
            raise located(
                NotSupportedError,
                "the operator @ is not supported: write abs(...), or ? or $name for a parameter",
                sql,
                token.start,
            )
        if token.kind is not TokenKind.PARAMETER:
            found.append(token)
            continue
        if token.start in hidden:
            places.append(len(found))
            found.append(token)
            continue
        behind = tokens[position] if position < len(tokens) and tokens[position].start == token.end + 1 else None
        end = token.end
        if behind is not None and behind.kind is TokenKind.NUMBER and behind.text.isdecimal():
            this_style, index, end = ParameterStyle.NUMBERED, int(behind.text) - 1, behind.end
            position += 1
            if not 0 <= index < _NUMBER_MAX:
                raise located(
                    ParameterError,
                    f"parameters are numbered $1 to ${_NUMBER_MAX}",
                    sql,
                    token.start,
                    end - token.start + 1,
                )
        elif token.text == "?":
            this_style, index = ParameterStyle.QMARK, highest
        elif behind is not None and behind.text.isidentifier():
            this_style, index, end = ParameterStyle.NAMED, names.setdefault(behind.text, len(names)), behind.end
            position += 1
        else:
            raise syntax_error(f"{token.text!r} is not a parameter: write ?, $1 or $name", sql, token.start)
        if style not in (ParameterStyle.NONE, this_style):
            message = f"the statement mixes {style.value} with {this_style.value} parameters: use one style"
            raise located(ParameterError, message, sql, token.start, end - token.start + 1)
        style = this_style
        highest = max(highest, index + 1)
        spans.append((token.start, end + 1, index))
        found.extend(_numbered(token, index, end))
    for index in reversed(range(len(places))):
        token = found[places[index]]
        spans.append((token.start, token.end + 1, highest + index))
        found[places[index] : places[index] + 1] = _numbered(token, highest + index, token.end)
    foreign = _foreign_style(tokens) if style is ParameterStyle.NONE else ""
    return found, Parameters(style, highest, tuple(names), tuple(spans), tuple(hidden.values()), foreign)


def _foreign_style(tokens: Sequence[Token]) -> str:
    """Return what to write instead of the first ``%s``, ``%(name)s``, ``:name`` or ``:1``.

    All of them can have other meanings, so this is for messages only.
    """
    for before, sign, behind, last in zip(tokens, tokens[1:], tokens[2:], (*tokens[3:], None), strict=False):
        if behind.start != sign.end + 1 or before.word == "[":
            continue
        if sign.word == "%" and behind.text == "s":
            return "? or $1, not %s"
        if sign.word == "%" and behind.word == "(" and last is not None:
            return f"${last.text}, not %({last.text})s"
        if sign.word == ":" and (behind.text.isidentifier() or behind.text.isdecimal()):
            return f"${behind.text}, not :{behind.text}"
    return ""


def _numbered(token: Token, index: int, end: int) -> tuple[Token, Token]:
    """A parameter in the numbered form."""
    return (
        Token(TokenKind.PARAMETER, "$", token.start, token.start),
        Token(TokenKind.NUMBER, str(index + 1), token.start, end),
    )


def sample_value(value: Any) -> Any:
    """Return a value of the same type for DuckDB's binder, which would take a list apart element by element."""
    if type(value) is list and len(value) > _SPECIMEN_ELEMENTS:
        kinds = set(map(type, value))
        if kinds in ({str}, {date}):
            return value[:1]
        if kinds == {int}:
            return [min(value), max(value)]
    return value


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value of a SQL type that is not known yet."""

    type: str


@dataclass(frozen=True, slots=True)
class TypeUses:
    """The parameters of a text whose types may decide about the types of its columns, and those whose types do not.

    Attributes:
        needed: The indexes of the parameters whose types may decide about the types of its columns, or of its parts.
        unneeded: Those of the parameters of which no type decides about anything: wherever one stands, it is compared
            with something, or cast, before anything is made of it.
    """

    needed: frozenset[int] = frozenset()
    unneeded: frozenset[int] = frozenset()

    def __or__(self, other: TypeUses) -> TypeUses:
        needed = self.needed | other.needed
        return TypeUses(needed, (self.unneeded | other.unneeded) - needed)

    def typed(self, count: int) -> tuple[int, ...]:
        """The indexes of the parameters, of so many, on whose types a plan of the texts depends.

        A parameter that stands in none of the texts is among them: its type was looked at when the texts were made.
        """
        return tuple(index for index in range(count) if index not in self.unneeded)


NO_USES: Final = TypeUses()
"""The uses in a text that nobody has read: its plans depend on the types of all parameters."""
