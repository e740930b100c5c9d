"""DuckDB's own tests on a cluster of three members, where each statement has the rows that it has in DuckDB.

``make duckdb-tests CLONE=../duckdb`` runs the files of a clone of duckdb/duckdb, ``FOLDERS="subquery join"`` those of
some folders. Tables are spread at random over members, so that each statement over one is divided. What DuckDB itself
refuses here, what secateur does not support, and answers that depend on chance or on an order that nobody asked for are
left out; some of the latter remain, so a person reads what is printed. A file ends at the first change that a cluster
refuses, and at a setting, a transaction, a macro or a temporary table.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

import secateur
from secateur.errors import DeadlineError, Error, NotSupportedError

__all__ = ["main"]

_TIMEOUT_S = 10.0
_DIRECTIVES = frozenset({"concurrentloop", "foreach", "load", "loop", "restart"})
"""A file with one of these is more than a list of statements."""
_QUERY = re.compile(r"\s*(?:\(|from|pivot|select|unpivot|values|with)", re.IGNORECASE)
_CHANGE = re.compile(
    r"\s*(?:alter|create|delete|drop|insert|merge|truncate|update)"
    r"|\s*with\b.*\b(?:delete\s+from|insert\s+into|merge\s+into|update)\b",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(
    r"\s*(?:attach|begin|pragma|set|start|use"
    r"|(?:create|drop)\s+(?:or\s+replace\s+)?(?:function|macro|schema|sequence|temp|temporary))\b",
    re.IGNORECASE,
)
"""A statement that has no counterpart, and behind which the tables or the meaning of names are others."""
_TABLE = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?table\s+(?:if\s+not\s+exists\s+)?(\"[^\"]+\"|\w+)\s*(?=\(|as\b)", re.I
)
_VIEW = re.compile(r"\s*create\s+(?:or\s+replace\s+)?view\s+(?:if\s+not\s+exists\s+)?(\"[^\"]+\"|\w+)", re.IGNORECASE)
_CHANCE = re.compile(
    r"random|uuid|now\(|current_|nextval|today\(|sample|hash\(|duckdb_|pragma|information_schema|sqlite_|pg_"
    r"|first\(|last\(|any_value|arbitrary|rowid|version\(|explain|read_|limit|offset|approx|reservoir|getvariable|positional",
    re.IGNORECASE,
)


def main() -> int:
    """Compare, and print each difference. Returns 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("clone", type=Path, help="a clone of duckdb/duckdb, of the version that is installed")
    parser.add_argument("folders", nargs="*", default=["."], help="folders of test/sql (default: all)")
    parser.add_argument("--times", type=int, default=2, help="executions of each query (default: 2)")
    args = parser.parse_args()
    root = args.clone / "test" / "sql"
    files = sorted({path for folder in args.folders for path in (root / folder).rglob("*.test")})
    counts: Counter[str] = Counter()
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        for path in files:
            for difference in _differences(path, connection, args.times, counts):
                print(f"{path.relative_to(root)}: {difference}", flush=True)
    print(f"{len(files)} files, " + ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items())))
    return int(bool(counts["differences"]))


def statements(path: Path, connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """The statements of a file that are to succeed; none of one that repeats its statements by a directive."""
    blocks = re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8", errors="replace"))
    records = [[line for line in block.split("\n") if line.strip() and line[0] != "#"] for block in blocks]
    if any(record and record[0].split()[0] in _DIRECTIVES for record in records):
        return
    for record in records:
        start = next((at for at, line in enumerate(record) if re.match(r"query\b|statement ok", line)), None)
        if start is not None:
            body = record[start + 1 :]
            text = "\n".join(body[: body.index("----")] if "----" in body else body)
            try:
                yield from (one.query.strip().rstrip(";") for one in connection.extract_statements(text))
            except duckdb.Error:
                continue


def _differences(path: Path, connection: secateur.Connection, times: int, counts: Counter[str]) -> Iterator[str]:
    made: list[str] = []
    with duckdb.connect() as oracle:
        oracle.execute("SET TimeZone = 'UTC'; SET threads = 1")
        for sql in statements(path, oracle):
            if _END.match(sql):
                break
            try:
                expected = shown(oracle.execute(sql).fetchall())
            except (duckdb.Error, UnicodeDecodeError):
                continue
            if _CHANGE.match(sql):
                counts["changes"] += 1
                try:
                    connection.execute(_spread(sql), timeout=_TIMEOUT_S)
                except Error as error:
                    counts["changes refused"] += 1
                    if not isinstance(error, NotSupportedError):
                        yield f"refused: {_line(sql)}: {type(error).__name__}: {_line(error)}"
                    break
                for kind, pattern in (("TABLE", _TABLE), ("VIEW", _VIEW)):
                    if created := pattern.match(sql):
                        made.append(f"{kind} {created[1]}")
            elif _QUERY.match(sql) and not _CHANCE.search(sql):
                found = _compared(sql, expected, connection, times, counts)
                if found:
                    yield found
    for name in reversed(made):
        try:
            connection.execute(f"DROP {name}")
        except Error:
            continue


def _compared(
    sql: str, expected: list[tuple[str, ...]], connection: secateur.Connection, times: int, counts: Counter[str]
) -> str | None:
    """The difference between the rows of a query and those of DuckDB; None where there is none."""
    try:
        for _ in range(times):
            found = shown(connection.execute(sql, timeout=_TIMEOUT_S).fetchall())
            if found != expected:
                counts["differences"] += 1
                return f"{_line(sql)}: {len(found)} rows {found[:2]}, in DuckDB {len(expected)} {expected[:2]}"
    except (NotSupportedError, DeadlineError):
        counts["not supported"] += 1
    except Error as error:
        counts["errors"] += 1
        return f"{_line(sql)}: {type(error).__name__}: {_line(error)}"
    else:
        counts["queries alike"] += 1
    return None


def _spread(sql: str) -> str:
    """A statement whose table has its rows on all members."""
    table = _TABLE.match(sql)
    if table is None:
        return sql
    placed = "PARTITION BY RANDOM PARTITIONS 3"
    if sql[table.end() :].lower().startswith("as"):
        return f"{sql[: table.end()]} {placed} {sql[table.end() :]}"
    return sql if re.search(r"primary\s+key", sql, re.IGNORECASE) else f"{sql} {placed}"


def shown(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Rows as texts in some order, numbers with the digits that do not depend on the order of a sum."""
    return sorted(tuple(map(_text, row)) for row in rows)


def _text(value: Any) -> str:
    match value:
        case float():
            return f"{value:.9g}"
        case list() | tuple():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            return f"{{{', '.join(f'{_text(key)}: {_text(one)}' for key, one in value.items())}}}"
        case _:
            return re.sub(r"tzinfo=<UTC>", "tzinfo=datetime.timezone.utc", repr(value))


def _line(text: object) -> str:
    return " ".join(str(text).split())[:300]


if __name__ == "__main__":
    sys.exit(main())
