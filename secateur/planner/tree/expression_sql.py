"""The text of an expression, for DuckDB to run: what of it is the user's, and what the binder has added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.partitioning.types.sql_text import folded, quoted, text_literal, unquoted
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import NAMES
from secateur.planner.tree.rewriting import cast_of, parts, uncast, within
from secateur.planner.tree.types import LogicalType, StructInfo

COMPARISONS: Final = {**NAMES, "COMPARE_NOTEQUAL": "<>"}
"""The sign of each comparison."""
_HALVES: Final = frozenset({"COMPARE_GREATERTHANOREQUALTO", "COMPARE_LESSTHANOREQUALTO"})
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'|[-+( ]*[0-9.]+(?:e[-+]?[0-9]+)?\)*|\$\w+|true|false|NULL")
_WINDOWS: Final = {"WINDOW_RANK_DENSE": "dense_rank"}
"""The window functions whose names are not in the types of their calls."""
_OPERATIONS: Final = {
    "COMPARE_IN": "({0} IN ({others}))",
    "COMPARE_NOT_IN": "({0} NOT IN ({others}))",
    "OPERATOR_NOT": "(NOT {0})",
    "OPERATOR_IS_NULL": "({0} IS NULL)",
    "OPERATOR_IS_NOT_NULL": "({0} IS NOT NULL)",
    "OPERATOR_COALESCE": "coalesce({all})",
    "OPERATOR_TRY": "TRY({0})",
}
_INFINITE: Final = {"DATE": 2**31 - 1, "TIMESTAMP": 2**63 - 1, "TIMESTAMP WITH TIME ZONE": 2**63 - 1}
"""The number by which DuckDB stores the end of time; the beginning is its negative."""
_CAST: Final = re.compile(rb"::|(?:try_)?cast\b", re.IGNORECASE)
_NAME: Final = r'(?:"(?:[^"]|"")*"|[^\W\d][\w$]*)'
_REFERENCE: Final = re.compile(rf"(?:({_NAME})\s*\.\s*(?:{_NAME}\s*\.\s*)*)?({_NAME})")
_QUOTED: Final = re.compile(rb"'[^']*'|\"[^\"]*\"")
_INNERMOST: Final = re.compile(rb"\([^()]*\)")


def expression_sql(expression: ex.AnyExpression, items: Sequence[str], text: BoundText) -> str:
    """The text of an expression over columns with these texts.

    Raises:
        Unprintable: A part has no text.
    """
    return ExpressionPrinter(text, count(1)).expression(expression, items)


class ExpressionPrinter:
    """Prints the expressions of one text, with numbers for the names that it makes up."""

    def __init__(self, text: BoundText, numbers: Iterator[int]) -> None:
        self._text = text
        self._numbers = numbers

    def orders(self, orders: Sequence[ex.BoundOrder], items: Sequence[str]) -> str:
        return ", ".join(
            f"{self.term(order.expression, items)}{' DESC' if order.type == 'DESCENDING' else ''} {order.null_order}"
            for order in orders
        )

    def term(self, expression: ex.AnyExpression, items: Sequence[str]) -> str:
        """A term of ORDER BY, PARTITION BY or DISTINCT ON, where a bare literal or parameter is no expression."""
        text = self.expression(expression, items)
        return f"CAST({text} AS {expression.return_type.sql})" if _LITERAL.fullmatch(text) else text

    def expression(self, expression: ex.AnyExpression, items: Sequence[str]) -> str:
        """The text of an expression over columns with these texts."""
        text = self._uncast(expression, items)
        return f"CAST({text} AS {expression.return_type.sql})" if self._text.has_cast(expression) else text

    def _uncast(self, expression: ex.AnyExpression, items: Sequence[str]) -> str:
        match expression:
            case ex.InputColumn():
                return items[expression.index]
            case ex.BoundConstant():
                return value_sql(expression.value, expression.value.type)
            case ex.BoundParameter():
                own = f"${expression.identifier}"
                if self._text.is_bare(expression):
                    return own
                word = "TRY_CAST" if self._text.is_tried(expression) else "CAST"
                return f"{word}({own} AS {expression.return_type.sql})"
            case ex.Call(children=[child]) if self._text.is_implicit(expression):
                return self.expression(child, items)
            case ex.Call(
                children=[ex.Call() as row], return_type=LogicalType(id="TUPLE", type_info=StructInfo() as info)
            ) if expression.name == "__cast" and row.name == "row":
                fields = [field.second for field in info.child_types]
                cast = zip(row.children, fields, strict=True)
                return f"row({', '.join(f'CAST({self.expression(one, items)} AS {type_.sql})' for one, type_ in cast)})"
            case ex.Call(children=children) if any(isinstance(child, ex.Lambda) for child in children):
                return self._call(expression, self._with_lambda(children, items))
            case ex.Call():
                return self._call(expression, [self.expression(child, items) for child in expression.children])
            case ex.BoundOperation():
                return self._operation(expression, [self.expression(child, items) for child in expression.children])
            case ex.Conjunction():
                word = " AND " if expression.type == "CONJUNCTION_AND" else " OR "
                return f"({word.join(self.expression(child, items) for child in expression.children)})"
            case ex.Case():
                whens = " ".join(
                    f"WHEN {self.expression(check.when_expr, items)} THEN {self.expression(check.then_expr, items)}"
                    for check in expression.case_checks
                )
                return f"CASE {whens} ELSE {self.expression(expression.else_expr, items)} END"
            case ex.AggregateCall():
                return self._aggregate_call(expression, items)
            case ex.WindowCall():
                return self._window_call(expression, items)
            case ex.Unnest():
                return f"unnest({self.expression(expression.child, items)})"
            case ex.Written():
                return expression.sql.format(*(self.expression(child, items) for child in expression.children))
            case ex.Lambda():
                raise Unprintable("a lambda")
            case ex.UnresolvedColumn():
                raise Unprintable("a column below a table function over rows")

    def _with_lambda(self, children: Sequence[ex.AnyExpression], items: Sequence[str]) -> list[str]:
        """The arguments of a call, one of which is a function.

        That reads its own parameters, the last one first, and then what it takes from around it: the arguments that
        follow it.
        """
        place = next(index for index, child in enumerate(children) if isinstance(child, ex.Lambda))
        function = children[place]
        assert isinstance(function, ex.Lambda)
        names = [f"p{next(self._numbers)}" for _ in range(function.parameter_count)]
        around = [self.expression(child, items) for child in children[place + 1 :]]
        body = self.expression(function.lambda_expr, [*reversed(names), *around])
        return [
            *(self.expression(child, items) for child in children[:place]),
            f"lambda {', '.join(names)}: {body}",
        ]

    def column(self, expression: ex.AnyExpression, items: Sequence[str]) -> str:
        """A column's text: with a cast to the type of other rows, which is not made again where they are elsewhere."""
        match expression:
            case ex.Call(children=[child]) if self._text.is_implicit(expression) and self._text.takes_type(child):
                raise Unprintable("a parameter that is converted to the type of other rows")
            case ex.Call(children=[child]) if self._text.is_implicit(expression):
                return f"CAST({self.expression(child, items)} AS {expression.return_type.sql})"
            case _:
                return self.expression(expression, items)

    def _call(self, call: ex.Call, arguments: list[str]) -> str:
        name = call.name
        if name == "__cast" and call.return_type.id == "TUPLE":
            raise Unprintable("a cast to a row")
        if name == "__cast":
            word = "TRY_CAST" if call.function_data["try_cast"] else "CAST"
            return f"{word}({arguments[0]} AS {call.return_type.sql})"
        if call.type == "COMPARE_BETWEEN":
            if not all(call.function_data.values()):
                raise Unprintable("BETWEEN without its bounds")
            return f"({arguments[0]} BETWEEN {arguments[1]} AND {arguments[2]})"
        if call.type in COMPARISONS:
            return f"({arguments[0]} {COMPARISONS[call.type]} {arguments[1]})"
        named = call.named_arguments
        arguments[len(arguments) - len(named) :] = [
            f"{quoted(field)} := {argument}"
            for field, argument in zip(named, arguments[len(arguments) - len(named) :], strict=True)
        ]
        if not name[0].isalpha() and name[0] != "_":
            return f"({arguments[0]} {name} {arguments[1]})" if len(arguments) == 2 else f"({name} {arguments[0]})"
        return f"{_function(name)}({', '.join(arguments)})"

    def _operation(self, operation: ex.BoundOperation, arguments: list[str]) -> str:
        if operation.type not in _OPERATIONS:
            raise Unprintable(operation.type)
        first, *others = arguments
        return _OPERATIONS[operation.type].format(first, others=", ".join(others), all=", ".join(arguments))

    def _aggregate_call(self, call: ex.AggregateCall, items: Sequence[str]) -> str:
        if call.state_export:
            raise Unprintable("an exported state")
        if call.name == "count_star":
            text = "count(*)"
        else:
            arguments = ", ".join(self.expression(child, items) for child in call.children)
            order = f" ORDER BY {self.orders(call.order_bys.orders, items)}" if call.order_bys else ""
            text = f"{_function(call.name)}({'DISTINCT ' if call.is_distinct else ''}{arguments}{order})"
        return text if call.filter is None else f"{text} FILTER (WHERE {self.expression(call.filter, items)})"

    def _window_call(self, call: ex.WindowCall, items: Sequence[str]) -> str:
        name = call.qname.path[-1] if call.qname else _WINDOWS.get(call.type, call.type.removeprefix("WINDOW_").lower())
        arguments = ", ".join(self.expression(child, items) for child in call.children)
        if name in ("count", "count_star") and not arguments:
            name, arguments = "count", "*"
        distinct = "DISTINCT " if call.distinct else ""
        order = f" ORDER BY {self.orders(call.arg_orders, items)}" if call.arg_orders else ""
        nulls = " IGNORE NULLS" if call.ignore_nulls else ""
        filtered = f" FILTER (WHERE {self.expression(call.filters, items)})" if call.filters is not None else ""
        by = f"PARTITION BY {', '.join(self.term(one, items) for one in call.partitions)} " if call.partitions else ""
        orders = f"ORDER BY {self.orders(call.orders, items)} " if call.orders else ""
        start, unit = self._frame_end(call.start, call.start_expr, items)
        end, other = self._frame_end(call.end, call.end_expr, items)
        unit = unit or other or "RANGE"
        excluded = "" if call.exclude_clause == "NO_OTHER" else f" EXCLUDE {call.exclude_clause.replace('_', ' ')}"
        frame = f"{unit} BETWEEN {start} AND {end}{excluded}"
        if call.type not in ("WINDOW_AGGREGATE", "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE"):
            frame = "" if frame == "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" else frame
        return f"{_function(name)}({distinct}{arguments}{order}{nulls}){filtered} OVER ({by}{orders}{frame})"

    def _frame_end(self, bound: str, value: ex.AnyExpression | None, items: Sequence[str]) -> tuple[str, str]:
        """The text of an end of a frame, and its unit, where it says one."""
        match bound.split("_"):
            case ["UNBOUNDED", side]:
                return f"UNBOUNDED {side}", ""
            case ["CURRENT", "ROW", unit]:
                return "CURRENT ROW", unit
            case ["EXPR", side, unit] if unit != "RANGE":
                assert value is not None
                return f"{self.expression(value, items)} {side}", unit
            case _:
                raise Unprintable(bound)


