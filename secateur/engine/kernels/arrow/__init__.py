"""The arrow kernel: small fragments answered with Arrow's own functions, or declined."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "doubles": ["held_by_double", "to_double"],
    "exact_values": ["InexactError", "compute_type", "exact_scalar"],
    "expression": [
        "CallExpression",
        "ColumnExpression",
        "ConstantExpression",
        "Expression",
        "ParameterExpression",
        "ParameterListExpression",
        "ScalarFunction",
        "walk",
    ],
    "fragment": [
        "AggregateFunction",
        "ArrowAggregate",
        "ArrowFragment",
        "ArrowSource",
        "OrderTerm",
        "SourceJoin",
        "slot_name",
        "source_column",
    ],
    "row_comparisons": ["rows_told_apart"],
    "row_values": ["DeclinedError", "compile_over_row", "compile_row_filter", "compile_row_tuples"],
    "small_groups": ["SMALL_ROWS_MAX", "compile_small_aggregation"],
}

__all__, __getattr__ = exports(__name__, _FILES)
