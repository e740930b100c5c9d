"""Does a statement of one customer take the same on few members and on many?

Question: how long do a look-up and an aggregate of one customer's orders take on three, six and twelve members, pruned
and unpruned?
Data: orders of customers, a hundred each, on several clusters of one machine.
Control: the first cluster; clusters that are not asked are idle. The pruned answers are compared with the unpruned ones
first.
Metric: median of the medians of several rounds, in which everything takes its turn, in microseconds, and its ratio to
that of the first cluster.

Run: ``python -m benchmarks.serving.members [--members N ...] [--rows N] [--rounds N] [--calls N] [--check]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

import secateur
from benchmarks.record import Bar, print_bars
from benchmarks.serving.bare_echo import medians_us
from benchmarks.serving.orders import DDL, make_orders, random_keys

__all__ = ["main"]

_FLAT: Final = 1.1
_UNPRUNED_CALLS: Final = 20
_STATEMENTS: Final = {
    "row by key": "SELECT status, quantity FROM orders WHERE customer_id = ? AND order_id = ?",
    "count and sum of a customer": "SELECT count(*), sum(quantity) FROM orders WHERE customer_id = ? AND order_id >= ?",
}


def main() -> int:
    """Load, compare, measure, print.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[3, 6, 12], help="of each cluster")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--check", action="store_true", help=f"fail above {_FLAT:g} times the first cluster")
    options = parser.parse_args()
    orders = make_orders(options.rows)
    with ExitStack() as open_:
        ways: dict[str, Callable[[tuple[int, int]], Any]] = {}
        for members in options.members:
            cluster = open_.enter_context(secateur.start(members=members, runtime="ray", start_timeout_s=600.0))
            pruned, unpruned = (open_.enter_context(cluster.connect()) for _ in range(2))
            unpruned.execute("SET pruning = off")
            pruned.execute(DDL)
            pruned.table("orders").load(orders)
            for name, sql in _STATEMENTS.items():
                ways[f"{name}, {members}"] = _execute(pruned, sql)
                ways[f"{name}, unpruned, {members}"] = _execute(unpruned, sql)
        _compare(ways, options.rows)
        pruned_us = medians_us(
            {name: call for name, call in ways.items() if "unpruned" not in name},
            options.rounds,
            lambda number: random_keys(options.rows, options.calls, seed=number),
        )
        unpruned_us = medians_us(
            {name: call for name, call in ways.items() if "unpruned" in name},
            options.rounds,
            lambda number: random_keys(options.rows, _UNPRUNED_CALLS, seed=number),
        )
    first, bars = options.members[0], []
    print(f"{'statement':<30}{'members':>8}{'us':>8}{'unpruned us':>13}")
    for name in _STATEMENTS:
        for members in options.members:
            taken_us = pruned_us[f"{name}, {members}"]
            print(f"{name:<30}{members:>8}{taken_us:>8,.0f}{unpruned_us[f'{name}, unpruned, {members}']:>13,.0f}")
            if members != first:
                what = f"{name}, {members} members / {first}"
                bars.append(Bar.at_most(what, taken_us / pruned_us[f"{name}, {first}"], _FLAT))
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


def _execute(connection: secateur.Connection, sql: str) -> Callable[[tuple[int, int]], list[tuple[Any, ...]]]:
    return lambda key: connection.execute(sql, key).fetchall()


def _compare(ways: dict[str, Callable[[tuple[int, int]], Any]], rows: int) -> None:
    for key in random_keys(rows, 20, seed=1):
        for name in _STATEMENTS:
            answers = {way: call(key) for way, call in ways.items() if way.startswith(f"{name},")}
            if len(set(map(str, answers.values()))) != 1:
                raise SystemExit(f"{name} of {key}: {answers}")


if __name__ == "__main__":
    raise SystemExit(main())
