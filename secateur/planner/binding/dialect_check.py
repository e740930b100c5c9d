"""A final check of statements that we parse ourselves: DuckDB's parser has to accept their text too.

Our own parsers read statements that change rows, and DDL that is in the dialect. If such a parser took a word for
something harmless, as in ``UPDATE t ONLY SET ...`` for an alias, the statement would be executed without the user's
intention. Every such text is therefore also given to DuckDB's parser, and is refused if that refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from secateur.engine.kernels.duckdb.errors import syntax_error_position
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import DatabaseError
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.text.positions import located
from secateur.planner.text.tokens import Token

_ONE_ROW = "VALUES (0)"


def check_dialect(sql: str, tokens: Sequence[Token], rows: TextSpan | None = None) -> None:
    """Refuse a statement whose text DuckDB's parser refuses.

    Args:
        sql: The user's whole text.
        tokens: Those of the statement.
        rows: A VALUES clause in it, which is skipped: it is parsed where it is evaluated, and may be long.

    Raises:
        SqlSyntaxError, NotSupportedError: DuckDB refuses it; with the position.

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
