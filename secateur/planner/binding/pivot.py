"""PIVOT and UNPIVOT statements, rewritten as queries.

::

    PIVOT source ON column IN (values), ... [USING aggregate, ...] [GROUP BY columns] [ORDER BY ...] [LIMIT ...]
    SELECT * FROM source PIVOT (aggregate, ... FOR column IN (values) ... GROUP BY columns) [ORDER BY ...] [LIMIT ...]

    UNPIVOT source ON columns [INTO NAME name VALUE value, ...] [ORDER BY ...] [LIMIT ...]
    SELECT * FROM source UNPIVOT ((value, ...) FOR name IN (columns)) [ORDER BY ...] [LIMIT ...]
"""

from __future__ import annotations

from typing import Final

from secateur.errors import NotSupportedError
from secateur.planner.dml.composed import Composer
from secateur.planner.dml.expressions import TextSpan, read_expression
from secateur.planner.text.token_cursor import TokenCursor

_BEHIND: Final = ("ORDER BY", "LIMIT", "OFFSET")


def say_pivot(cursor: TokenCursor, composer: Composer) -> None:
    """Write a PIVOT statement as a query.

    Args:
        cursor: At the word PIVOT of a statement that ends with its tokens.
        composer: Gets the query.

    Raises:
        SqlSyntaxError: At the first invalid token.
        NotSupportedError: The pivoted column has no values, or is an expression.
    """
    cursor.take()
    source = read_expression(cursor, "ON", what="a table or a query in parentheses")
    cursor.expect("ON")
    columns = cursor.listed(_column)
    aggregates: TextSpan | str = "count(*)"
    if cursor.accept("USING"):
        aggregates = read_expression(cursor, "GROUP BY", *_BEHIND, what="an aggregate")
    composer.say("SELECT * FROM ", source, " PIVOT (", aggregates, " FOR")
    for column in columns:
        composer.say(" ", column)
    if cursor.at("GROUP", "BY"):
        composer.say(" ", read_expression(cursor, *_BEHIND))
    _finish(composer, cursor)


def say_unpivot(cursor: TokenCursor, composer: Composer) -> None:
    """Write an UNPIVOT statement as a query.

    Args:
        cursor: At the word UNPIVOT of a statement that ends with its tokens.
        composer: Gets the query.

    Raises:
        SqlSyntaxError: At the first token that cannot be.
    """
    cursor.take()
    source = read_expression(cursor, "ON", what="a table or a query in parentheses")
    cursor.expect("ON")
    columns = read_expression(cursor, "INTO", *_BEHIND, what="columns")
    name: TextSpan | str = "name"
    values: TextSpan | str = "value"
    if cursor.accept("INTO"):
        cursor.expect("NAME")
        name = read_expression(cursor, "VALUE", what="the name of a column")
        cursor.expect("VALUE")
        values = read_expression(cursor, *_BEHIND, what="the name of a column")
    several = isinstance(values, TextSpan) and "," in cursor.sql[values.start : values.end]
    shown: tuple[str | TextSpan, ...] = ("(", values, ")") if several else (values,)
    composer.say("SELECT * FROM ", source, " UNPIVOT (", *shown, " FOR ", name, " IN (", columns, ")")
    _finish(composer, cursor)


def _column(cursor: TokenCursor) -> TextSpan:
    """A column with the values that become columns."""
    start = cursor.offset
    is_plain = cursor.at_ahead(1, "IN") or (cursor.at_ahead(1, ".") and cursor.at_ahead(3, "IN"))
    span = read_expression(cursor, ",", "USING", "GROUP BY", *_BEHIND, what="a column")
    if not is_plain:
        message = "PIVOT without the values of a column is not supported: write ON column IN (values)"
        raise cursor.error(NotSupportedError, message, start, span.end - start)
    return span


def _finish(composer: Composer, cursor: TokenCursor) -> None:
    composer.say(")")
    if not cursor.at_end:
        start = cursor.offset
        composer.say(" ", TextSpan(start, cursor.rest()[-1].end + 1))
