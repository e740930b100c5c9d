"""Constants and parameters, ordinary ones and such as stand at the edges of the types."""

from __future__ import annotations

from typing import Any

from extremes import BEYOND_SPELLED, SHARE, now_and_then
from placed.parts import Maker

__all__ = ["Literals"]

_TEXTS = ["", "a", "A", "b", "é", "it's", "--", "/* a", "$1", "?", "a\nb", 'a"b', "%", "\\", "\U0010ffff", "e\u0301"]
_EXTREMES = [
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "99999999999999999999999999999999999999",
    "-99999999999999999999999999999999999999",
    "170141183460469231731687303715884105727",
    "-170141183460469231731687303715884105728",
    "12345678901234567890123456789.012345",
    "-12345678901234567890123456789.012346",
    "0.00000000000000000000000000000000000001",
    "1e308",
    "-1e308",
    "1e-308",
    "-0.0",
    "-0.0::DOUBLE",
    "2.0",
    "1.5",
    "1e0",
    "2147483648",
    "1_000",
    "'infinity'::DOUBLE",
    "'nan'::DOUBLE",
]
_TYPES = {
    "i": "BIGINT",
    "s": "VARCHAR",
    "d": "DATE",
    "m": "DECIMAL(8, 2)",
    "f": "DOUBLE",
    "w": "DECIMAL(38, 6)",
    "h": "HUGEINT",
    "t": "TIMESTAMPTZ",
}
_INSTANTS = ["2024-01-01", "2024-01-02 12:00:00", "2024-01-03", "2024-01-04"]


class Literals(Maker):
    """Makes constants."""

    def constant(self, kind: str) -> str:
        """A literal or parameter of a kind; sometimes NULL."""
        rng = self.rng
        if rng.random() < 0.02 and kind in _TYPES:
            return rng.choice(["NULL::{}", "CAST(NULL AS {})"]).format(_TYPES[kind])
        value: Any
        match kind:
            case "i":
                value, text = (number := rng.choice([-1, 0, 1, 1, 2, 2, 3])), str(number)
            case "s":
                value = rng.choice(_TEXTS)
                quoted = value.replace("'", "''")
                text = f"$q${value}$q$" if rng.random() < 0.06 else f"'{quoted}'"
            case "d" if rng.random() < SHARE:
                return rng.choice(["DATE '{}'", "'{}'::DATE", "'{}'"]).format(rng.choice(BEYOND_SPELLED))
            case "d":
                return rng.choice(["DATE '2024-01-0{}'", "'2024-01-0{}'::DATE", "make_date(2024, 1, {})"]).format(
                    rng.randint(1, 4)
                )
            case "t":
                written = rng.choice(["TIMESTAMPTZ '{}'", "'{}'::TIMESTAMPTZ", "coalesce(NULL, TIMESTAMPTZ '{}')"])
                return written.format(now_and_then(rng, _INSTANTS, BEYOND_SPELLED))
            case "m":
                return rng.choice(["0.25", "1.50", "1"]) + "::DECIMAL(8, 2)"
            case "f":
                return now_and_then(rng, ["0.25", "1.5", "-1"], ["'nan'", "'infinity'", "'-infinity'"]) + "::DOUBLE"
            case "w":
                wide = ["0", "1.5", "12345678901234567890123456789.012345", "-12345678901234567890123456789.012346"]
                return rng.choice(wide) + "::DECIMAL(38, 6)"
            case "h":
                return (
                    rng.choice(["0", "9223372036854775808", "(-12345678901234567890123456789012345678)"]) + "::HUGEINT"
                )
            case _:
                return "[1, 2]"
        if rng.random() < 0.08:
            mark = self.parameter(value)
            return f"{mark}::BIGINT" if kind == "i" and len(self.params) % 2 else mark
        return text

    def extreme(self, kind: str) -> str:
        """A constant to compare values of a kind with, that may lie outside of its type."""
        if kind in "imfwh" and self.rng.random() < 0.2:
            return self.rng.choice(_EXTREMES)
        return self.constant(kind)
