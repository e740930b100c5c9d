"""Arguments that take one of a few texts say so in their types, and results have those of their library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest

import secateur
from secateur import processors
from secateur.client import Cursor, TableHandle
from secateur.connectors import file_source, table_sink
from secateur.http import HttpResult
from secateur.pipeline import Stage


@pytest.mark.parametrize(
    ("function", "name", "texts"),
    [
        (secateur.start, "runtime", ("ray", "embedded")),
        (secateur.start, "fsync", ("always", "interval", "off")),
        (secateur.start, "log_format", ("text", "json")),
        (secateur.start, "pruning", ("on", "off", "verify")),
        (TableHandle.load, "mode", ("append", "overwrite", "overwrite_ranges", "upsert", "ignore")),
        (table_sink, "mode", ("upsert", "append")),
        (processors.hash_join, "how", ("inner", "left", "right", "full", "semi", "anti")),
        (Stage.hash_join, "how", ("inner", "left", "right", "full", "semi", "anti")),
    ],
)
def test_one_of_a_few_texts_is_a_literal(function: Callable[..., Any], name: str, texts: tuple[str, ...]) -> None:
    assert get_args(get_type_hints(function)[name]) == texts


def test_the_format_of_files_is_a_literal_or_none() -> None:
    literal, none = get_args(get_type_hints(file_source)["format"])
    assert (get_args(literal), none) == (("parquet", "csv", "arrow", "text"), type(None))


@pytest.mark.parametrize("kind", [Cursor, HttpResult])
def test_frames_have_types(kind: type[Any]) -> None:
    found = {name: inspect.signature(getattr(kind, name)).return_annotation for name in ("df", "pl", "arrow")}
    assert found == {"df": "pd.DataFrame", "pl": "polars.DataFrame", "arrow": "pa.Table"}
