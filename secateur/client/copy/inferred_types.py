"""Infers the types of columns that the table does not have, from all texts that a file has for them.

A type is taken only if nothing is lost: ``00501`` and ``+49 30`` stay texts, and amounts that all have two digits
behind the point, or more, are decimals, since a sum of DOUBLEs would not be what the file adds up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from secateur.client.copy.text_values import DAY_AND_MONTH, TextConversion
from secateur.partitioning.tables.identifier import text_literal
from secateur.partitioning.types.column_type import SqlType, TypeKind

if TYPE_CHECKING:
    import duckdb

_ANY: Final = "texts"
"""The fact that a text is there."""
_OTHER_DATE: Final = "other_date"
_FIRST_ROWS: Final = 10_000
_DIGITS_MAX: Final = 38
_SHORT_DIGITS: Final = 18
"""A DECIMAL of so many digits is a 64-bit integer."""
_MONEY_SCALES: Final = range(2, 9)
_MOMENTS: Final = (TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ)
_WHOLE: Final = (TypeKind.BOOLEAN, TypeKind.BIGINT, TypeKind.HUGEINT)
_TEXT: Final = SqlType(TypeKind.VARCHAR)
_ZONE: Final = r":[0-9]{2}(\.[0-9]+)?\s*(Z|UTC|[-+][0-9:]+)\s*$"


class Inferred(NamedTuple):
    """The type of a column, and whether its texts are dates that could have the day or the month first."""

    type: SqlType
    is_other_date: bool


class MayBe(Enum):
    """The types that texts may have, if they are written so."""

    ANY = "numbers, booleans, dates, times and texts"
    NUMBER = "numbers and booleans"
    """Scalars of JSON; its numbers are DOUBLEs."""
    MOMENT = "dates, times and texts"
    TEXT = "texts"


def inferred_types(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    columns: Sequence[tuple[str, MayBe]],
    conversion: TextConversion,
) -> list[Inferred]:
    """Find the types of columns of texts.

    Args:
        connection: The database that reads the source.
        source: SQL of rows whose columns are VARCHAR.
        columns: Their names, and what they may be.
        conversion: How dates are written.
    """
    if not columns:
        return []
    ways = [(name, _ways(name, conversion)) for name, _ in columns]
    # What the first rows rule out need not be looked for in the others.
    first = _facts(connection, ways, f"(SELECT * FROM {source} LIMIT {_FIRST_ROWS})")
    left = [
        (text, {name: condition for name, condition in conditions.items() if facts[name] == facts[_ANY]})
        for (text, conditions), facts in zip(ways, first, strict=True)
    ]
    found = _facts(connection, left, source)
    return [
        Inferred(_type(facts, may_be), bool(facts[_ANY]) and facts.get(_OTHER_DATE) == facts[_ANY])
        for facts, (_, may_be) in zip(found, columns, strict=True)
    ]


def _facts(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[tuple[str, dict[str, str]]], source: str
) -> Sequence[dict[str, Any]]:
    """For each column, how many texts are written in which way, and the digits of its decimals."""
    items = []
    for text, conditions in columns:
        facts = [f"{name} := count(*) FILTER ({condition})" for name, condition in conditions.items()]
        if "DECIMAL" in conditions:
            facts += [f"{name} := {digits}" for name, digits in _digits(text).items()]
        items.append(f"struct_pack({', '.join(facts)})")
    return connection.execute(f"SELECT {', '.join(items)} FROM {source}").fetchone() or ()


def _ways(text: str, conversion: TextConversion) -> dict[str, str]:
    """The ways in which texts may be written, as conditions by the names of types."""
    integer = f"regexp_full_match({text}, '-?(0|[1-9][0-9]{{0,37}})')"
    number = f"regexp_full_match({text}, '-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?|-?(inf|infinity)|nan', 'i')"
    is_short = f"length(regexp_replace({text}, '[^0-9]', '', 'g')) <= 15"
    has_zone = f"regexp_matches({text}, '{_ZONE}')"
    moments = {
        kind.name: f"regexp_matches({text}, '[0-9]|inf') AND {conversion.or_null(text, SqlType(kind))} IS NOT NULL"
        for kind in _MOMENTS
    }
    return {
        _ANY: f"{text} <> ''",
        _OTHER_DATE: f"regexp_full_match({text}, {text_literal(DAY_AND_MONTH)})",
        "BOOLEAN": f"lower({text}) IN ('true', 'false')",
        "BIGINT": f"{integer} AND TRY_CAST({text} AS BIGINT) IS NOT NULL",
        "HUGEINT": integer,
        "DECIMAL": f"regexp_full_match({text}, '-?(0|[1-9][0-9]*)(\\.[0-9]+)?')",
        "DOUBLE": f"{number} AND ({is_short} OR lower(CAST(TRY_CAST({text} AS DOUBLE) AS VARCHAR)) = lower({text}))",
        **moments,
        "TIMESTAMP": f"{moments['TIMESTAMP']} AND NOT {has_zone}",
        "TIMESTAMPTZ": f"{moments['TIMESTAMPTZ']} AND ({has_zone} OR regexp_matches({text}, 'inf'))",
        "UUID": f"regexp_full_match({text}, '[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}')",
    }


def _digits(text: str) -> dict[str, str]:
    """The most digits of decimals before the point, and the least and most of those that have a point behind it."""
    behind = f"length(regexp_extract({text}, '\\.([0-9]+)', 1))"
    return {
        "before": f"max(length(regexp_extract({text}, '[0-9]+')))",
        "least": f"min({behind}) FILTER (contains({text}, '.'))",
        "most": f"max({behind})",
    }


def _type(facts: dict[str, Any], may_be: MayBe) -> SqlType:
    """The first type that all texts are written as; the order is that of preference."""
    if not facts[_ANY]:
        return _TEXT
    scale, digits = facts.get("most") or 0, (facts.get("before") or 0) + (facts.get("most") or 0)
    is_money = may_be is MayBe.ANY and scale in _MONEY_SCALES and facts.get("least") == scale
    kinds: list[TypeKind] = []
    if may_be in (MayBe.ANY, MayBe.NUMBER):
        numbers = [TypeKind.DECIMAL, TypeKind.DOUBLE] if is_money else [TypeKind.DOUBLE, TypeKind.DECIMAL]
        kinds += [*_WHOLE, *numbers]
    if may_be in (MayBe.ANY, MayBe.MOMENT):
        kinds += [*_MOMENTS, TypeKind.UUID]
    found = next((kind for kind in kinds if facts.get(kind.name) == facts[_ANY]), TypeKind.VARCHAR)
    if found is not TypeKind.DECIMAL:
        return SqlType(found)
    return (
        SqlType(found, _SHORT_DIGITS if digits <= _SHORT_DIGITS else _DIGITS_MAX, scale)
        if digits <= _DIGITS_MAX
        else _TEXT
    )
