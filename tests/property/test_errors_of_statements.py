"""Whatever a statement says, it is answered or refused in the user's terms: random calls, casts and odd values,
wherever a value may stand.
"""

from __future__ import annotations

import random
import re

import duckdb
import pytest

import secateur
from secateur.errors import Error, InternalError, JobFailedError, MemberLostError, ProtocolError
from secateur.planner.binding import VALUE_FUNCTIONS

NEVER = (ProtocolError, JobFailedError, MemberLostError, InternalError)
"""What says that something is broken. Nothing is."""

VALUES: dict[str, tuple[str, ...]] = {
    "BIGINT": ("k", "0", "-1", "9223372036854775807", "-9223372036854775808", "NULL"),
    "INTEGER": ("k::INTEGER", "2147483647", "-1", "0"),
    "HUGEINT": (
        "n",
        "170141183460469231731687303715884105727::HUGEINT",
        "-170141183460469231731687303715884105728::HUGEINT",
    ),
    "UBIGINT": ("18446744073709551615::UBIGINT",),
    "UHUGEINT": ("340282366920938463463374607431768211455::UHUGEINT",),
    "BIGNUM": ("123456789012345678901234567890123456789012345678901234567890::BIGNUM",),
    "DECIMAL": (
        "d",
        "99999999999999999999999999999999999999::DECIMAL(38,0)",
        "0.00000000000000000000000000000000000001::DECIMAL(38,38)",
    ),
    "DOUBLE": ("x", "'nan'::DOUBLE", "1e308", "-0.0", "'-inf'::DOUBLE"),
    "VARCHAR": ("s", "''", "chr(0)", "'%'", "'('", "repeat('ä', 300)", "'👩‍🚒'"),
    "BLOB": ("b", "'\\xFF\\x00'::BLOB"),
    "BIT": ("'101'::BIT",),
    "BOOLEAN": ("true", "k = 3", "NULL"),
    "UUID": ("ui", "uuid()", "'00000000-0000-0000-0000-000000000001'::UUID"),
    "DATE": ("dt", "DATE 'infinity'", "DATE '5877642-06-25 (BC)'"),
    "TIME": ("tm", "TIME '24:00:00'"),
    "TIME WITH TIME ZONE": ("TIMETZ '24:00:00-15:59:59'",),
    "TIME_NS": ("TIME_NS '23:59:59.999999999'",),
    "TIMESTAMP": ("ts", "TIMESTAMP 'infinity'", "TIMESTAMP '290309-12-22 (BC) 00:00:00'"),
    "TIMESTAMP WITH TIME ZONE": ("ts::TIMESTAMPTZ", "TIMESTAMPTZ '-infinity'"),
    "TIMESTAMP_NS": ("TIMESTAMP_NS '1677-09-22 00:00:00'",),
    "INTERVAL": (
        "iv",
        "INTERVAL '1294967296 months'",
        "INTERVAL '-2147483648 days'",
        "INTERVAL '9223372036854775807 microseconds'",
    ),
    "JSON": ("'[1]'::JSON",),
    "VARIANT": ("k::VARIANT", "DATE 'infinity'::VARIANT"),
    "UNION": ("union_value(a := k)", "union_value(a := DATE 'infinity')"),
    "STRUCT": ("{'a': k}", "row(k, s)", "{'i': INTERVAL '1294967296 months'}", "{'b': [DATE 'infinity']}"),
    "MAP": ("MAP {k: s}", "MAP {'a': TIME '24:00:00'}", "MAP {}", "MAP {INTERVAL 1 month: k}"),
    "LIST": (
        "l",
        "[]",
        "[uuid()]",
        "[TIME '24:00:00']",
        "[[k]]",
        "[INTERVAL '1294967296 months']",
        "[1, 2, 3]::INTEGER[3]",
        "[k::VARIANT]",
    ),
    "ENUM": ("'x'::ENUM('y', 'x')",),
}
TYPES = (
    *(
        "BOOLEAN",
        "TINYINT",
        "UTINYINT",
        "INTEGER",
        "BIGINT",
        "UBIGINT",
        "HUGEINT",
        "UHUGEINT",
        "BIGNUM",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(38,0)",
        "DECIMAL(38,38)",
    ),
    *(
        "VARCHAR",
        "BLOB",
        "BIT",
        "UUID",
        "JSON",
        "VARIANT",
        "DATE",
        "TIME",
        "TIMETZ",
        "TIME_NS",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "TIMESTAMP_NS",
        "TIMESTAMP_S",
        "INTERVAL",
    ),
    *("BIGINT[]", "STRUCT(a INTERVAL)", "MAP(VARCHAR, TIME)", "UNION(a DATE, b VARCHAR)"),
)
COLUMNS = (
    "d DECIMAL(38,10), x DOUBLE, n HUGEINT, ts TIMESTAMP, l BIGINT[], dt DATE, iv INTERVAL, tm TIME, ui UUID, b BLOB, s"
    " VARCHAR"
)
SCALAR_FORMS = (
    "SELECT {v} FROM {t}",
    "SELECT {v} AS y FROM {t} ORDER BY y",
    "SELECT k, {v} AS y FROM {t} ORDER BY y DESC, k LIMIT 3",
    "SELECT {v} AS y, count(*) FROM {t} GROUP BY y",
    "SELECT DISTINCT {v} FROM {t}",
    "SELECT {v} FROM {t} WHERE k = 3",
    "SELECT {v}",
    "VALUES ({v})",
    "SELECT max({v}), min({v}), list({v}) FROM {t}",
    "SELECT k FROM {t} WHERE {v} IS NULL",
    "SELECT k FROM {t} WHERE {v} = (SELECT max({v}) FROM {t})",
    "SELECT first_value({v}) OVER (PARTITION BY s ORDER BY {v}) FROM {t}",
    "WITH c AS (SELECT k, {v} AS y FROM {t}) SELECT a.k FROM c a JOIN c b ON a.y = b.y",
    "WITH c AS (SELECT k, {v} AS y FROM {t}) SELECT y FROM c UNION SELECT y FROM c",
    "INSERT INTO {w} (k, {c}) SELECT k + 1000, {v} FROM {t} ON CONFLICT DO NOTHING",
    "INSERT OR REPLACE INTO {w} (k, {c}) VALUES (1, {v})",
    "UPDATE {w} SET {c} = {v}",
    "UPDATE {w} SET {c} = {v} WHERE k = 1 RETURNING {c}",
    "DELETE FROM {w} WHERE {c} = {v}",
)
AGGREGATE_FORMS = (
    "SELECT {v} FROM {t}",
    "SELECT k % 3, {v} FROM {t} GROUP BY 1",
    "SELECT {v} AS y FROM {t} GROUP BY k ORDER BY y",
    "SELECT k FROM {t} GROUP BY k HAVING {v} IS NULL",
    "SELECT k, {v} OVER (PARTITION BY s ORDER BY k) FROM {t}",
    "SELECT DISTINCT {v} FROM {t} WHERE k < 5 GROUP BY s",
    "SELECT {v}",
)


