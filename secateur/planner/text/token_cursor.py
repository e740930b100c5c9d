"""A cursor over tokens, for the statements that we parse ourselves, and the spans of the expressions in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from secateur.errors import Error, NotSupportedError, SqlSyntaxError
from secateur.planner.text.positions import located
from secateur.planner.text.tokens import Token, TokenKind

_E = TypeVar("_E", bound=Error)
_T = TypeVar("_T")
_K = TypeVar("_K", bound=Enum)
OPENING: Final = frozenset("([{")
CLOSING: Final = frozenset(")]}")


class TokenCursor:
    """A position in the tokens of one statement.

    Keywords are compared by their upper-case text. Whatever reads from one raises a :class:`SqlSyntaxError`, with its
    position, at the first token that cannot be.
    """

    def __init__(self, sql: str, tokens: Sequence[Token]) -> None:
        self.sql = sql
        self._tokens = tuple(tokens)
        self._position = 0

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._tokens)

    @property
    def offset(self) -> int:
        """The offset in the text of the next token, or behind the last one."""
        if self.at_end:
            return self._tokens[-1].end + 1 if self._tokens else len(self.sql)
        return self._tokens[self._position].start

    @property
    def end(self) -> int:
        """Offset behind the token that was taken last."""
        return self._tokens[self._position - 1].end + 1

    def peek(self, ahead: int = 0) -> Token | None:
        """Return the next token, or the one ``ahead`` tokens after it; None at the end. -1 is the last token taken."""
        position = self._position + ahead
        return self._tokens[position] if position < len(self._tokens) else None

    def take(self) -> Token:
        """The next token, which must exist."""
        token = self.peek()
        if token is None:
            raise self.expected("more")
        self._position += 1
        return token

    def rest(self) -> tuple[Token, ...]:
        """Return all remaining tokens; the cursor does not move."""
        return self._tokens[self._position :]

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or symbols."""
        if len(words) == 1:  # nearly always, and very often in a long list
            return _is(self.peek(), words[0])
        return self.at_ahead(0, *words)

    def at_ahead(self, count: int, *words: str) -> bool:
        """Whether these words or symbols follow the next ``count`` tokens."""
        return all(_is(self.peek(count + ahead), word) for ahead, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Step over these words when they come next."""
        if not self.at(*words):
            return False
        self._position += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over these words, which must come next."""
        for word in words:
            if not self.accept(word):
                raise self.expected(word)

    def name(self, what: str) -> str:
        """Read a name, quoted or not; ``what`` describes the named object in an error."""
        token = self.peek()
        if token is None or not is_name(token):
            raise self.expected(what)
        if not token.text:
            raise self.error(SqlSyntaxError, f"expected {what}, not an empty one", length=2)
        self._position += 1
        return token.text

    def name_in_main(self, what: str) -> str:
        """A name, with or without the schema ``main.`` in front of it.

        Raises:
            NotSupportedError: Another schema.
        """
        if not self.accept("MAIN", "."):
            ahead = self.peek(1)
            if ahead is not None and ahead.text == "." and ahead.word == ".":
                raise self.unsupported(
                    "a schema in front of a table name",
                    "tables and views are in the schema main, which need not be written",
                )
        name = self.name(what)
        if self.at("."):
            raise self.unsupported(
                "a name of more than two parts", "tables and views are in the schema main, which need not be written"
            )
        return name

    def names(self, what: str) -> tuple[str, ...]:
        """``(name, ...)``."""
        return tuple(self.in_parentheses(lambda cursor: cursor.name(what)))

    def listed(self, read: Callable[[TokenCursor], _T]) -> list[_T]:
        """Read one or more items with commas between them."""
        found = [read(self)]
        while self.accept(","):
            found.append(read(self))
        return found

    def in_parentheses(self, read: Callable[[TokenCursor], _T]) -> list[_T]:
        """Read ``(item, ...)``."""
        self.expect("(")
        found = self.listed(read)
        self.expect(")")
        return found

    def natural(self, what: str) -> int:
        """A number without sign, point or exponent."""
        token = self.peek()
        if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
            raise self.expected(what)
        self._position += 1
        return int(token.text)

    def string(self, what: str, *, may_have_dollars: bool = False) -> str:
        """Take a text in single quotes, or also between dollars, as ``$$text$$``, and return what it says."""
        token = self.peek()
        kinds = (TokenKind.STRING, *([TokenKind.DOLLAR_STRING] if may_have_dollars else []))
        if token is None or token.kind not in kinds:
            raise self.expected(what)
        self._position += 1
        return token.text

    def integer(self, what: str) -> int:
        """A whole number, possibly with a minus."""
        return -self.natural(what) if self.accept("-") else self.natural(what)

    def one_of(self, kinds: type[_K], what: str) -> _K:
        """Step over the word that a member of an enumeration is."""
        for kind in kinds:
            if self.accept(kind.value.upper()):
                return kind
        raise self.expected(what)

    def creates(self, *words: str) -> tuple[bool, bool]:
        """Step over CREATE and what is made: whether it replaces one, and whether one that exists is left alone."""
        self.expect("CREATE")
        or_replace = self.accept("OR", "REPLACE")
        self.expect(*words)
        if_not_exists = self.accept("IF", "NOT", "EXISTS")
        if or_replace and if_not_exists:
            raise self.expected("OR REPLACE or IF NOT EXISTS, not both")
        return or_replace, if_not_exists

    def expected(self, what: str) -> SqlSyntaxError:
        """The error that something else was expected here."""
        token = self.peek()
        found = "the end of the statement" if token is None else repr(self.sql[token.start : token.end + 1])
        return self.error(SqlSyntaxError, f"expected {what}, found {found}")

    def word(self) -> str:
        """The text of the next token in capitals; empty at the end."""
        token = self.peek()
        return "" if token is None else token.text.upper()

    def unsupported(self, what: str, instead: str) -> NotSupportedError:
        """Return the error that the next token is not supported."""
        return self.error(NotSupportedError, f"{what} is not supported: {instead}")

    def error(self, kind: type[_E], message: str, offset: int | None = None, length: int = 1, **details: object) -> _E:
        """Return an error with its position in the text: that of the next token, unless an offset is given."""
        if offset is None:
            token, offset = self.peek(), self.offset
            length = 1 if token is None else token.end - token.start + 1
        return located(kind, message, self.sql, offset, length, **details)

    def expect_end(self) -> None:
        """Raise unless all tokens are taken."""
        if not self.at_end:
            raise self.expected("the end of the statement")


def is_name(token: Token) -> bool:
    """Whether a token can name a table or column: a quoted name or a word."""
    return token.kind in (TokenKind.QUOTED, TokenKind.WORD)


def _is(token: Token | None, word: str) -> bool:
    return token is not None and token.word == word


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A part of the user's text: its first offset and the one behind it."""

    start: int
    end: int


def read_expression(cursor: TokenCursor, *ends: str, what: str = "a value") -> TextSpan:
    """Skip an expression and return its span.

    It ends at a word or symbol that cannot continue it.

    Args:
        cursor: At its first token.
        ends: Words and symbols before which it ends (``"ON CONFLICT"`` are two), outside of parentheses, brackets
            and CASE ... END; the end of the statement always ends it.
        what: A description of the expression, for the error when there is none.

    Raises:
        SqlSyntaxError: There is none, or an unmatched closing parenthesis.
    """
    start = end = cursor.offset
    depth, previous = 0, ""
    while not cursor.at_end and (depth or not _ends(cursor, previous, ends)):
        is_word = cursor.at("CASE") or cursor.at("END")
        token = cursor.take()
        if token.word in OPENING or (is_word and token.text.upper() == "CASE"):
            depth += 1
        elif token.word in CLOSING or (is_word and depth):
            if depth == 0:
                raise cursor.error(SqlSyntaxError, f"{token.text!r} closes nothing", token.start)
            depth -= 1
        end, previous = token.end + 1, token.text.upper()
    if depth:
        raise cursor.expected("more")
    if start == end:
        raise cursor.expected(what)
    return TextSpan(start, end)


def read_parenthesized(cursor: TokenCursor) -> TextSpan:
    """Skip a parenthesis, which comes next, and return the span of its content.

    Raises:
        SqlSyntaxError: No parenthesis closes it.
    """
    start, depth = cursor.offset, 0
    while not cursor.at_end:
        token = cursor.take()
        depth += (token.word in OPENING) - (token.word in CLOSING)
        if not depth:
            return TextSpan(start, token.end + 1)
    raise cursor.expected("more")


def _ends(cursor: TokenCursor, previous: str, ends: tuple[str, ...]) -> bool:
    # FROM also occurs inside a value: a IS DISTINCT FROM b.
    return any(cursor.at(*end.split()) for end in ends) and not (previous == "DISTINCT" and cursor.at("FROM"))
