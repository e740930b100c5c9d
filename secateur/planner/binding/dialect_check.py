"""The last word on statements that we read ourselves: DuckDB's parser has to accept their text too.

Parsers of our own read statements that change rows, and those that make and drop what is in the dialect. A word that
such a parser takes for something harmless, as ``UPDATE t ONLY SET ...`` for an alias, would be carried out without what
the user meant by it. So every such text that has been read is shown to DuckDB's parser, and what it refuses is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token

from secateur.engine.kernels.duckdb.error_position import syntax_error_position
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import DatabaseError
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.text.positions import located

__all__ = ["check_dialect"]

_ONE_ROW = "VALUES (0)"


def check_dialect(sql: str, tokens: Sequence[Token], rows: TextSpan | None = None) -> None:
    """Refuse a statement whose text DuckDB's parser refuses.

    Args:
        sql: The user's whole text.
        tokens: Those of the statement.
        rows: A VALUES clause in it, which is not looked at: it is parsed where it is evaluated, and may be long.

    Raises:
        SqlSyntaxError, NotSupportedError: It does; with the position.

    Cost: some 50 microseconds.
    """
    start, end = tokens[0].start, tokens[-1].end + 1
    text = sql[start:end] if rows is None else sql[start : rows.start] + _ONE_ROW + sql[rows.end : end]
    try:
        default_kernel().parse(text)
    except DatabaseError as error:
        error_position = syntax_error_position(text)
        if error_position is None:
            raise
        offset = start + error_position.offset
        if rows is not None and offset > rows.start:
            offset += rows.end - rows.start - len(_ONE_ROW)
        message = f"the statement does not parse: {error_position.message.strip()}"
        raise located(type(error), message, sql, offset, error_position.length, **error.details) from None
