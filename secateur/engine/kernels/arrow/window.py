"""OFFSET and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from secateur.engine.kernels.arrow.evaluate import EvaluationContext, compile_expression
from secateur.engine.kernels.arrow.exact_values import InexactError
from secateur.engine.kernels.arrow.expression import Expression


def compile_window(
    offset: Expression | None, limit: Expression | None
) -> Callable[[Sequence[Any], int], tuple[int, int]]:
    """First row and end of the rows that OFFSET and LIMIT leave of ``count``."""
    if offset is None and limit is None:
        return lambda _params, count: (0, count)
    evaluators = [None if expression is None else compile_expression(expression) for expression in (offset, limit)]

    def window(params: Sequence[Any], count: int) -> tuple[int, int]:
        skipped, most = (
            None if evaluate is None else evaluate(EvaluationContext({}, params)).as_py() for evaluate in evaluators
        )
        if (skipped or 0) < 0 or (most or 0) < 0:
            raise InexactError("a negative LIMIT or OFFSET")
        start = min(skipped or 0, count)
        return start, count if most is None else min(start + most, count)

    return window
