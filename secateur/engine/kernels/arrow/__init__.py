"""The arrow kernel: small fragments answered with Arrow's own functions, or declined."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "exact_values": ["InexactError", "compute_type", "exact_scalar", "held_by_double", "to_double"],
    "fragment": [
        "AggregateFunction",
        "ArrowAggregate",
        "ArrowFragment",
        "ArrowSource",
        "CallExpression",
        "ColumnExpression",
        "ConstantExpression",
        "Expression",
        "OrderTerm",
        "ParameterExpression",
        "ParameterListExpression",
        "ScalarFunction",
        "SourceJoin",
        "slot_name",
        "source_column",
        "walk",
    ],
    "row_values": ["DeclinedError", "compile_over_row", "compile_row_filter", "compile_row_tuples"],
    "small_groups": ["SMALL_ROWS_MAX", "compile_small_aggregation"],
}

__all__, __getattr__ = exports(__name__, _FILES)
