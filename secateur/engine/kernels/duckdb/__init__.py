"""The DuckDB kernel: fragments answered by DuckDB over Arrow tables; also binding and errors."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "slot": ["Binder", "rows_told_apart"],
    "cancellation": ["Cancellation", "check_cancelled"],
    "errors": ["bind_error_position", "translated", "unreadable"],
    "kernel": ["DuckDBKernel", "default_kernel"],
    "result_types": ["arrow_type", "delivered_type", "is_restored", "relation_casts"],
    "results": ["conform", "exported"],
}

__all__, __getattr__ = exports(__name__, _FILES)
