"""Tables as values: definition, indexes, statistics, and rows in the schema of a table."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "alteration": [
        "AddColumn",
        "Altered",
        "ColumnChange",
        "DropColumn",
        "RenameColumn",
        "RenameTable",
        "SetDefault",
        "SetNullable",
        "SetType",
        "altered",
        "is_wider",
        "key_columns",
    ],
    "conform": ["first_of_each_key"],
    "statistics": [
        "ColumnStatistics",
        "ColumnSummary",
        "DistinctSketch",
        "NO_STATISTICS",
        "SKETCH_HASHES_MAX",
        "StatisticsSnapshot",
        "TableStatistics",
        "TableSummary",
        "total",
    ],
    "row_ids": [
        "ROW_ID_COLUMN",
        "check_has_key",
        "check_writable",
        "filled_row_ids",
        "new_row_ids",
        "row_id_array",
        "with_row_ids",
        "without_row_ids",
    ],
    "table": [
        "CheckDef",
        "Column",
        "ExternalTable",
        "IndexDef",
        "NamedType",
        "Succession",
        "TableDef",
        "TableDefinition",
    ],
}

__all__, __getattr__ = exports(__name__, _FILES)
