"""Remembers what DuckDB says about a text, which no cluster has a say in: planning takes half as long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secateur.engine.kernels.duckdb import DuckDBKernel

__all__ = ["remember_texts"]


def remember_texts() -> None:
    """Ask DuckDB once for the parse trees and for the result's columns of each text, for good.

    What it has refused is asked again.
    """
    ask_trees, ask_columns = DuckDBKernel.trees, DuckDBKernel.describe
    trees: dict[tuple[str, ...], tuple[str, ...]] = {}
    columns: dict[tuple[Any, ...], tuple[tuple[str, str], ...]] = {}

    def trees_of(self: DuckDBKernel, statements: Sequence[str]) -> tuple[str, ...]:
        key = tuple(statements)
        if key not in trees:
            trees[key] = ask_trees(self, statements)
        return trees[key]

    def columns_of(
        self: DuckDBKernel, sql: str, relations: Mapping[str, Mapping[str, Any]], params: Sequence[Any] = ()
    ) -> tuple[tuple[str, str], ...]:
        schemas = tuple((name, tuple(schema.items())) for name, schema in relations.items())
        key = sql, schemas, tuple(map(_kind, params))
        if key not in columns:
            columns[key] = ask_columns(self, sql, relations, params)
        return columns[key]

    DuckDBKernel.trees = trees_of  # type: ignore[method-assign]
    DuckDBKernel.describe = columns_of  # type: ignore[method-assign]


def _kind(value: Any) -> Any:
    """What of a value may decide about the type of a result: of a small number only that it is one."""
    return int if type(value) is int and 0 <= value < 1 << 15 else (type(value), value)
