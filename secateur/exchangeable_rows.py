"""Rows that a cursor of DuckDB reads under one registration, and that are others in each call."""

from __future__ import annotations

import pyarrow as pa


class ExchangeableRows:
    """An Arrow stream whose content is set before each call; the schema stays.

    Attributes:
        schema: That of all content.
        rows: What is read; None between calls, since rows of a partition must not outlive the call that reads them.
    """

    __slots__ = ("rows", "schema")

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows: pa.Table | None = None

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self.rows is not None
        return self.rows.__arrow_c_stream__(requested_schema)
