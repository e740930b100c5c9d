"""``TABLE t`` as a query, rewritten as ``FROM t``."""

from __future__ import annotations

from typing import Final

from secateur.planner.dml.composed import Composer
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.text.token_cursor import TokenCursor

_BEHIND: Final = (("ORDER", "BY"), ("LIMIT",), ("OFFSET",))


def say_table(cursor: TokenCursor, composer: Composer) -> None:
    """Write ``TABLE t`` as a query.

    Args:
        cursor: At the word TABLE of a statement that ends with its tokens.
        composer: Gets the query.

    Raises:
        SqlSyntaxError: There is no name, or something behind it that DuckDB does not take there.
    """
    cursor.take()
    start = cursor.offset
    cursor.name("the name of a table")
    while cursor.accept("."):
        cursor.name("the name of a table")
    if not (cursor.at_end or any(cursor.at(*words) for words in _BEHIND)):
        raise cursor.expected("ORDER BY, LIMIT or the end of the query")
    last = cursor.rest()[-1] if not cursor.at_end else cursor.peek(-1)
    assert last is not None
    composer.say("FROM ", TextSpan(start, last.end + 1))