def _function(name: str) -> str:
    """The name of a function, in quotes where it is a word of the grammar."""
    return quoted(name) if not name.isidentifier() or name in _words() else name


@cache
def _words() -> frozenset[str]:
    answer = default_kernel().run(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'", {}
    )
    return frozenset(answer.column("keyword_name").to_pylist())


def is_of_between(node: ex.AnyExpression) -> bool:
    """Whether a node is a BETWEEN, or one of the two comparisons that DuckDB makes of it, which have no place."""
    if not isinstance(node, ex.Call):
        return False
    return node.type == "COMPARE_BETWEEN" or (node.query_location is None and node.type in _HALVES)


class Unprintable(Exception):  # noqa: N818 - not an error: such a query stays as the user wrote it
    """A node has no text."""


def value_sql(value: ex.BoundValue, type_: LogicalType | None) -> str:
    """The text of a constant of a type, which DuckDB reads as the same value.

    Raises:
        Unprintable: It has no text.
    """
    if type_ is None:
        raise Unprintable("a value without a type")
    if value.is_null:
        return "NULL" if type_.id == "NULL" else f"CAST(NULL AS {type_.sql})"
    content: Any = value.value
    match type_.id:
        case "INTEGER":
            return str(content) if content >= 0 else f"({content})"
        case "BOOLEAN":
            return "true" if content else "false"
        case "VARCHAR":
            return text_literal(content)
        case "DECIMAL":
            return _decimal(content, type_)
        case "DOUBLE":
            text = repr(content)
            return text if "e" in text else f"{text}e0"
        case "HUGEINT" | "UHUGEINT":
            return f"CAST({(content.get('upper', 0) << 64) + content.get('lower', 0)} AS {type_.id})"
        case "BIGINT" | "SMALLINT" | "TINYINT" | "UBIGINT" | "UINTEGER" | "USMALLINT" | "UTINYINT":
            return f"CAST({content} AS {type_.id})"
        case "DATE" | "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" if abs(content) == _INFINITE[type_.id]:
            return f"CAST('{'-' if content < 0 else ''}infinity' AS {type_.id})"
        case "DATE":
            return f"(DATE '1970-01-01' + ({content}))"
        case "TIMESTAMP":
            return f"make_timestamp({content})"
        case "TIMESTAMP WITH TIME ZONE":
            return f"make_timestamptz({content})"
        case "INTERVAL":
            parts = [content.get(unit, 0) for unit in ("months", "days", "micros")]
            return f"(to_months({parts[0]}) + to_days({parts[1]}) + to_microseconds({parts[2]}))"
        case "BLOB":
            return f"CAST({text_literal(content)} AS BLOB)"
        case "LIST" if "children" in content:
            child = type_.type_info.child_type  # type: ignore[union-attr]
            elements = (value_sql(ex.BoundValue(**one), child) for one in content["children"])
            return f"CAST([{', '.join(elements)}] AS {type_.sql})"
        case _:
            raise Unprintable(f"a constant of {type_.sql}")


