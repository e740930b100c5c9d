"""``secateur demo``: a cluster for a minute, and what pruning does on it."""

from __future__ import annotations

import importlib.util
import statistics
from typing import Final, Literal

import msgspec
import typer

import secateur
from secateur.cli import clusters
from secateur.cli.clusters import DEFAULT_NAME, AsJson, NewName, typed
from secateur.cli.rendering import cost_of

_ROWS: Final = 200_000
_CUSTOMERS: Final = 5_000
_REPEATS: Final = 50
_TABLE: Final = (
    "CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, day DATE, amount DECIMAL(10, 2), PRIMARY KEY"
    " (customer_id, order_id)) PARTITION BY HASH (customer_id) PARTITIONS 24"
)
_FILL: Final = (
    f"INSERT INTO orders SELECT i % {_CUSTOMERS}, i, DATE '2026-01-01' + (i % 365)::INTEGER, (i % 9973) / 100"
    f" FROM range({_ROWS}) AS r(i)"
)
_QUESTIONS: Final = (
    ("one row by its key", "SELECT * FROM orders WHERE customer_id = 42 AND order_id = 5042"),
    ("one customer", "SELECT count(*), sum(amount) FROM orders WHERE customer_id = 42"),
    ("three customers", "SELECT customer_id, sum(amount) FROM orders WHERE customer_id IN (1, 2, 3) GROUP BY ALL"),
    ("everything", "SELECT day, sum(amount) FROM orders GROUP BY day ORDER BY day LIMIT 3"),
)


def demo(name: NewName = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Start three members, fill a table, and ask it four questions with pruning on and off.

    The cluster ends with the command; --name is for the commands that it shows at its end.

    For example:

        secateur demo
    """
    runtime: Literal["ray", "embedded"] = "ray" if importlib.util.find_spec("ray") is not None else "embedded"

    def say(text: str) -> None:
        if not as_json:
            typer.echo(text)

    questions = []
    say(f"starting three members ({'as Ray actors' if runtime == 'ray' else 'in this process'}) ...")
    with (
        secateur.start(members=3, runtime=runtime) as cluster,
        cluster.connect() as pruned,
        cluster.connect() as unpruned,
    ):
        unpruned.execute("SET pruning = off")
        pruned.execute(_TABLE)
        pruned.execute(_FILL)
        say(f"{_ROWS:,} orders of {_CUSTOMERS:,} customers in 24 partitions\n")
        for title, sql in _QUESTIONS:
            found, everything = _median_ms(pruned, sql), _median_ms(unpruned, sql)
            say(f"{title}: {sql}")
            say(f"  pruned    {found[0]:7.2f} ms{cost_of(found[1])}")
            say(f"  unpruned  {everything[0]:7.2f} ms{cost_of(everything[1])}\n")
            told = {"pruned": found, "unpruned": everything}
            times = {name: {"median_ms": ms, "stats": stats} for name, (ms, stats) in told.items()}
            questions.append({"question": title, "sql": sql, **times})
        say(str(pruned.explain(_QUESTIONS[1][1])))
    begin = "" if clusters.find(name) is not None else f"{typed('start', name)}, then "
    say(f"\nYour own: {begin}{typed('load FILE --table t --create --primary-key COLUMNS', name)}")
    if as_json:
        typer.echo(msgspec.json.encode(questions).decode())


def _median_ms(connection: secateur.Connection, sql: str) -> tuple[float, secateur.QueryStats | None]:
    times, stats = [], None
    for _ in range(_REPEATS):
        with connection.execute(sql) as cursor:
            cursor.fetchall()
            stats = cursor.stats
        times.append(0.0 if stats is None else stats.elapsed_ms)
    return statistics.median(times), stats
