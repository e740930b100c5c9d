"""The tokens of a text, as DuckDB's parser cuts it, and its statements.

Statements of secateur's own (CREATE TABLE with PARTITION BY and the like) are read from them
(:mod:`secateur.planner.text.token_cursor`). Parameters, clauses and lists are found among them, in whatever statement.
DuckDB's own ``tokenize`` tells neither where a token ends nor what a string says.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from secateur.engine.kernels.duckdb.cancellation import check_cancelled
from secateur.errors import SqlSyntaxError
from secateur.planner.text.positions import syntax_error


class TokenKind(Enum):
    """The kinds of tokens."""

    WORD = auto()
    """A name or keyword without quotation marks."""
    QUOTED = auto()
    """A name in double quotation marks; its text is the name."""
    STRING = auto()
    """``'text'``; its text is what it says."""
    DOLLAR_STRING = auto()
    """``$$text$$`` or ``$tag$text$tag$``; its text is what it says."""
    ESCAPED_STRING = auto()
    """``E'text'``; its text is what stands between the quotation marks."""
    HEX_STRING = auto()
    """``X'ab'``; its text is the digits."""
    NUMBER = auto()
    PARAMETER = auto()
    """``?``, or the ``$`` of ``$1`` and ``$name``."""
    SYMBOL = auto()
    """An operator or a mark."""


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: Its kind.
        text: Its text, of a string or quoted name without quotation marks.
        start: The offset of its first character.
        end: The offset of its last character.
    """

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A word or symbol in capitals; empty for names in quotation marks, strings and numbers."""
        return self.text.upper() if self.kind is TokenKind.WORD or self.kind is TokenKind.SYMBOL else ""


_SPACES: Final = r"\s\u200b\ufeff"
_NO_LETTERS: Final = rf"\x00-\x23\x25-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f{_SPACES}"
"""What is no part of a name; digits and ``$`` are, but do not begin one. Beyond ASCII, spaces are none."""
_TOKEN: Final = re.compile(
    rf"""
    (?P<SPACE>[{_SPACES}]+ | --[^\n\r]*)
    | (?P<COMMENT>/\*)
    | [eE]'(?P<ESCAPED_STRING>(?:[^'\\]|''|\\.)*)(?P<escaped_end>'?)
    | [xX]'(?P<HEX_STRING>[^']*)(?P<hex_end>'?)
    | (?P<WORD>[^$0-9{_NO_LETTERS}][^{_NO_LETTERS}]*)
    | (?P<NUMBER>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)
    | '(?P<STRING>(?:[^']|'')*)(?P<string_end>'?)
    | "(?P<QUOTED>(?:[^"]|"")*)(?P<quoted_end>"?)
    | \$(?P<tag>(?:[^$0-9{_NO_LETTERS}][^${_NO_LETTERS}]*)?)\$(?P<DOLLAR_STRING>)
    | (?P<PARAMETER>[?$])
    | (?P<SYMBOL>->>|\^@|<=>|::|:=|=>|->|<=|>=|<>|!=|==|\|\||\*\*|//|<<|>>|&&|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_KINDS: Final = {
    **{kind.name: (kind, kind.name) for kind in TokenKind},
    "string_end": (TokenKind.STRING, "STRING"),
    "escaped_end": (TokenKind.ESCAPED_STRING, "ESCAPED_STRING"),
    "hex_end": (TokenKind.HEX_STRING, "HEX_STRING"),
    "quoted_end": (TokenKind.QUOTED, "QUOTED"),
}
"""The kind of a token by the last group of its match, and the group of its text."""


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text, without comments.

    Raises:
        SqlSyntaxError: A string, quoted name or comment does not end.

    Cost: a microsecond for each token.
    """
    check_cancelled()
    tokens: list[Token] = []
    position, length = 0, len(sql)
    match = _TOKEN.match
    while position < length:
        found = match(sql, position)
        assert found is not None  # the last alternative takes any character
        start, position = found.span()
        group = found.lastgroup
        if group == "SPACE":
            continue
        if group == "COMMENT":
            position = _comment_end(sql, start, position)
            continue
        assert group is not None
        kind, name = _KINDS[group]
        text = found[name]
        if name != group:  # which ends the text
            if not found[group]:
                what = "the quoted name" if kind is TokenKind.QUOTED else "the string"
                raise syntax_error(f"{what} is not closed", sql, start)
            if kind is not TokenKind.ESCAPED_STRING:
                text = text.replace(found[group] * 2, found[group])
        elif kind is TokenKind.DOLLAR_STRING:
            fence = f"${found['tag']}$"
            stop = sql.find(fence, position)
            if stop < 0:
                raise syntax_error("the string is not closed", sql, start)
            text, position = sql[position:stop], stop + len(fence)
        tokens.append(Token(kind, text, start, position - 1))
    return tokens


def _comment_end(sql: str, start: int, position: int) -> int:
    """The end of a comment; comments may be nested.

    Raises:
        SqlSyntaxError: It does not end.
    """
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(sql, position)
        if edge is None:
            raise syntax_error("the comment is not closed", sql, start)
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
    return position


def split_statements(text: str) -> list[tuple[str, int, int]]:
    """Return the statements of a text without their semicolons; empty ones are left out.

    A semicolon in a string, a quoted name or a comment ends nothing.

    Returns:
        Of each its text, which may begin with comments, the offset of that, and that of its first word.

    Raises:
        SqlSyntaxError: A string, quoted name or comment does not end.
    """
    found: list[tuple[str, int, int]] = []
    start, first = 0, -1

    def end(stop: int) -> None:
        if first >= 0:
            written = text[start:stop]
            found.append((written.strip(), start + len(written) - len(written.lstrip()), first))

    for token in tokenize(text):
        if token.word == ";":
            end(token.start)
            start, first = token.end + 1, -1
        elif first < 0:
            first = token.start
    end(len(text))
    return found


def is_finished(text: str) -> bool:
    """Whether a text ends with the semicolon of its last statement, so that nobody has to write on."""
    try:
        tokens = tokenize(text)
    except SqlSyntaxError:
        return False  # a string is still open
    return bool(tokens) and tokens[-1].word == ";"
