"""Hazelcast: members in Java, the Python client; SQL over a map partitioned by an attribute, with an index."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.service import serve
from benchmarks.peers.statements import COLUMNS, GET, STATEMENTS, UPSERTS, Statement, with_dates

# A mapping cannot rename a primitive key, so the keys of these two maps are columns named __key.
_TEXTS = {
    "join with a replicated table": "SELECT p.title, count(*), sum(o.price) FROM orders o JOIN product p ON"
    " o.quantity = p.__key WHERE o.customer_id = ? GROUP BY p.title",
    "join of two co-located tables": "SELECT c.name, count(*), sum(o.price) FROM customers c JOIN orders o ON c.__key ="
    " o.customer_id WHERE c.__key = ? GROUP BY c.name",
    UPSERTS[0]: f"SINK INTO orders ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)",
}


def _texts() -> dict[str, str]:
    """Statement -> its text in Hazelcast's SQL, where it has one."""
    given = {one.name: one.sql for one in STATEMENTS if one != GET and not one.writes}
    return {**given, **_TEXTS}


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        # The library is not in the environment that holds the members.
        import hazelcast
        from hazelcast.config import IntType
        from hazelcast.serialization.api import CompactSerializer

        class WholeOrder:
            def __init__(self, row: tuple[Any, ...]) -> None:
                self.row = row

        class WholeOrderSerializer(CompactSerializer):
            def read(self, reader: Any) -> WholeOrder:
                return WholeOrder(
                    (
                        reader.read_int64("customer_id"),
                        reader.read_int64("order_id"),
                        reader.read_string("status"),
                        reader.read_date("ordered_on"),
                        reader.read_nullable_int32("quantity"),
                        reader.read_nullable_float64("price"),
                    )
                )

            def write(self, writer: Any, obj: Any) -> None:
                raise NotImplementedError("orders are only read")

            def get_type_name(self) -> str:
                return "WholeOrder"

            def get_class(self) -> type:
                return WholeOrder

        self._client = hazelcast.HazelcastClient(
            cluster_name="peers",
            cluster_members=service["addresses"],
            compact_serializers=[WholeOrderSerializer()],
            # Keys are BIGINT; without this an int is a key of 32 bits, which finds no row and is no error.
            default_int_type=IntType.LONG,
        )
        self._sql = self._client.sql
        self._texts = service["texts"]
        self._get = self._client.get_map("orders_by_id").blocking().get

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        return with_dates(statement, values, date.fromisoformat)

    def call(self, statement: Statement) -> Call:
        if statement == GET:
            return self._got
        sql = self._texts.get(statement.name)
        if sql is None:
            raise CannotAnswerError("Hazelcast has no ON CONFLICT; SINK INTO is the line of INSERT OR REPLACE")
        if statement.writes:
            return lambda values: self._written(sql, values)
        columns = range(1 + _commas_of_select(sql))
        return lambda values: self._rows(sql, values, columns)

    def close(self) -> None:
        self._client.shutdown()

    def _rows(self, sql: str, values: list[Any], columns: range) -> list[list[Any]]:
        with self._sql.execute(sql, *values).result() as result:
            return [[row.get_object_with_index(column) for column in columns] for row in result]

    def _written(self, sql: str, values: list[Any]) -> list[Any]:
        self._sql.execute(sql, *values).result()
        return []

    def _got(self, key: list[int]) -> list[tuple[Any, ...]]:
        found = self._get(key[1])
        return [] if found is None else [found.row]


def _commas_of_select(sql: str) -> int:
    """Commas between the columns of a SELECT whose functions have one argument each."""
    selected = re.match(r"SELECT (.*?) FROM", sql)
    assert selected is not None
    return selected[1].count(",")


@contextmanager
def _started(setting: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    from benchmarks.peers.adapters.java_members import free_ports, java_members

    ports = free_ports(setting["members"])
    joined = ",".join(str(port) for port in ports)
    arguments = [[joined, str(index), *([] if index else [setting["data"]])] for index in range(len(ports))]
    with java_members("HazelcastMember", arguments):
        yield {"addresses": [f"127.0.0.1:{port}" for port in ports], "texts": _texts()}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(_started)
    else:
        serve_calls(_Caller())
