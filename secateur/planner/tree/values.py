"""The text of a constant."""

from __future__ import annotations

from typing import Any, Final

from secateur.planner.tree import expressions as ex
from secateur.planner.tree.types import LogicalType, string_literal

_INFINITE: Final = {"DATE": 2**31 - 1, "TIMESTAMP": 2**63 - 1, "TIMESTAMP WITH TIME ZONE": 2**63 - 1}
"""The number by which DuckDB stores the end of time; the beginning is its negative."""


class Unprintable(Exception):  # noqa: N818 - not an error: such a query stays as the user wrote it
    """A node has no text."""


def value_sql(value: ex.BoundValue, type_: LogicalType | None) -> str:
    """The text of a constant of a type, which DuckDB reads as the same value.

    Raises:
        Unprintable: It has no text.
    """
    if type_ is None:
        raise Unprintable("a value without a type")
    if value.is_null:
        return "NULL" if type_.id == "NULL" else f"CAST(NULL AS {type_.sql})"
    content: Any = value.value
    match type_.id:
        case "INTEGER":
            return str(content) if content >= 0 else f"({content})"
        case "BOOLEAN":
            return "true" if content else "false"
        case "VARCHAR":
            return string_literal(content)
        case "DECIMAL":
            return _decimal(content, type_)
        case "DOUBLE":
            text = repr(content)
            return text if "e" in text else f"{text}e0"
        case "HUGEINT" | "UHUGEINT":
            return f"CAST({(content.get('upper', 0) << 64) + content.get('lower', 0)} AS {type_.id})"
        case "BIGINT" | "SMALLINT" | "TINYINT" | "UBIGINT" | "UINTEGER" | "USMALLINT" | "UTINYINT":
            return f"CAST({content} AS {type_.id})"
        case "DATE" | "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE" if abs(content) == _INFINITE[type_.id]:
            return f"CAST('{'-' if content < 0 else ''}infinity' AS {type_.id})"
        case "DATE":
            return f"(DATE '1970-01-01' + ({content}))"
        case "TIMESTAMP":
            return f"make_timestamp({content})"
        case "TIMESTAMP WITH TIME ZONE":
            return f"make_timestamptz({content})"
        case "INTERVAL":
            parts = [content.get(unit, 0) for unit in ("months", "days", "micros")]
            return f"(to_months({parts[0]}) + to_days({parts[1]}) + to_microseconds({parts[2]}))"
        case "BLOB":
            return f"CAST({string_literal(content)} AS BLOB)"
        case "LIST" if "children" in content:
            child = type_.type_info.child_type  # type: ignore[union-attr]
            elements = (value_sql(ex.BoundValue(**one), child) for one in content["children"])
            return f"CAST([{', '.join(elements)}] AS {type_.sql})"
        case _:
            raise Unprintable(f"a constant of {type_.sql}")


def _decimal(content: Any, type_: LogicalType) -> str:
    """A decimal by its digits, which are those of an integer of up to 128 bits."""
    scale = type_.type_info.scale  # type: ignore[union-attr]
    if isinstance(content, dict):
        content = (content["upper"] << 64) + content["lower"]
    digits = str(abs(content)).rjust(scale + 1, "0")
    text = f"{'-' if content < 0 else ''}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"
    is_literal = scale and content >= 0 and type_.sql == f"DECIMAL({len(digits)},{scale})"
    return text if is_literal else f"CAST('{text}' AS {type_.sql})"
