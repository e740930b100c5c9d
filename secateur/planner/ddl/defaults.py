"""DEFAULT of a column: a constant, or one of the functions whose value each row gets when it enters.

::

    DEFAULT <constant expression> | now() | current_date | uuid() | ...

The value of a constant is computed when the table is made, and kept as its literal. It has to be one of the column's
type: what a cast would round, cut or move is refused.
"""

from __future__ import annotations

from typing import Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment
from secateur.errors import DataError, Error, NotSupportedError
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind
from secateur.partitioning.types.default_value import FUNCTIONS, DefaultValue
from secateur.partitioning.types.literals import literal_sql
from secateur.planner.binding.evaluation import evaluate
from secateur.planner.ddl.row_expression import RowExpression, row_expression
from secateur.planner.dml.expressions import read_expression
from secateur.planner.text.token_cursor import TokenCursor

_SAME: Final = {
    **dict.fromkeys(("now", "current_timestamp", "get_current_timestamp", "transaction_timestamp"), "now()"),
    **dict.fromkeys(("current_date", "today"), "current_date()"),
    **dict.fromkeys(("localtimestamp", "current_localtimestamp"), "current_localtimestamp()"),
    **dict.fromkeys(("localtime", "current_localtime"), "current_localtime()"),
    **dict.fromkeys(("uuid", "gen_random_uuid", "uuidv4"), "uuid()"),
    "uuidv7": "uuidv7()",
}
"""The functions that are not constant, by all names that they have."""
_ENDS: Final = (",", ")", "NOT NULL", "NULL", "PRIMARY KEY", "CHECK", "CONSTRAINT", "DEFAULT", "UNIQUE", "REFERENCES")
_ENDS_OF_OTHERS: Final = ("GENERATED", "COLLATE", "COMMENT")
_ALLOWED: Final = "now(), current_date, localtimestamp, localtime, uuid() and uuidv7() may stand in DEFAULT alone"
_INSTEAD: Final = f"{_ALLOWED}; give any other value that is not constant with each row"


def read_default(cursor: TokenCursor, column: str, type_: SqlType) -> str:
    """Read what follows DEFAULT.

    Args:
        cursor: Behind the word DEFAULT. It is left behind the expression, which ends at a comma, a parenthesis, or a
            word that begins another constraint of the column.
        column: The column's name, for messages.
        type_: Its type.

    Returns:
        The text for :attr:`Column.default <secateur.partitioning.tables.table.Column.default>`: the literal of a
        constant, or the call of a function as DuckDB names it.

    Raises:
        SqlSyntaxError: There is no expression.
        NotSupportedError: It names a column, or contains a subquery, an aggregate, or a function that is not constant
            and not one of those few.
        DataError: Its value is not exactly one of the type, or cannot be computed.
    """
    start = cursor.offset
    if cursor.accept("NULL"):
        return "NULL"
    expression = row_expression(cursor, "DEFAULT", read_expression(cursor, *_ENDS, *_ENDS_OF_OTHERS))
    found = _SAME.get(expression.call_name())
    if found is not None:
        if type_.kind not in FUNCTIONS[found]:
            kinds = " or ".join(sorted(kind.value for kind in FUNCTIONS[found]))
            raise cursor.error(
                DataError,
                f"column {column!r}: {found} is a value for a column of type {kinds}, and this one is {type_}",
                start,
                len(expression.text),
                type=str(type_),
            )
        return found
    for node in expression.nodes():
        if node.get("class") == "COLUMN_REF":
            name = ".".join(node["column_names"])
            raise expression.refused(cursor, f"the column {name!r}", f"it is computed without a row; {_ALLOWED}")
    expression.check(cursor, _INSTEAD)
    try:
        return _constant(expression, column, type_)
    except Error as error:
        message = error.message.partition("\n")[0]
        kind = type(error) if isinstance(error, NotSupportedError) else DataError
        where = f"column {column!r}: DEFAULT {expression.text}"
        raise cursor.error(kind, f"{where}: {message}", start, len(expression.text), type=str(type_)) from error


def _constant(expression: RowExpression, column: str, type_: SqlType) -> str:
    text = expression.text
    ((_, own),) = default_kernel().describe(f"SELECT ({text}) AS value", {})
    cast = f"CAST(({text}) AS {type_})"
    if type_.is_float and own.startswith("DECIMAL"):
        exact = "true"  # a number means the nearest one
    elif own != "VARCHAR":
        exact = f"CAST({cast} AS {own}) IS NOT DISTINCT FROM ({text})"
    elif type_.kind is TypeKind.DATE:
        exact = f"CAST({cast} AS TIMESTAMP) = CAST(({text}) AS TIMESTAMP)"
    else:
        exact = "true"
    query = f"SELECT {cast} AS value, {exact} AS exact, ({text}) AS given"
    fragment = Fragment(query, (), (("value", str(type_)), ("exact", "BOOLEAN"), ("given", own)))
    rows = evaluate(fragment, {}, ends_soon=True)
    if rows is None:
        raise DataError("the value takes too much time or memory: write it as a literal")
    try:
        ((value, is_exact, given),) = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    except (OverflowError, ValueError) as error:
        raise NotSupportedError("a moment outside of the years 1 to 9999: give it with each row") from error
    if own == "VARCHAR" and (type_.is_integer or type_.kind is TypeKind.DECIMAL):
        value = given  # its cast would round
    if is_exact is False:
        raise DataError(f"the value is not exactly one of {type_}: write one that is, or CAST it")
    made = literal_sql(coerce(value, type_, column=column), type_)
    again = DefaultValue.of(made, type_)
    if type_.kind in NESTED and literal_sql(again.constant, type_) != made:
        raise NotSupportedError("the value cannot be kept: give it with each row")
    return made
