"""The expressions of DDL, DEFAULT and CHECK: what they may not contain, with the position in the statement.

::

    DEFAULT <constant expression> | now() | current_date | uuid() | ...
    [CONSTRAINT name] CHECK (<condition>)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.engine.kernels.fragment import Fragment
from secateur.errors import DataError, Error, NotSupportedError, ProgrammingError, UnknownColumnError
from secateur.partitioning.tables.table import CheckDef, Column
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind
from secateur.partitioning.types.default_value import FUNCTIONS, DefaultValue
from secateur.partitioning.types.literals import literal_sql
from secateur.partitioning.types.sql_text import CLOCKS, folded
from secateur.planner.binding.catalog_view import similar_names
from secateur.planner.binding.evaluation import bounded_functions, evaluate
from secateur.planner.binding.functions import UNNESTING, aggregate_names, refuse_calls_of
from secateur.planner.binding.session_claims import ClaimCall
from secateur.planner.dml.composed import Composer
from secateur.planner.text.parameters import NO_PARAMETERS
from secateur.planner.text.syntax import SyntaxNode, called_without_arguments, nodes_of, parse_query
from secateur.planner.text.token_cursor import TextSpan, TokenCursor, read_expression, read_parenthesized
from secateur.planner.text.tokens import Token, tokenize
from secateur.planner.tree.stability import is_unstable

_E = TypeVar("_E", bound=Error)

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
_INSTEAD_OF_TYPE = (
    "a condition is the same at any time and place: compare with a column that has the value as its DEFAULT"
)


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression that was read.

    Attributes:
        cursor: That of the statement, for positions.
        clause: Where it stands, such as ``DEFAULT``.
        text: The expression.
        span: Its place in the statement.
        node: Its syntax tree.
    """

    cursor: TokenCursor
    clause: str
    text: str
    span: TextSpan
    node: SyntaxNode

    def nodes(self) -> Iterator[SyntaxNode]:
        return nodes_of(self.node)

    def check(self, instead: str) -> None:
        """Refuse what is not of one row, or not the same at any time and place.

        Args:
            instead: What the user can do in place of a call that is refused.

        Raises:
            NotSupportedError: There is a subquery, an aggregate, a window function, or such a call.
        """
        refuse_calls_of(tokenize(self.text), self.text)
        for node in self.nodes():
            match node:
                case {"class": "SUBQUERY"}:
                    raise self.refused("a subquery", "the expression reads no other rows")
                case {"class": "STAR" | "POSITIONAL_REFERENCE"}:
                    raise self.refused("* or #", "the expression names each column")
                case {"class": "WINDOW"}:
                    raise self.refused("a window function", "the expression reads no other rows")
                case {"class": "FUNCTION", "function_name": str(written)}:
                    name, arguments = written.lower(), node.get("arguments", ())
                    if name not in default_kernel().function_names():
                        raise self.refused(f"the function {written}", "DuckDB does not know it")
                    if name in aggregate_names() or name in UNNESTING:
                        raise self.refused(f"{name}()", "the expression reads no other rows")
                    if is_unstable(name, len(arguments)):
                        raise self.refused(f"{name}()", instead)
                    if name not in bounded_functions():
                        what = f"{name}(), whose value may be much larger than its arguments,"
                        raise self.refused(what, "write the value, or another function")
                case _:
                    pass

    def columns_of_condition(self, table: str, columns: Sequence[Column], instead: str) -> tuple[str, ...]:
        """The columns that the expression reads, which has to be a condition on a row.

        Raises:
            UnknownColumnError: It names a column that there is not.
            NotSupportedError: It is not of one row alone, or not deterministic.
            ProgrammingError: It is no condition.
        """
        self.check(instead)
        by_name = {folded(column.name): column.name for column in columns}
        read: set[str] = set()
        for node in self.nodes():
            if node.get("class") != "COLUMN_REF":
                continue
            first, *others = node["column_names"]
            if folded(first) in by_name:
                read.add(by_name[folded(first)])
            elif folded(first) in CLOCKS and not others:
                raise self.refused(folded(first), instead)
            elif folded(first) == folded(table) and others:
                raise self.refused(f"{table}.{others[-1]}", "name the column alone")
            else:
                known = similar_names(first, list(by_name.values()))
                raise self.error(UnknownColumnError, f"table {table} has no column {first!r}; {known}")
        relations = {"one row": {column.name: column.type for column in columns}}
        try:
            ((_, kind),) = default_kernel().describe(f'SELECT {self.text} AS holds FROM "one row"', relations)
        except Error as error:
            message = error.message.partition("\n")[0]
            raise self.error(type(error), f"{self.clause} {self.text}: {message}") from error
        if kind != "BOOLEAN":
            raise self.error(ProgrammingError, f"{self.clause} takes a condition, and the expression is of type {kind}")
        return tuple(column.name for column in columns if column.name in read)

    def refused(self, what: str, instead: str) -> NotSupportedError:
        return self.error(NotSupportedError, f"{what} in {self.clause} is not supported: {instead}")

    def error(self, kind: type[_E], message: str) -> _E:
        return self.cursor.error(kind, message, self.span.start, self.span.end - self.span.start)