def _decimal(content: Any, type_: LogicalType) -> str:
    """A decimal by its digits, which are those of an integer of up to 128 bits."""
    scale = type_.type_info.scale  # type: ignore[union-attr]
    if isinstance(content, dict):
        content = (content["upper"] << 64) + content["lower"]
    digits = str(abs(content)).rjust(scale + 1, "0")
    text = f"{'-' if content < 0 else ''}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"
    is_literal = scale and content >= 0 and type_.sql == f"DECIMAL({len(digits)},{scale})"
    return text if is_literal else f"CAST('{text}' AS {type_.sql})"


@dataclass(frozen=True, slots=True)
class BoundText:
    """The text that was bound.

    Attributes:
        text: In UTF-8: DuckDB counts bytes.
        parameters: Where it has the parameters, as offset and length: one that is elsewhere is in a cast of the user's.
        references: Where it names the column that DuckDB casts there, as offset and length. What else may be there has
            a cast of its own: an alias of ``ts::DATE``, or ``date(ts)``.
        between: Where it has the sides of a BETWEEN that get their type from the side that they are not compared with:
            ``k BETWEEN '2.4' AND 2.7`` compares decimals, and ``k >= '2.4'`` integers.
        is_between_open: Whether a side of a BETWEEN is a text that becomes what the other sides are, whose types decide
            then.
    """

    text: bytes = b""
    parameters: frozenset[tuple[int, int]] = frozenset()
    references: frozenset[ex.Place] = frozenset()
    between: frozenset[ex.Place] = frozenset()
    is_between_open: bool = False

    @classmethod
    def of(
        cls, text: str, parameters: frozenset[tuple[int, int]], expressions: Iterable[ex.AnyExpression]
    ) -> BoundText:
        """A text with the references in it."""
        nodes = [node for expression in expressions for node in within(expression)]
        bound = cls(text.encode(), parameters)
        references = (node.place for node in nodes if cast_of(node) is not None and bound._names_column(node))
        bound = replace(bound, references=frozenset(references))
        halves = [parts(node) for node in nodes if is_of_between(node)]
        if not any(bound._is_untyped(side) for half in halves for side in half):
            return bound
        sides = (side for half in halves if bound._is_added(half[0]) for side in half)
        between = (side.place for side in sides if bound._is_added(side) or bound._is_untyped(side))
        return replace(bound, between=frozenset(between), is_between_open=True)

    def written(self, node: ex.AnyExpression) -> bytes:
        """What stands in the place of a node; nothing where it has none."""
        start, length = node.place
        return b"" if start is None or length is None else self.text[start : start + length]

    def is_bare(self, node: ex.AnyExpression) -> bool:
        """Whether a node is a parameter that the user has not cast: its value has a type of its own."""
        return isinstance(node, ex.BoundParameter) and node.place in self.parameters and not self.is_typed(node)

    def is_typed(self, node: ex.AnyExpression) -> bool:
        """Whether a node may get its type from a side of a BETWEEN that it is not compared with."""
        return node.query_location is not None and node.place in self.between

    def is_tried(self, node: ex.AnyExpression) -> bool:
        """Whether the user's text has TRY_CAST in the place of a node."""
        start = node.query_location
        return start is not None and self.text[start : start + 8].upper() == b"TRY_CAST"

    def takes_type(self, node: ex.AnyExpression) -> bool:
        """Whether the type of an expression may be that of a parameter's value."""
        if isinstance(node, ex.Call) and node.name == "__cast" and not self.is_implicit(node):
            return False
        if self.has_cast(node):
            return False
        return self.is_bare(node) or any(self.takes_type(part) for part in parts(node))

    def has_cast(self, node: ex.AnyExpression) -> bool:
        """Whether the user's text casts an expression to the type that it has only with some types of parameters.

        DuckDB leaves out a cast to the type that an expression has, which gets the place of the cast.
        """
        if isinstance(node, ex.Call) and node.name == "__cast":
            return False
        return _is_cast(self.written(node)) and any(self.takes_type(part) for part in parts(node))

    def is_implicit(self, cast: ex.Call) -> bool:
        """Whether DuckDB's binder made a cast, and makes it again when it binds the expression without it."""
        if cast.name != "__cast" or cast.function_data["try_cast"] or cast.query_location is None:
            return False
        if self.is_typed(cast):
            return False
        (child,) = cast.children
        return cast.place in self.references if isinstance(child, ex.InputColumn) else cast.place == child.place

    def _is_added(self, node: ex.AnyExpression) -> bool:
        return isinstance(node, ex.Call) and self.is_implicit(node)

    def _is_untyped(self, node: ex.AnyExpression) -> bool:
        """Whether a node is a text that DuckDB makes of what type is needed: a literal, or a parameter."""
        if isinstance(node, ex.BoundParameter):
            return self.written(node).startswith(b"$")
        inner = uncast(node) if self._is_added(node) else node
        return isinstance(inner, ex.BoundConstant) and inner.return_type.id == "VARCHAR"

    def _names_column(self, cast: ex.AnyExpression) -> bool:
        """Whether in the place of a cast stands the name of the column in it, or the aggregate that it is named after.

        An alias has no precedence over a column of the same name, unless the text says so: ``alias.ts``.
        """
        (child,) = parts(cast)
        if not isinstance(child, ex.InputColumn):
            return False
        written, column = self.written(cast).decode(errors="replace"), folded(child.alias)
        named = _REFERENCE.fullmatch(written)
        if named is None:
            return bool(written) and folded(written) == column
        first, name = (folded(unquoted(part)) for part in named.groups(default=""))
        return name == column and "(" not in name and first != "alias"


def _is_cast(written: bytes) -> bool:
    """Whether a text is a cast, and nothing else: ``CAST(a AS INTEGER) * $1`` begins with one."""
    if _CAST.match(written) is None or written.startswith(b"::"):
        return written.startswith(b"::")
    plain, count = _QUOTED.sub(b"", written), 1
    while count and plain.count(b"(") > 1:
        plain, count = _INNERMOST.subn(b"", plain)
    return plain.endswith(b")") and plain.count(b"(") == 1
