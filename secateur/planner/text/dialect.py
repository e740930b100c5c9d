"""DuckDB's dialect for sqlglot, with exact token positions and hexadecimal strings.

sqlglot parses SELECT statements into trees. Statements of secateur's own (CREATE TABLE with PARTITION BY and the like)
are parsed from the tokens by our own parsers, see :mod:`secateur.planner.text.token_cursor`.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import sqlglot.parser
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.duckdb import DuckDBParser

from secateur.engine.kernels.duckdb.cancellation import check_cancelled
from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import DatabaseError, NotSupportedError, SqlSyntaxError
from secateur.partitioning.tables.identifier import folded
from secateur.planner.aggregates import NODES
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.positions import located, syntax_error

# sqlglot warns where it falls back to another parse of a statement; users get our own
# errors instead.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

if not str(sqlglot.parser.__file__).endswith(".py"):
    # mypyc's classes have no interpreted subclasses: without this every query would end in a TypeError.
    raise NotSupportedError(
        "sqlglotc, the compiled form of sqlglot, is installed, and its parser cannot be extended: pip uninstall"
        " sqlglotc"
    )


_QUANTIFIERS: Final = {"ALL": exp.All, "SOME": exp.Any}


class Secateur(DuckDB):
    """DuckDB's dialect, read whole: no keyword makes the tokenizer swallow the rest of the text."""

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """``->`` and ``->>`` keep their right operand unchanged."""
        return path

    class Tokenizer(DuckDB.Tokenizer):
        """Without commands, with ``X'..'``; ``?`` is a parameter also in front of an operator, as in ``?::DATE``."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            text: kind for text, kind in DuckDB.Tokenizer.KEYWORDS.items() if not text.startswith("?")
        }
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]

    class Parser(DuckDBParser):
        """Keeps function calls as written, except the aggregates that have a node in ``planner/aggregates.py``.

        sqlglot renames many functions and completes the arguments of some.
        """

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            aggregate.name.upper(): DuckDBParser.FUNCTIONS[aggregate.name.upper()] for aggregate in NODES.values()
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: DuckDBParser.FUNCTION_PARSERS[name]
            for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
        }

        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            """``ARRAY[1, 2]`` is a list; behind ``ARRAY(...)`` or a column ``t.list``, brackets take elements."""
            match this:
                case exp.Column(args={"this": exp.Identifier(args={"quoted": False})}) if this.sql().upper() == "ARRAY":
                    return super()._parse_bracket()
                case _:
                    return super()._parse_bracket(this)

        def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
            """``x IN [1, 2]`` searches a list, in which NULL counts as another value."""
            if self._curr and self._curr.token_type is TokenType.L_BRACKET:
                return exp.In(this=this, field=self._parse_bracket())
            return super()._parse_in(this, alias)

        def _build_predicate(
            self, klass: type[exp.Binary], this: exp.Expr | None, expression: exp.Expr | None, *args: Any, **named: Any
        ) -> exp.Expr:
            """``x = ANY (SELECT ...)`` is ``x IN (SELECT ...)``, ``x <> ALL (...)`` is NOT IN, as DuckDB reads it.

            In front of a list, or a set operation in parentheses, sqlglot takes ALL and SOME for names of functions.
            """
            match expression:
                case exp.Anonymous(this=str() as name, expressions=[content]) if name.upper() in _QUANTIFIERS:
                    expression = _QUANTIFIERS[name.upper()](
                        this=content if isinstance(content, exp.Query) else exp.Paren(this=content)
                    )
            query = expression.this if isinstance(expression, (exp.Any, exp.All)) else None
            kinds = (exp.EQ, exp.Any) if isinstance(expression, exp.Any) else (exp.NEQ, exp.All)
            if not isinstance(query, exp.Query) or (klass, type(expression)) != kinds:
                return super()._build_predicate(klass, this, expression, *args, **named)
            # IN binds closer than a comparison.
            operand = exp.Paren(this=this) if isinstance(this, (exp.Predicate, exp.Not)) else this
            found = exp.In(this=operand, query=query if isinstance(query, exp.Subquery) else exp.Subquery(this=query))
            return found if klass is exp.EQ else exp.Paren(this=exp.Not(this=found))

        # Every nesting passes one of these two.
        _parse_unary = on_segmented_stack(DuckDBParser._parse_unary)
        _parse_select = on_segmented_stack(DuckDBParser._parse_select)

        def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
            """``INTERVAL '3 days'`` stays one string instead of becoming a number and a unit."""
            interval = super()._parse_interval_span(this, parse_function_unit)
            split = isinstance(this, exp.Literal) and this.is_string and interval.this.name != this.name
            return exp.Interval(this=this) if split else interval

        def _parse_wrapped_select(self, table: bool = False) -> exp.Expr | None:
            """In FROM, parentheses are around a query or a join. DuckDB 2.0.1 no longer has them around one table."""
            item = super()._parse_wrapped_select(table)
            if table and _is_one_item(item) and self._curr and self._curr.token_type is TokenType.R_PAREN:
                message = "parentheses in FROM are around a query or a join: leave out those around one table"
                raise syntax_error(message, self.sql, self._curr.start)
            return item

        def _parse_table(self, *args: Any, **named: Any) -> exp.Expr | None:
            """``FROM (VALUES ...) v JOIN t ... SELECT``: what the first item is joined with is read there too."""
            table = super()._parse_table(*args, **named)
            if named.get("joins") and isinstance(table, (exp.Values, exp.Unnest, exp.Lateral)):
                for join in self._parse_joins():
                    table.append("joins", join)
            return table

        def _values_to_select(self, values: exp.Values) -> exp.Expr:  # type: ignore[override]
            """Keep ``WITH v AS (VALUES ...)`` unchanged."""
            return super()._values_to_select(values) if any(map(values.args.get, exp.QUERY_MODIFIERS)) else values


_DIALECT: Final = Secateur()

# Texts in which a ``$`` has no meaning: strings, quoted names, comments, dollar-quoted strings; or the ``$`` of a
# parameter.
_DOLLARS: Final = re.compile(
    r"""
    (?<!\w)[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | (?P<comment>/\*)
    | \$(?P<tag>[^\W\d]\w*|)\$.*?\$(?P=tag)\$
    | (?P<parameter>\$(?=\w))
    """,
    re.DOTALL | re.VERBOSE,
)


_BEFORE_QUERIES: Final = frozenset({"(", ")", "UNION", "INTERSECT", "EXCEPT", "ALL", "DISTINCT", "NAME"})
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text; ``line`` and ``col`` are the position of their first character, counted from 1.

    Raises:
        SqlSyntaxError: A string, quoted name or comment does not end.
    """
    check_cancelled()
    try:
        tokens = _DIALECT.tokenize(_without_dollars(sql) if "$" in sql else sql)
    except TokenError:
        start, what = _unterminated(sql)
        raise syntax_error(f"{what} is not closed", sql, start) from None
    placed = []
    line, line_start, counted = 1, 0, 0
    for index, token in enumerate(tokens):
        # sqlglot's own positions are those of the last character, and are wrong after a ``$``.
        newlines = sql.count("\n", counted, token.start)
        if newlines:
            line, line_start = line + newlines, sql.rfind("\n", counted, token.start) + 1
        counted = token.start
        type_, text = (
            (TokenType.PARAMETER, "$")
            if token.token_type is TokenType.PLACEHOLDER and sql[token.start] == "$"
            else (token.token_type, token.text)
        )
        if type_ is TokenType.VALUES and not (
            index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.L_PAREN
        ):
            type_ = TokenType.VAR  # a name: in the dialect rows follow the keyword
        placed.append(Token(type_, text, line=line, col=token.start - line_start + 1, start=token.start, end=token.end))
    return placed


def _without_dollars(sql: str) -> str:
    """Replace the ``$`` of each parameter by ``?`` for sqlglot's tokenizer.

    It would take the ``$1,$`` of ``$1,$2`` for the opening of a string.
    """
    parts: list[str] = []
    copied_to = position = 0
    while (match := _DOLLARS.search(sql, position)) is not None:
        position = match.end()
        if match["comment"]:
            position = _comment_end(sql, position)
        elif match["parameter"]:
            parts += (sql[copied_to : match.start()], "?")
            copied_to = position
    return "".join([*parts, sql[copied_to:]])


def _comment_end(sql: str, position: int) -> int:
    """The end of the comment that contains ``position``; comments may be nested."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(sql, position)
        if edge is None:
            return len(sql)
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
    return position


def parse_query(sql: str, tokens: Sequence[Token]) -> exp.Expr:
    """Read the tokens of one query (SELECT, FROM, WITH, VALUES, set operations) into a tree.

    Args:
        sql: The user's whole text; the tokens may be a part of its tokens.
        tokens: Those of exactly one statement.

    Raises:
        SqlSyntaxError: They are none; the position is that in ``sql``.
        NotSupportedError: They are one that is not read here.
    """
    for number, token in enumerate(tokens[:-1]):
        if token.token_type is TokenType.TABLE and _begins_query(tokens, number):
            raise located(
                NotSupportedError,
                "TABLE with a name as a query is not supported: write FROM with the name",
                sql,
                token.start,
                len(token.text),
            )
    try:
        trees = _DIALECT.parser().parse(list(tokens), sql)
    except ParseError as error:
        raise _parse_failure(error, sql, tokens) from None
    tree = trees[0] if trees else None
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise syntax_error("expected a query", sql, tokens[0].start if tokens else 0)
    _hold_joins_in_selects(tree)
    return tree


def _begins_query(tokens: Sequence[Token], number: int) -> bool:
    """Whether a word stands where a query begins, and a name behind it."""
    behind = tokens[number + 1]
    is_name = behind.token_type is TokenType.IDENTIFIER or behind.text[:1].isalpha() or behind.text[:1] == "_"
    return is_name and (number == 0 or tokens[number - 1].text.upper() in _BEFORE_QUERIES)


def _hold_joins_in_selects(tree: exp.Expr) -> None:
    """Give ``FROM a JOIN b SELECT ...`` the tree of ``SELECT ... FROM a JOIN b``.

    sqlglot attaches its joins to ``a``, where no other code expects them.
    """
    for from_ in tree.find_all(exp.From):
        select, first = from_.parent, from_.this
        if isinstance(select, exp.Select) and isinstance(first, exp.Expr) and (joins := first.args.get("joins")):
            first.set("joins", None)
            rest = {key: select.args.pop(key) for key in list(select.args)[list(select.args).index("from_") + 1 :]}
            select.set("joins", [*joins, *(rest.pop("joins", None) or [])])
            select.args.update(rest)  # behind the joins, as they are written: scans are numbered in this order


def _is_one_item(item: exp.Expr | None) -> bool:
    """Whether a part of FROM is a table, a function, or a query with a name: nothing joined or pivoted."""
    inside = item
    while isinstance(inside, exp.Subquery) and not (inside.args.get("joins") or inside.args.get("pivots")):
        inside = inside.this
    if item is None or inside is None or inside.args.get("joins") or inside.args.get("pivots"):
        return False
    if folded(item.name) in ("desc", "show"):
        return False  # SHOW TABLES is a query, which sqlglot reads as a table with an alias
    return bool(item.args.get("alias")) or isinstance(item, (exp.Table, exp.Unnest, exp.Lateral))


def _parse_failure(error: ParseError, sql: str, tokens: Sequence[Token]) -> SqlSyntaxError | NotSupportedError:
    """Return the error for a text that sqlglot does not parse.

    The text is wrong or, if DuckDB parses it, not supported.
    """
    first = error.errors[0] if error.errors else {}
    line, column, found = first.get("line"), first.get("col"), first.get("highlight") or ""
    reason = str(first.get("description") or error).split(" for <class")[0].rstrip(".")
    if line is None or column is None:
        offset, found = len(sql.rstrip()), ""
    else:
        starts = [0]
        for text in sql.split("\n"):
            starts.append(starts[-1] + len(text) + 1)
        offset = starts[line - 1] + column - 1
    with contextlib.suppress(DatabaseError):
        default_kernel().parse(sql[tokens[0].start : tokens[-1].end + 1])
        what = repr(found) if found else "the end of the statement"
        return located(
            NotSupportedError,
            f"the syntax at {what} is not supported: write the statement in another form",
            sql,
            offset,
            len(found),
        )
    # sqlglot names the missing part by its own classes; the token where it stopped is more helpful.
    if not found and (line is None or column is None):
        return syntax_error(reason, sql, offset)
    expected = (
        f"{reason.lower()} at {found!r}"
        if reason.startswith("Expecting")
        else f"unexpected {found!r}"
        if found
        else reason
    )
    return syntax_error(f"the statement does not parse: {expected}", sql, offset, len(found))


def _unterminated(sql: str) -> tuple[int, str]:
    """The offset at which the string, name or comment begins that never ends."""
    closers = {
        "'": ("'", "the string"),
        '"': ('"', "the quoted name"),
        "/*": ("*/", "the comment"),
        "$$": ("$$", "the string"),
    }
    position = 0
    while position < len(sql):
        if sql.startswith("--", position):
            position = sql.find("\n", position)
            if position < 0:
                break
        opener = next((text for text in closers if sql.startswith(text, position)), None)
        if opener is None:
            position += 1
            continue
        closer, what = closers[opener]
        end = sql.find(closer, position + len(opener))
        if end < 0:
            return position, what
        position = end + len(closer)
    return max(len(sql) - 1, 0), "the statement"
