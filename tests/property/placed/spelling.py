"""How a statement is written: comments between words, names in other letters, trailing semicolons.

Its meaning stays.
"""

from __future__ import annotations

import random
import re

__all__ = ["spelled"]

_COMMENTS = ["/* it's */", '/* ; -- " */', "-- it's; $1\n", "--\n", "/* 'a' /* inside */ \"b */", "\n\t"]


def spelled(rng: random.Random, sql: str) -> str:
    """The statement, most often as it was, else with some of its spaces, names and keywords written in another way."""
    if rng.random() < 0.8:
        return sql
    share = rng.choice([0.1, 0.5, 1.0])
    sql = re.sub(
        r" (WHERE|FROM|JOIN|GROUP BY|ORDER BY|ON|AND|UNION|HAVING) ",
        lambda found: (
            f" {rng.choice(_COMMENTS)} {found[1]} "
            if rng.random() < share / 2
            else f" {found[1].lower()} "
            if rng.random() < share
            else found[0]
        ),
        sql,
    )
    sql = re.sub(
        r"\bx(\d+)\.([a-z])\b",
        lambda found: f"X{found[1]}.{found[2].upper()}" if rng.random() < share else found[0],
        sql,
    )
    sql = re.sub(
        r"\bx(\d+)\.([a-z])\b",
        lambda found: f'"x{found[1]}"."{found[2].upper()}"' if rng.random() < share else found[0],
        sql,
    )
    return sql + rng.choice(["", ";", " -- end", " ; ", "\n"])
