"""Column types: how values are stored, compared, ordered, hashed and converted."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "arrow_form": ["array_of", "cast_to_arrow"],
    "arrow_layout": [
        "comparable",
        "empty_batch",
        "empty_table",
        "has_invalid_keys",
        "list_elements",
        "map_entries",
        "order_floats",
        "without_struct_offsets",
        "without_views",
    ],
    "calendar": ["DAYS_OR_LONGER", "UNITS", "following", "start_of"],
    "cast": ["cast_column", "scalar_text"],
    "column_type": [
        "Field",
        "NESTED",
        "OPAQUE",
        "SqlType",
        "TEXTUAL",
        "TypeKind",
        "UNIT_TIMESTAMPS",
        "parse_type",
        "type_of_arrow",
    ],
    "decimals": ["below_power_of_ten", "fits", "floored", "from_unscaled", "negated", "rescaled", "unscaled"],
    "default_value": ["DefaultValue"],
    "encoding": ["ByteKeys", "WordKeys", "encode_array", "minimum", "next_value", "scalar_encoder", "successor"],
    "held_values": ["check_held", "check_texts", "long_intervals_sql"],
    "python_column": ["as_they_stand", "canonical_as_it_stands", "column_of"],
    "result_type": ["Constructor", "ResultType", "column_type_of", "parse_result_type"],
    "sql_text": ["KEYWORDS", "folded", "told_apart"],
}

__all__, __getattr__ = exports(__name__, _FILES)
