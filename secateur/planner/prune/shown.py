"""Texts of expressions for the user: in the words of SQL, without most of what DuckDB adds when it binds them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from secateur.partitioning.pruning.operand import Constant
from secateur.partitioning.pruning.tree import value_text
from secateur.planner.prune.bounds import fields_of
from secateur.planner.prune.quick import INTERVAL_PARTS, quick_of, raw_parameter
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import CONTAINS, nullif_of
from secateur.planner.tree.expression_sql import COMPARISONS, Unprintable, value_sql
from secateur.planner.tree.rewriting import cast_of, inputs_of
from secateur.planner.tree.types import ListInfo, LogicalType, is_exact, sql_type

UNNAMED: Final = "..."
"""What stands for a column that has no name here."""
_SHOWN_MAX: Final = 60
_WORDS: Final = {
    "~~": "LIKE",
    "!~~": "NOT LIKE",
    "~~*": "ILIKE",
    "!~~*": "NOT ILIKE",
    "~~~": "GLOB",
}
"""Operators that are written as words."""
_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _ATOM = range(7)
"""How closely operators bind their operands, the closest last."""
_PRODUCTS: Final = frozenset({"*", "/", "//", "%", "**"})
_EPOCH: Final = datetime(1970, 1, 1)
_TESTS: Final = {
    "OPERATOR_IS_NULL": "IS NULL",
    "OPERATOR_IS_NOT_NULL": "IS NOT NULL",
    "COMPARE_IN": "IN",
    "COMPARE_NOT_IN": "NOT IN",
}


def operand_text(node: ex.AnyExpression) -> str:
    """The text of an expression without columns."""
    return condition_text(node, ())


def shown(node: ex.AnyExpression, names: Sequence[str]) -> str:
    """The text of an expression over columns of these names, not too long for a message."""
    text = condition_text(node, names)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."


def condition_text(node: ex.AnyExpression, names: Sequence[str], *, inside: int = _OR) -> str:
    """The text of an expression over columns of these names, whole.

    Args:
        node: The expression.
        names: The names of the columns; one behind them has none.
        inside: How closely the text around it binds; the expression is in parentheses if it binds less.
    """
    text, level = _text(node, names)
    return text if level >= inside else f"({text})"


def conjunction_text(nodes: Sequence[ex.AnyExpression], names: Sequence[str]) -> str:
    """The text of the AND of conditions over columns of these names; empty where there are none."""
    return " AND ".join(condition_text(node, names, inside=_AND) for node in nodes)


def _text(node: ex.AnyExpression, names: Sequence[str]) -> tuple[str, int]:
    """A text, and how closely it binds."""

    def part(one: ex.AnyExpression, inside: int = _OR) -> str:
        return condition_text(one, names, inside=inside)

    read = inputs_of([node])
    if read and min(read) >= len(names) and node.return_type != ex.BOOLEAN:
        return UNNAMED, _ATOM
    fields = fields_of(node)
    if fields is not None:
        return f"({', '.join(map(part, fields))})", _ATOM
    match node:
        case ex.InputColumn(index=index):
            return (names[index] if index < len(names) else UNNAMED), _ATOM
        case ex.BoundParameter(identifier=identifier):
            return f"${identifier}", _ATOM
        case ex.BoundConstant():
            return _constant_text(node.value, node.return_type), _ATOM
        case ex.Conjunction(type="CONJUNCTION_AND", children=children):
            return " AND ".join(part(one, _AND) for one in children), _AND
        case ex.Conjunction(children=children):
            return " OR ".join(part(one, _AND) for one in children), _OR
        case ex.BoundOperation(type="OPERATOR_NOT", children=(inner,)):
            return f"NOT {part(inner, _NOT)}", _NOT
        case ex.BoundOperation(type=type_, children=(tested, *listed)) if type_ in _TESTS:
            values = f" ({', '.join(map(part, listed))})" if listed else ""
            return f"{part(tested, _SUM)} {_TESTS[type_]}{values}", _COMPARED
        case ex.BoundOperation(type=type_, children=children):
            return f"{type_.removeprefix('OPERATOR_').lower()}({', '.join(map(part, children))})", _ATOM
        case ex.Case():
            if (pair := nullif_of(node)) is not None:
                return f"nullif({', '.join(map(part, pair))})", _ATOM
            whens = " ".join(f"WHEN {part(one.when_expr)} THEN {part(one.then_expr)}" for one in node.case_checks)
            return f"CASE {whens} ELSE {part(node.else_expr)} END", _ATOM
        case ex.Written():
            return node.sql.format(*(part(one, _ATOM) for one in node.children)), _ATOM
        case ex.Call():
            return _call_text(node, names)
        case ex.Lambda():
            return "lambda", _ATOM
        case _:
            return "an expression", _ATOM


def _call_text(call: ex.Call, names: Sequence[str]) -> tuple[str, int]:
    def part(one: ex.AnyExpression, inside: int = _OR) -> str:
        return condition_text(one, names, inside=inside)

    children, name = call.children, call.name
    found = cast_of(call)
    if found is not None:
        if _is_unseen(found[0], call):
            return _text(found[0], names)
        return f"{'TRY_CAST' if found[1] else 'CAST'}({part(found[0])} AS {call.return_type.sql})", _ATOM
    if call.type == "COMPARE_BETWEEN":
        value, low, high = (part(one, _SUM) for one in children)
        return f"{value} >= {low} AND {value} <= {high}", _AND  # as most releases of DuckDB bind it
    if call.type in COMPARISONS or name in _WORDS:
        left, right = (part(one, _SUM) for one in children)
        return f"{left} {COMPARISONS.get(call.type) or _WORDS[name]} {right}", _COMPARED
    if name in CONTAINS and len(children) == 2 and children[0].return_type.id == "LIST":
        return f"{part(children[1], _SUM)} IN {part(children[0], _ATOM)}", _COMPARED
    if name == "list_value":
        return f"[{', '.join(map(part, children))}]", _ATOM
    if not name[0].isalpha() and name[0] != "_":
        level = _PRODUCT if name in _PRODUCTS else _SUM
        if len(children) == 1:
            return f"{name}{part(children[0], _ATOM)}", _PRODUCT
        return f"{part(children[0], level)} {name} {part(children[1], level + 1)}", level
    return f"{name}({', '.join(map(part, children))})", _ATOM


def _constant_text(value: ex.BoundValue, type_: LogicalType) -> str:
    if value.is_null:
        return "NULL"
    known = quick_of(ex.BoundConstant(type="VALUE_CONSTANT", value=ex.BoundValue(type=type_, value=value.value)))
    if isinstance(known, Constant):
        return str(known.value) if isinstance(known.value, Decimal) else value_text(known.value)
    match type_.id, value.value:
        case "TIMESTAMP", int(micros) if abs(micros) < 2**62:
            return _moment_text(micros)
        case "TIMESTAMP WITH TIME ZONE", int(micros) if abs(micros) < 2**62:
            return f"{_moment_text(micros)[:-1]}+00'"
        case "INTERVAL", dict(parts):
            texts = [f"{n} {INTERVAL_PARTS[part]}{'' if n == 1 else 's'}" for part, n in parts.items() if n]
            return f"INTERVAL '{' '.join(texts) or '0 days'}'"
        case "LIST", {"children": list(children)} if isinstance(type_.type_info, ListInfo):
            element = type_.type_info.child_type
            return f"[{', '.join(_constant_text(ex.BoundValue(**one), element) for one in children)}]"
        case _:
            try:
                return value_sql(value, type_)
            except Unprintable:
                return f"a value of {type_.sql}"


def _moment_text(micros: int) -> str:
    try:
        return f"'{_EPOCH + timedelta(microseconds=micros)}'"
    except OverflowError:
        return f"make_timestamp({micros})"


def _is_unseen(inner: ex.AnyExpression, cast: ex.Call) -> bool:
    """Whether a cast says nothing of what the user has written: DuckDB casts each literal."""
    source, target = sql_type(inner.return_type), sql_type(cast.return_type)
    is_exact_cast = source is not None and target is not None and is_exact(source, target)
    is_literal = isinstance(inner, ex.BoundConstant) or (isinstance(inner, ex.Call) and inner.name == "list_value")
    return is_literal or raw_parameter(cast) is not None or is_exact_cast
