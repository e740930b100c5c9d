"""The expressions of DDL, DEFAULT and CHECK: what they may not contain, with the position in the statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import NotSupportedError
from secateur.planner.binding.evaluation import bounded_functions
from secateur.planner.binding.functions import UNNESTING, aggregate_names, refuse_calls_of
from secateur.planner.dml.composed import Composer
from secateur.planner.dml.expressions import TextSpan
from secateur.planner.text.parameters import NO_PARAMETERS
from secateur.planner.text.syntax import SyntaxNode, nodes_of, parse_query
from secateur.planner.text.token_cursor import TokenCursor
from secateur.planner.text.tokens import tokenize
from secateur.planner.tree.stability import is_unstable


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression that was read.

    Attributes:
        clause: ``DEFAULT`` or ``CHECK``.
        text: The expression.
        span: Its place in the statement.
        node: Its syntax tree.
    """

    clause: str
    text: str
    span: TextSpan
    node: SyntaxNode

    def nodes(self) -> Iterator[SyntaxNode]:
        return nodes_of(self.node)

    def call_name(self) -> str:
        """The function that the whole expression calls without arguments, in lower case; empty for anything else."""
        match self.node:
            case {"class": "COLUMN_REF", "column_names": [str(name)]}:
                return name.lower()
            case {"class": "FUNCTION", "function_name": str(name)} if "arguments" not in self.node:
                return name.lower()
            case _:
                return ""

    def check(self, cursor: TokenCursor, instead: str) -> None:
        """Refuse what is not of one row, or not the same at any time and place.

        Args:
            cursor: That of the statement, for positions.
            instead: What the user can do in place of a call that is refused.

        Raises:
            NotSupportedError: There is a subquery, an aggregate, a window function, or such a call.
        """
        refuse_calls_of(tokenize(self.text), self.text)
        for node in self.nodes():
            match node:
                case {"class": "SUBQUERY"}:
                    raise self.refused(cursor, "a subquery", "the expression reads no other rows")
                case {"class": "STAR" | "POSITIONAL_REFERENCE"}:
                    raise self.refused(cursor, "* or #", "the expression names each column")
                case {"class": "WINDOW"}:
                    raise self.refused(cursor, "a window function", "the expression reads no other rows")
                case {"class": "FUNCTION", "function_name": str(written)}:
                    name, arguments = written.lower(), node.get("arguments", ())
                    if name not in default_kernel().function_names():
                        raise self.refused(cursor, f"the function {written}", "DuckDB does not know it")
                    if name in aggregate_names() or name in UNNESTING:
                        raise self.refused(cursor, f"{name}()", "the expression reads no other rows")
                    if is_unstable(name, len(arguments)):
                        raise self.refused(cursor, f"{name}()", instead)
                    if name not in bounded_functions():
                        what = f"{name}(), whose value may be much larger than its arguments,"
                        raise self.refused(cursor, what, "write the value, or another function")
                case _:
                    pass

    def refused(self, cursor: TokenCursor, what: str, instead: str) -> NotSupportedError:
        return cursor.error(
            NotSupportedError,
            f"{what} in {self.clause} is not supported: {instead}",
            self.span.start,
            self.span.end - self.span.start,
        )


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
    return RowExpression(clause, cursor.sql[span.start : span.end].strip(), span, items[0])
