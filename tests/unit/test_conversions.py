"""Values that come in are converted in one place: no other calls Arrow's casts, guesses or sniffers.

They round, cut off and guess without a word; ``secateur/partitioning/types/cast.py`` says what converts instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ["client", "connectors", "http", "server", "cli", "pipeline", "engine/processors", "engine/exchange"]
"""Where values come in from users and files."""

KNOWN = {
    ("client/copy/json_texts.py", "array"): "texts of files, which DuckDB converts exactly",
    ("client/dbapi/frames.py", "cast"): "places in the values of an ENUM",
    ("client/dbapi/frames.py", "array"): "durations that polars has; the values of an ENUM, which are texts",
    ("client/dbapi/cursor.py", "array"): "lines of EXPLAIN, which are texts",
    ("client/dbapi/rows.py", "cast"): "times of an answer become the Python objects that have them in microseconds",
    ("client/execution/verify.py", "cast"): "days and instants are compared as numbers",
    ("client/dbapi/session_statements.py", "array"): "texts of SHOW",
    ("client/loads/arrow_data.py", "array"): "columns of numpy, pandas and Arrow, which have their types",
    ("connectors/external/folder.py", "scalar"): "a value that was converted before",
    ("connectors/files.py", "array"): "lines of a text file",
    ("connectors/spark/columns.py", "cast"): "expressions of Spark, not columns of Arrow",
    ("connectors/spark/result_rows.py", "cast"): "answers in the types that Spark wants for them",
    ("connectors/table_sources.py", "array"): "keys, whose values were converted before",
    ("engine/exchange/key_routing.py", "cast"): "the bits of times, which are hashed",
    ("engine/exchange/batches.py", "cast"): "schemas that differ in metadata and nullability",
    ("engine/processors/array_grouping.py", "cast"): "results, whose types the plan says",
    ("engine/processors/row_functions.py", "array"): "whether a row is kept",
    ("engine/processors/grouping.py", "array"): "counts",
    ("engine/processors/grouping.py", "cast"): "sums, counts and columns of NULL",
}
"""The other uses, with the reason why they change no value of a user."""

GUESSES = ("from_pylist", "from_pydict", "from_pandas", "read_csv", "read_json", "infer_type")


def test_nobody_converts_beside_the_one_conversion() -> None:
    found = {
        (str(path.relative_to(ROOT / "secateur")), name): f"{path}:{line}"
        for room in ROOMS
        for path in sorted((ROOT / "secateur" / room).rglob("*.py"))
        for name, line in _conversions(ast.parse(path.read_text()))
    }
    new = {place: found[place] for place in found.keys() - KNOWN.keys()}
    assert not new, f"use cast_column, cast_to_arrow, column_of or array_of of secateur/partitioning/types: {new}"
    assert not KNOWN.keys() - found.keys(), "these are gone: take them off the list"


def _conversions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, on, values = node.func.attr, node.func.value, node.args
            is_of_memory = bool(values) and isinstance(values[0], ast.Constant)  # memoryview.cast
            is_found = (
                (name == "cast" and not is_of_memory and not _is_named(on, "typing"))
                or (name in ("array", "scalar") and _is_named(on, "pa") and _has_type(node))
                or name in GUESSES
            )
            if is_found:
                yield name, node.lineno


def _is_named(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name


def _has_type(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(keyword.arg in ("type", "from_pandas") for keyword in call.keywords)
