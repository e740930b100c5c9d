"""Decides which expressions are evaluated before the partitions of a statement are selected.

These are the expressions that depend on nothing but constants and parameters, by DuckDB's own account of its functions,
and whose evaluation is bounded in time and memory. Functions that make a value as large as their arguments demand get a
guard: ``repeat($1, $2)`` is evaluated as ``CASE WHEN strlen($1) * $2 <= ... THEN repeat($1, $2) ELSE error(...) END``.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from secateur.expression_values import GUARD, MADE_CHARS_MAX
from secateur.planner.binding.evaluation import bounded_functions
from secateur.planner.prune.overloads import COMPARISONS, PATTERNS
from secateur.planner.prune.sql_as_bound import sql_as_bound
from secateur.planner.tree import expressions as ex
from secateur.planner.tree.rewriting import cast_of, within
from secateur.planner.tree.stability import unstable_call
from secateur.planner.tree.values import Unprintable

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


class _NotEvaluableError(Exception):
    """A call has no guard; never leaves this module."""


def evaluable(node: ex.AnyExpression) -> str | None:
    """The SQL by which an expression without columns is evaluated, or None if it is not to be."""
    parts = list(within(node))
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
    match node:
        case ex.Call():
            call = replace(node, children=tuple(map(_guarded, node.children)))
            return _behind_guard(call) if call.name in _GUARDED else call
        case ex.BoundOperation() | ex.Conjunction():
            return replace(node, children=tuple(map(_guarded, node.children)))
        case ex.Case():
            checks = [
                replace(check, when_expr=_guarded(check.when_expr), then_expr=_guarded(check.then_expr))
                for check in node.case_checks
            ]
            return replace(node, case_checks=tuple(checks), else_expr=_guarded(node.else_expr))
        case _:
            return node


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