def row_expression(cursor: TokenCursor, clause: str, span: TextSpan) -> RowExpression:
    """Parse an expression of a statement.

    Raises:
        SqlSyntaxError: It is none.
    """
    query = Composer(cursor.sql, NO_PARAMETERS).say("SELECT ", span).finish()
    node: Any = query.plan(lambda text, tokens, _: parse_query(text, tokens)).node
    items = node.get("select_list", ())
    if node.get("type") != "SELECT_NODE" or len(items) != 1 or node["from_table"].get("type") != "EMPTY":
        raise cursor.expected(f"one expression behind {clause}")
    return RowExpression(cursor, clause, cursor.sql[span.start : span.end].strip(), span, items[0])


def read_default(cursor: TokenCursor, column: str, type_: SqlType) -> str:
    """Read what follows DEFAULT.

    It is a constant, or one of the functions whose value each row gets when it enters. The value of a constant is
    computed when the table is made, and kept as its literal. It has to be one of the column's type: what a cast would
    round, cut or move is refused.

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
    found = _SAME.get(called_without_arguments(expression.node).lower())
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
            raise expression.refused(f"the column {name!r}", f"it is computed without a row; {_ALLOWED}")
    expression.check(_INSTEAD)
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


@dataclass(frozen=True, slots=True)
class WrittenCheck:
    """A CHECK that was read before all columns of its table are known.

    No row of the table fails the condition, which passes where it is TRUE or NULL, as in SQL. Every member evaluates it
    when rows enter and when a log is read, so it has to be equal for equal rows, at any time and place.

    Attributes:
        name: Its name; None if none is written.
        span: The place of the condition, in its parentheses.
    """

    name: str | None
    span: TextSpan


def read_condition(cursor: TokenCursor) -> TextSpan:
    """The place of the condition in parentheses that comes next.

    Raises:
        SqlSyntaxError: There is no parenthesis.
    """
    if not cursor.at("("):
        raise cursor.expected("'(' and a condition")
    return read_parenthesized(cursor)


def checks_of(
    cursor: TokenCursor, written: Sequence[WrittenCheck], table: str, columns: Sequence[Column]
) -> tuple[CheckDef, ...]:
    """Resolve the CHECKs of a statement against the columns of its table.

    Raises:
        SqlSyntaxError: A condition does not parse.
        UnknownColumnError: It names a column that there is not.
        NotSupportedError: It is not of one row alone, or not deterministic.
        ProgrammingError: It is no condition, or its name is taken.
    """
    found: list[CheckDef] = []
    named = [each.name for each in written if each.name is not None]
    for each in written:
        taken = [check.name for check in found]
        found.append(_check_of(cursor, each, table, columns, taken if each.name is not None else [*taken, *named]))
    return tuple(found)


def _check_of(
    cursor: TokenCursor, written: WrittenCheck, table: str, columns: Sequence[Column], taken: Collection[str]
) -> CheckDef:
    expression = row_expression(cursor, "CHECK", written.span)
    used = expression.columns_of_condition(table, columns, _INSTEAD_OF_TYPE)
    if not used:
        raise expression.error(ProgrammingError, "the condition reads no column")
    name = written.name
    if name is None:
        name = _free_name(f"{table}_{used[0]}_check" if len(used) == 1 else f"{table}_check", taken)
    elif folded(name) in map(folded, taken):
        raise expression.error(ProgrammingError, f"table {table} has two constraints named {name!r}")
    inner = expression.text[1:-1]
    return CheckDef(name, on_one_line(inner, tokenize(inner))[0], used)


def _free_name(name: str, taken: Collection[str]) -> str:
    known = set(map(folded, taken))
    number = 0
    while folded(f"{name}{number or ''}") in known:
        number += 1
    return f"{name}{number or ''}"


def on_one_line(sql: str, tokens: Sequence[Token], claims: Sequence[ClaimCall] = ()) -> list[str]:
    """The text of some tokens without comments and line breaks, cut at its claims, whose names stand between."""
    pieces, end = [""], tokens[0].start if tokens else 0
    left = list(claims)
    for token in tokens:
        if left and token.start >= left[0].end:
            left.pop(0)
        if left and token.start >= left[0].start:
            if token.start == left[0].start:
                pieces[-1] += " " * bool(pieces[-1] and token.start > end)
                pieces += [left[0].claim, ""]
            end = left[0].end
            continue
        pieces[-1] += " " * ((len(pieces) > 1 or bool(pieces[-1])) and token.start > end)
        pieces[-1] += sql[token.start : token.end + 1]
        end = token.end + 1
    return pieces