def argument(r: random.Random, type_: str | None) -> str:
    """A value for a parameter that DuckDB declares with this type."""
    if type_ is not None and type_.upper().startswith("LAMBDA"):
        return r.choice(("lambda q: q", "lambda q: q IS NULL", "lambda q, i: q"))
    if type_ is not None and type_.endswith("[]"):
        element = type_[:-2]
        return r.choice(
            (f"[{argument(r, element)}, {argument(r, element)}]", f"[{argument(r, element)}]", "[]", "NULL")
        )
    bare = re.sub(r"\(.*\)", "", type_ or "").strip()
    return r.choice(VALUES.get(bare) or VALUES[r.choice(list(VALUES))])


def statements(seed: int, count: int) -> list[str]:
    """Statements with ``{t}`` and ``{w}`` for a table that is read and one that is written: calls, casts and bare
    values, a third each.
    """
    r = random.Random(seed)
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT function_name, function_type, parameter_types FROM duckdb_functions() WHERE function_type IN"
            " ('scalar', 'aggregate', 'macro') ORDER BY ALL"
        ).fetchall()
    functions = [row for row in rows if row[0].isidentifier() and row[0] in VALUE_FUNCTIONS]
    every_value = [value for values in VALUES.values() for value in values]
    found = []
    for index in range(count):
        forms = SCALAR_FORMS
        if index % 3 == 0:
            name, kind, types = r.choice(functions)
            value = f"{name}({', '.join(argument(r, type_) for type_ in types)})"
            forms = AGGREGATE_FORMS if kind == "aggregate" else SCALAR_FORMS
        elif index % 3 == 1:
            value = f"{r.choice(('CAST', 'TRY_CAST'))}({r.choice(every_value)} AS {r.choice(TYPES)})"
        else:
            value = r.choice(every_value)
        column = r.choice(("d", "x", "n", "ts", "l", "dt", "iv", "tm", "ui", "b", "s"))
        found.append(r.choice(forms).replace("{v}", value).replace("{c}", column))
    return found


@pytest.mark.parametrize(("seed", "count"), [(1, 30), pytest.param(2, 3000, marks=pytest.mark.slow)])
def test_every_error_of_a_statement_is_for_its_user(
    conn: secateur.Connection, table_name: str, seed: int, count: int
) -> None:
    t, w = f"{table_name}_read", f"{table_name}_written"
    for name in (t, w):
        conn.execute(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, {COLUMNS}) PARTITION BY HASH (k) PARTITIONS 6")
    conn.execute(
        f"INSERT INTO {t} SELECT i, i, i / 3, i, TIMESTAMP '2020-01-01' + INTERVAL (i) DAY, [i, NULL], DATE"
        " '2020-01-01' + i::INTEGER, INTERVAL (i) DAY, TIME '10:00:00', NULL, 'ab', 's' || i % 5 FROM range(10) r(i)"
    )
    largest = "99999999999999999999999999999999999999"
    conn.execute(
        f"INSERT INTO {t} (k, s, x, dt, ts, n) VALUES (100, '', 'nan', 'infinity', 'infinity', {largest}), (101, NULL,"
        f" '-inf', '-infinity', '-infinity', -{largest})"
    )
    wrong, answered = [], 0
    for sql in statements(seed, count):
        text = sql.replace("{t}", t).replace("{w}", w)
        try:
            cursor = conn.execute(text)
            if cursor.description is not None:
                cursor.fetchall()
            answered += 1
        except Error as error:
            if isinstance(error, NEVER) or not error.message.strip():
                wrong.append((text, type(error).__name__, error.message))
        except Exception as error:
            wrong.append((text, type(error).__name__, str(error)))
    assert wrong == []
    assert count // 3 < answered < count, "most are answered, and some are not"
    assert conn.execute(f"SELECT count(*) FROM {t}").fetchone() == (12,)
