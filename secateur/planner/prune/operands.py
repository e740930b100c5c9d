"""Operands that do not depend on rows: constants, parameters, expressions of these, and lists of them.

DuckDB evaluates expressions of constants while the statement is planned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from secateur.duckdb_expressions import GUARD, MADE_CHARS_MAX, value_of
from secateur.partitioning.pruning.expression import UNKNOWN
from secateur.partitioning.pruning.operand import Cast, Computed, Constant, Evaluated, Operand, quick_value
from secateur.planner.binding.evaluation import bounded_functions
from secateur.planner.prune.quick import quick_of, raw_parameter
from secateur.planner.prune.shown import operand_text
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.comparisons import COMPARISONS, PATTERNS
from secateur.planner.tree.expression_sql import BoundText, Unprintable, expression_sql
from secateur.planner.tree.rewriting import cast_of, cast_to, exchanged, within
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.types import ListInfo, LogicalType

_FRACTIONS: Final = frozenset({"DECIMAL", "FLOAT", "DOUBLE"})
"""Types whose values clients do not compare with columns of other types, unless DuckDB has computed them."""
_SQL_CHARS_MAX: Final = 16_384
"""Guards repeat the arguments of a call, so nested calls make long texts."""
_UNBOUNDED_FORMAT: Final = re.compile(r"[0-9]{4}|\*|\{[^}]*\{")
"""A format with a width of more than three digits, or one that an argument gives."""
_WILDCARD: Final = re.compile(r"[%*]")
_WILDCARDS_MAX: Final = 2
"""Matching a text with so many wildcards takes as many steps as its length to the power of their number."""
_WITH_WILDCARDS: Final = frozenset(name for name in PATTERNS if "~" in name or name.endswith("like_escape"))
_SIZES: Final = {
    ("repeat", 2): "strlen({0}) * ({1})::DOUBLE",
    ("lpad", 3): "({1})::DOUBLE",
    ("rpad", 3): "({1})::DOUBLE",
    ("replace", 3): "(strlen({0}) + 1)::DOUBLE * (strlen({2}) + 1)",
    # Each ``\\1`` of the replacement stands for a part of the text.
    ("regexp_replace", 3): "(strlen({0}) + 1)::DOUBLE * (strlen({2}) + 1) * 2",
    ("regexp_replace", 4): "(strlen({0}) + 1)::DOUBLE * (strlen({2}) + 1) * 2",
}
"""The characters that a call makes of its arguments."""
_FORMATS: Final = frozenset({"format", "printf"})
_GUARDED: Final = frozenset({name for name, _ in _SIZES}) | _FORMATS


def is_free_of_rows(node: ex.AnyExpression) -> bool:
    """Whether an expression reads no column."""
    return not any(isinstance(part, ex.InputColumn) for part in within(node))


def operand_of(node: ex.AnyExpression) -> Operand | None:
    """Return the value of an expression that does not depend on rows.

    None when it depends on rows, or may differ between evaluations.

    Cost: nothing for what Python computes as DuckDB does, such as a literal in the type of a column; any other
    expression without parameters is evaluated by DuckDB: a quarter of a millisecond.
    """
    parameter = raw_parameter(node)
    if parameter is not None:
        return parameter
    quick = quick_of(node)
    if isinstance(quick, Constant):
        return quick
    parts = within(node)
    if any(isinstance(part, ex.InputColumn) for part in parts):
        return None
    parameters = [part for part in parts if isinstance(part, ex.BoundParameter)]
    names = {parameter.identifier for parameter in parameters}
    if names:
        # The digits of a fraction are those of each value, and the casts around it those of one.
        is_sized = any(parameter.return_type.id == "DECIMAL" for parameter in parameters) and any(
            part.return_type.id == "DECIMAL" and cast_of(part) is not None for part in parts
        )
        sql = None if is_sized else evaluable(node)
        if sql is None or not all(map(str.isdecimal, names)):
            return None
        computed = quick if isinstance(quick, (Computed, Cast)) and node.return_type.id not in _FRACTIONS else None
        return Evaluated(sql, operand_text(node), tuple(sorted(int(name) - 1 for name in names)), computed)
    value = UNKNOWN if quick is None else quick_value(quick, ())
    if value is not UNKNOWN:
        return Constant(value)
    sql = evaluable(node)
    found = () if sql is None else value_of(sql)
    return Constant(found[0]) if found else None


class _NotEvaluableError(Exception):
    """A call has no guard; never leaves this module."""


def evaluable(node: ex.AnyExpression) -> str | None:
    """The SQL by which an expression without columns is evaluated, or None if it is not to be.

    Evaluated, before partitions are selected, is what depends on nothing but constants and parameters, by DuckDB's own
    account of its functions, and is bounded in time and memory. Functions that make a value as large as their arguments
    demand get a guard: ``repeat($1, $2)`` is evaluated as ``CASE WHEN strlen($1) * $2 <= ... THEN repeat($1, $2) ELSE
    error(...) END``.
    """
    parts = within(node)
    if not all(map(_is_bounded, parts)):
        return None
    is_guarded = any(isinstance(part, ex.Call) and part.name in _GUARDED for part in parts)
    if is_guarded and any(isinstance(part, ex.BoundOperation) and part.type == "OPERATOR_TRY" for part in parts):
        return None  # it would make a value of the error
    try:
        sql = sql_as_bound(_guarded(node) if is_guarded else node)
    except (Unprintable, _NotEvaluableError):
        return None
    return sql if len(sql) <= _SQL_CHARS_MAX else None


def calls_only_bounded(node: ex.AnyExpression) -> bool:
    """Whether every call in an expression makes values that are no larger than its arguments."""
    return all(_is_known(part, bounded_functions() | _GUARDED) for part in within(node) if isinstance(part, ex.Call))


def _is_bounded(node: ex.AnyExpression) -> bool:
    match node:
        case ex.BoundConstant() | ex.BoundParameter() | ex.BoundOperation() | ex.Conjunction() | ex.Case():
            return True
        case ex.Call():
            return _is_known(node, bounded_functions() | _GUARDED) and unstable_call([node]) is None and _is_quick(node)
        case _:
            return False


def _is_known(call: ex.Call, functions: frozenset[str]) -> bool:
    return call.type in COMPARISONS or cast_of(call) is not None or call.name.lower() in functions


def _is_quick(call: ex.Call) -> bool:
    """Whether a text is matched with a pattern that takes no more than the square of its length."""
    if call.name not in _WITH_WILDCARDS:
        return True
    pattern = call.children[1]
    return isinstance(pattern, ex.BoundConstant) and len(_WILDCARD.findall(str(pattern.value.value))) <= _WILDCARDS_MAX


def _guarded(node: ex.AnyExpression) -> ex.AnyExpression:
    """The expression with guards before its calls."""

    def change(one: ex.AnyExpression) -> ex.AnyExpression | None:
        if not isinstance(one, ex.Call) or one.name not in _GUARDED:
            return None
        return _behind_guard(replace(one, children=tuple(map(_guarded, one.children))))

    return exchanged(node, change)


def _behind_guard(call: ex.Call) -> ex.AnyExpression:
    """A call that is made only if its value has no more than so many characters; the guard is NULL where the call is.

    Raises:
        _NotEvaluableError: There is no guard for it, or it is too long.
    """
    if call.name in _FORMATS:
        pattern = call.children[0]
        if not isinstance(pattern, ex.BoundConstant) or _UNBOUNDED_FORMAT.search(str(pattern.value.value)):
            raise _NotEvaluableError
        return call
    size = _SIZES.get((call.name, len(call.children)))
    if size is None:
        raise _NotEvaluableError
    made = f"{{{len(call.children)}}}"
    checked = ex.Written(
        sql=f"CASE WHEN coalesce({size}, 0) <= {MADE_CHARS_MAX} THEN {made} ELSE {GUARD} END",
        return_type=call.return_type,
        children=(*call.children, call),
    )
    if len(sql_as_bound(checked)) > _SQL_CHARS_MAX:
        raise _NotEvaluableError
    return checked


class _AsBound(BoundText):
    """A text in which the value of a parameter has its own type, and every cast is written."""

    def is_bare(self, node: ex.AnyExpression) -> bool:
        return isinstance(node, ex.BoundParameter)

    def is_implicit(self, cast: ex.Call) -> bool:
        return False


_AS_BOUND: Final = _AsBound()


def sql_as_bound(expression: ex.AnyExpression) -> str:
    """The text of an expression without columns, with every cast that DuckDB has bound.

    Also with those that it would make by itself.

    Raises:
        Unprintable: A part has no text.
    """
    return expression_sql(expression, (), _AS_BOUND)


def list_parameter(node: ex.AnyExpression) -> int | None:
    """The index of the parameter that a list is; None for any other list.

    Under a cast of its elements that comparisons with them do not notice, it is still the parameter.
    """
    element = _element_type(node)
    found = cast_of(node)
    inner = node if found is None else found[0]
    given = _element_type(inner)
    if not isinstance(inner, ex.BoundParameter) or element is None or given is None or (found is not None and found[1]):
        return None
    standing = ex.BoundParameter(type=inner.type, identifier=inner.identifier, return_type=given)
    parameter = raw_parameter(standing if given == element else cast_to(standing, element))
    return None if parameter is None else parameter.index


def elements_of(node: ex.AnyExpression) -> Sequence[ex.AnyExpression] | None:
    """The elements of a list that is written out; None for any other list."""
    element = _element_type(node)
    match node:
        case ex.BoundConstant(value=ex.BoundValue(is_null=False, value={"children": list() as children})) if (
            element is not None
        ):
            return [
                ex.BoundConstant(
                    type="VALUE_CONSTANT",
                    value=ex.BoundValue(type=element, is_null=bool(child.get("is_null")), value=child.get("value")),
                )
                for child in children
            ]
        case ex.Call() if node.name == "list_value":
            return node.children
        case ex.Call():
            found = cast_of(node)
            elements = None if found is None or found[1] else elements_of(found[0])
            return None if elements is None or element is None else [cast_to(one, element) for one in elements]
        case _:
            return None


def _element_type(node: ex.AnyExpression) -> LogicalType | None:
    info = node.return_type.type_info
    return info.child_type if node.return_type.id == "LIST" and isinstance(info, ListInfo) else None
