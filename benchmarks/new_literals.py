"""What does a statement cost whose literals are new, beside the same statement with parameters?

Question: does a text of a known kind, with literals that were never seen, take at most one and a half times as long?
Data: 500 customers with 40 orders each, and a replicated table of countries, on three members.
Control: values as parameters of one text, in turn with the literals. Metric: the median of the executions of each
shape, in milliseconds, with reading its rows.

Run: ``python -m benchmarks.new_literals [--executions N] [--check]``.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from datetime import date, timedelta
from typing import Any, Final

import secateur

_RATIO_MAX: Final = 1.5
_SHAPES: Final = {
    "row by key": "SELECT total FROM orders WHERE customer = {c} AND number = {n}",
    "rows, two conditions": "SELECT number, total FROM orders WHERE customer = {c} AND placed >= {d}",
    "GROUP BY of a customer": "SELECT state, count(*), sum(total) FROM orders WHERE customer = {c} GROUP BY state",
    "UPDATE by key": "UPDATE orders SET state = {s} WHERE customer = {c} AND number = {n}",
    "INSERT of one row": "INSERT INTO orders VALUES ({c}, {new}, {d}, {s}, {n}, 'de')",
    "join, replicated table": (
        "SELECT o.number, c.title FROM orders o JOIN countries c ON o.country = c.country WHERE o.customer = {c}"
    ),
}


def main() -> int:
    """Create the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=1000)
    parser.add_argument("--check", action="store_true", help=f"fail if a ratio is above {_RATIO_MAX:g}")
    options = parser.parse_args()
    ratios: list[float] = []
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as connection:
        _fill(connection)
        print("                         parameters  new literals   ratio")
        for title, shape in _SHAPES.items():
            times: dict[bool, list[float]] = {False: [], True: []}
            for number in range(2 * options.executions):
                times[number % 2 == 1].append(_executed(connection, shape, number, is_literal=number % 2 == 1))
            parameters_ms, literals_ms = (statistics.median(found) * 1000 for found in times.values())
            ratios.append(literals_ms / parameters_ms)
            print(f"{title:<22} {parameters_ms:>9.3f} ms {literals_ms:>10.3f} ms {ratios[-1]:>7.2f}", flush=True)
    return 1 if options.check and max(ratios) > _RATIO_MAX else 0


def _fill(connection: secateur.Connection) -> None:
    connection.execute(
        "CREATE TABLE orders (customer VARCHAR, number BIGINT, placed DATE, state VARCHAR, total BIGINT,"
        " country VARCHAR, PRIMARY KEY (customer, number)) PARTITION BY HASH (customer) PARTITIONS 256"
    )
    connection.execute("CREATE TABLE countries (country VARCHAR PRIMARY KEY, title VARCHAR) REPLICATED")
    connection.execute("INSERT INTO countries VALUES ('de', 'Germany'), ('fr', 'France')")
    connection.execute(
        "INSERT INTO orders SELECT 'C' || range % 500, range, DATE '2024-01-01' + CAST(range % 300 AS INTEGER), 'new',"
        " range % 100, if(range % 2 = 0, 'de', 'fr') FROM range(20000)"
    )


def _executed(connection: secateur.Connection, shape: str, number: int, *, is_literal: bool) -> float:
    """Execute a shape with values of its own; the seconds until its rows are read."""
    day = date(2024, 1, 1) + timedelta(days=number % 300)
    values: dict[str, tuple[str, Any]] = {
        "c": (f"'C{number % 500}'", f"C{number % 500}"),
        "n": (str(number), number),
        "new": (str(1_000_000 + number), 1_000_000 + number),
        "d": (f"DATE '{day}'", day),
        "s": (f"'state {number}'", f"state {number}"),
    }
    names = re.findall(r"\{(\w+)\}", shape)
    sql = re.sub(r"\{(\w+)\}", lambda found: values[found[1]][0] if is_literal else "?", shape)
    params = [] if is_literal else [values[name][1] for name in names]
    begun = time.perf_counter()
    cursor = connection.execute(sql, params)
    if cursor.description is not None:
        cursor.fetchall()
    return time.perf_counter() - begun


if __name__ == "__main__":
    raise SystemExit(main())
