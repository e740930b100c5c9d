"""Decides which expressions are evaluated before the partitions of a statement are selected.

These are the expressions that depend on nothing but literals and parameters, by DuckDB's own account of its functions,
and whose evaluation is bounded in time and memory. Functions that make a value as large as their arguments demand get a
guard: ``repeat($1, $2)`` is evaluated as ``CASE WHEN strlen($1) * $2 <= ... THEN repeat($1, $2) ELSE error(...) END``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from sqlglot import exp

from secateur.expression_values import GUARD, MADE_CHARS_MAX
from secateur.planner.binding.evaluation import is_bounded
from secateur.planner.text.dialect import to_sql
from secateur.planner.text.parser_cross_check import read_statement
from secateur.planner.text.trees import copied

_SQL_CHARS_MAX: Final = 16_384
"""Guards repeat the arguments of a call, so nested calls make long texts."""
_UNBOUNDED_FORMAT: Final = re.compile(r"[0-9]{4}|\*|\{[^}]*\{")
"""A format with a width of more than three digits, or one that an argument gives."""
_WILDCARD: Final = re.compile(r"[%*]")
_WILDCARDS_MAX: Final = 2
"""Matching a text with so many wildcards takes as many steps as its length to the power of their number."""
_NOT_SCALAR: Final = (
    *(exp.Column, exp.Query, exp.AggFunc, exp.Star, exp.Window, exp.Collate, exp.Lambda, exp.All, exp.Any, exp.Unnest),
)
_PATTERNS: Final = (exp.Like, exp.ILike, exp.Glob)
_GUARDED: Final = frozenset({"repeat", "lpad", "rpad", "replace", "regexp_replace", "format", "printf"})


def evaluable(node: exp.Expr) -> str | None:
    """The SQL by which an expression without columns is evaluated, or None if it is not to be.

    A constant with a collation is not: it is not a value alone, but changes how the column beside it compares.

    Cost: half a millisecond for a new text.
    """
    if node.find(*_NOT_SCALAR) is not None or not all(map(_is_quick, node.find_all(*_PATTERNS))):
        return None
    guarded = _guarded(node)
    if guarded is None or len(guarded) > _SQL_CHARS_MAX:
        return None
    return guarded if _is_evaluable(to_sql(node)) else None


@lru_cache(maxsize=1024)
def _is_evaluable(sql: str) -> bool:
    reading = read_statement(f"SELECT ({sql}) AS value")
    return reading is not None and reading.is_repeatable and not reading.aggregates() and is_bounded(reading, _GUARDED)


def _is_quick(match: exp.Expr) -> bool:
    """Whether a text is matched with a pattern that takes no more than the square of its length."""
    pattern = match.args["expression"]
    return isinstance(pattern, exp.Literal) and len(_WILDCARD.findall(pattern.name)) <= _WILDCARDS_MAX


def _guarded(node: exp.Expr) -> str | None:
    """The text of an expression with guards; None if it has a call for which there is none."""
    calls = {str(part.this).lower() for part in node.find_all(exp.Anonymous)}
    if calls.isdisjoint(_GUARDED):
        return to_sql(node)
    if "try" in calls or node.find(exp.Try) is not None:
        return None  # it would make a value of the error
    made = copied(node)
    for call in reversed([part for part in made.find_all(exp.Anonymous) if str(part.this).lower() in _GUARDED]):
        guard = _guard(str(call.this).lower(), [to_sql(argument) for argument in call.expressions], call)
        if guard is None:
            return None
        checked = f"CASE WHEN {guard} THEN {to_sql(call)} ELSE {GUARD} END"
        if len(checked) > _SQL_CHARS_MAX:
            return None
        replaced = exp.Var(this=checked)
        if call is made:
            made = replaced
        else:
            call.replace(replaced)
    return to_sql(made)


def _guard(function: str, arguments: list[str], call: exp.Anonymous) -> str | None:
    """The condition under which a call has no more than so many characters; it is NULL where the call is."""
    match function, arguments:
        case "repeat", [text, times]:
            size = f"strlen({text}) * ({times})::DOUBLE"
        case (("lpad" | "rpad"), [_, length, _]):
            size = f"({length})::DOUBLE"
        case "replace", [text, _, new]:
            size = f"(strlen({text}) + 1)::DOUBLE * (strlen({new}) + 1)"
        case "regexp_replace", [text, _, new, *_]:
            # Each ``\\1`` of the replacement stands for a part of the text.
            size = f"(strlen({text}) + 1)::DOUBLE * (strlen({new}) + 1) * 2"
        case (("format" | "printf"), [_, *_]):
            pattern = call.expressions[0]
            return "TRUE" if isinstance(pattern, exp.Literal) and not _UNBOUNDED_FORMAT.search(pattern.name) else None
        case _:
            return None
    return f"coalesce({size}, 0) <= {MADE_CHARS_MAX}"
