"""The measurements."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final

from msgspec import structs

import secateur
from secateur.client.dbapi.parameters import plain_values, values_of
from secateur.client.session import Session
from secateur.partitioning.tables import NamedType
from secateur.partitioning.tables.statistics import NO_STATISTICS, StatisticsSnapshot
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.affinity import assign
from secateur.partitioning.topology.topology import MemberAddress, Ownership, Topology
from secateur.planner.explain.explain import explain
from secateur.planner.planner import Planner
from secateur.planner.statement import CreateTable, PlannedSelect
from secateur.protocol.statements import SelectStatement

__all__ = ["Cost", "list_costs", "one_key_costs", "partition_costs"]

_ROUNDS: Final = 9
_MEMBERS: Final = ("m1", "m2", "m3")
_ORDERS: Final = (
    "CREATE TABLE orders (customer_id VARCHAR, id BIGINT, total DOUBLE, PRIMARY KEY (customer_id, id)) PARTITION BY"
    " HASH (customer_id) PARTITIONS 271"
)
_ONE_KEY: Final = "SELECT id, total FROM orders WHERE customer_id = ?"
_KEY_BAR_US: Final = 15.0
_LIST_BAR_US: Final = 20_000.0
_GROWTH_BAR: Final = 2.0
_PARAMETERS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Cost:
    """One measurement.

    Attributes:
        what: Of what.
        us: Microseconds, median.
        per_element_us: The same by element of the list, where there is one.
        ratio: To the same with 100 partitions, where that is asked.
        bar: What was promised, in words; None when nothing was.
        met: Whether it is kept.
    """

    what: str
    us: float
    per_element_us: float | None = None
    ratio: float | None = None
    bar: str | None = None
    met: bool = True


@dataclass
class Tables:
    """A catalog of tables without rows."""

    planner: Planner = field(default_factory=Planner)
    known: dict[str, TableDef] = field(default_factory=dict)
    owners: dict[str, Ownership] = field(default_factory=dict)
    version: int = 1
    statistics_snapshot: StatisticsSnapshot = NO_STATISTICS
    types: Mapping[str, NamedType] = field(default_factory=dict)

    @property
    def topology(self) -> Topology:
        return Topology(1, tuple(MemberAddress(member, "127.0.0.1", 1) for member in _MEMBERS), self.owners)

    def table(self, name: str) -> TableDef:
        return self.known[name]

    def relation(self, name: str) -> TableDef:
        return self.known[name]

    def tables(self) -> Sequence[TableDef]:
        return tuple(self.known.values())

    def create(self, ddl: str) -> None:
        """Add the table of a CREATE TABLE."""
        statement = self.planner.prepare(ddl, (), self)
        assert isinstance(statement, CreateTable)
        number = len(self.known) + 1
        # As the controller's catalog does: plans name the scheme of a table with many ranges, and do not contain it.
        scheme = statement.tdef.scheme.referred(f"{number}.1")
        table = structs.replace(statement.tdef, table_id=number, scheme_or_reference=scheme)
        self.known[table.name] = table
        self.owners[table.scheme.affinity_group()] = assign(table.scheme.partition_count, _MEMBERS, 1)

    def select(self, sql: str, params: Sequence[Any] = ()) -> PlannedSelect:
        """Plan a query."""
        statement = self.planner.prepare(sql, params, self)
        assert isinstance(statement, PlannedSelect)
        return statement


def median_us(run: Callable[[int], object], calls: int = 1) -> float:
    """Return the median process time of one call in microseconds.

    ``run`` gets the number of the call, so that it can do something new each time.
    """
    measured = []
    number = 0
    for _ in range(_ROUNDS + 1):
        start = time.process_time_ns()
        for _ in range(calls):
            run(number)
            number += 1
        measured.append((time.process_time_ns() - start) / calls / 1000)
    return statistics.median(measured[1:])


def one_key_costs() -> Iterator[Cost]:
    """A known statement with a new key each time."""
    bar = f"under {_KEY_BAR_US:g} us"
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as connection:
        connection.execute(_ORDERS)
        host, _, port = cluster.address.removeprefix("secateur://").rpartition(":")
        session = Session(host, int(port), token=cluster.token, timeout_s=10)

        def at_client(number: int) -> object:
            params = plain_values([f"C{number}"])
            prepared, _ = session.prepare(_ONE_KEY, params)
            assert isinstance(prepared, SelectStatement)
            return prepared.scans[0].tree.bind(values_of(prepared, params, time.time()))

        cost = median_us(at_client, 2000)
        session.close()
    yield Cost("one key, known to the client: text and value to partitions", cost, bar=bar, met=cost < _KEY_BAR_US)
    tables = Tables()
    tables.create(_ORDERS)

    def at_planner(number: int) -> object:
        statement = tables.select(_ONE_KEY, [f"C{number}"])
        return statement.plan.scans[0].tree.bind(statement.params or ())

    cost = median_us(at_planner, 2000)
    yield Cost("one key, known to the planner: text and value to partitions", cost, bar=bar, met=cost < _KEY_BAR_US)
    tree = tables.select(_ONE_KEY, ["C0"]).plan.scans[0].tree
    keys = [[f"C{number}"] for number in range(2000)]
    yield Cost("one key: binding alone", median_us(lambda number: tree.bind(keys[number % 2000]), 2000))
    computed = (
        tables.select("SELECT id FROM orders WHERE customer_id = upper(?) || '-' || CAST(? AS VARCHAR)", ["c", 1])
        .plan.scans[0]
        .tree
    )
    yield Cost("one computed key: binding alone", median_us(lambda number: computed.bind([f"c{number}", number]), 2000))
    yield Cost(
        "one key, a new text: planning",
        median_us(lambda number: tables.select(f"{_ONE_KEY} AND id > {number}", ["C1"]), 5),
    )


def list_costs(sizes: Sequence[int] = (10, 100, 1_000, 10_000)) -> Iterator[Cost]:
    """IN lists, as literals and as parameters."""
    tables = Tables()
    tables.create(_ORDERS.replace("271", "4000"))  # enough for the longest list to be worth hashing
    for size in sizes:
        yield from _literal_costs(tables, size)
        values = [f"C{element}" for element in range(size)]
        yield _bound(tables, f"{size:,} elements of a list parameter: binding", "customer_id = ANY(?)", [values], size)
        if size <= _PARAMETERS_MAX:
            yield _bound(
                tables, f"{size:,} parameters: binding", f"customer_id IN ({', '.join('?' * size)})", values, size
            )


def _literal_costs(tables: Tables, size: int) -> Iterator[Cost]:
    def text(number: int) -> str:
        listed = ", ".join(f"'C{number}-{element}'" for element in range(size))
        return f"SELECT id FROM orders WHERE customer_id IN ({listed})"

    new = [f"{text(number)} AND id > {size}{number}" for number in range(_ROUNDS + 1)]
    cost = median_us(lambda number: tables.select(new[number]))
    promised = size == 10_000
    bar = f"under {_LIST_BAR_US / 1000:g} ms" if promised else None
    yield Cost(
        f"{size:,} literals, a new text: planning", cost, cost / size, bar=bar, met=not promised or cost < _LIST_BAR_US
    )
    other = [text(number) for number in range(_ROUNDS + 1)]
    cost = median_us(lambda number: tables.select(other[number]))
    yield Cost(f"{size:,} literals, only the values are new: planning", cost, cost / size)


def _bound(tables: Tables, what: str, predicate: str, values: list[Any], size: int) -> Cost:
    tree = tables.select(f"SELECT id FROM orders WHERE {predicate}", values).plan.scans[0].tree
    cost = median_us(lambda _: tree.bind(values), max(1, 1000 // size))
    return Cost(what, cost, cost / size)


def partition_costs() -> Iterator[Cost]:
    """A point predicate on a table of 100 and of 100,000 partitions, of hashes and of ranges."""
    first = date(1800, 1, 1)
    hashed = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS {}"
    ranged = "CREATE TABLE t (k DATE PRIMARY KEY, v BIGINT) PARTITION BY RANGE (k) SPLIT AT ({})"
    few = dict(_point_costs(hashed.format(100), 5))
    yield from _compared("hash", few, dict(_point_costs(hashed.format(100_000), 5)))
    splits = [f"'{first + timedelta(days=day)}'" for day in range(99_999)]
    few = dict(_point_costs(ranged.format(", ".join(splits[:99])), first))
    yield from _compared("range", few, dict(_point_costs(ranged.format(", ".join(splits)), first)))


def _point_costs(ddl: str, key: object) -> Iterator[tuple[str, float]]:
    tables = Tables()
    tables.create(ddl)
    statement = tables.select("SELECT v FROM t WHERE k = ?", [key])
    tree = statement.plan.scans[0].tree
    yield "plan", median_us(lambda number: tables.select(f"SELECT v FROM t WHERE k = ? AND v > {number}", [key]), 3)
    yield "bind", median_us(lambda _: tree.bind([key]), 500)
    yield "explain", median_us(lambda _: explain(statement, tables, {}), 3)


def _compared(kind: str, few: Mapping[str, float], many: Mapping[str, float]) -> Iterator[Cost]:
    for step, cost in few.items():
        yield Cost(f"{kind}, 100 partitions, one key: {step}", cost)
        ratio = many[step] / cost
        yield Cost(
            f"{kind}, 100,000 partitions, one key: {step}",
            many[step],
            ratio=ratio,
            bar=f"at most {_GROWTH_BAR:g}x of 100",
            met=ratio <= _GROWTH_BAR,
        )
