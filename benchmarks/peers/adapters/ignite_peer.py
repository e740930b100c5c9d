"""Apache Ignite: nodes in Java, pyignite with partition awareness; SQL by the H2 engine over co-located tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.service import serve
from benchmarks.peers.statements import COLUMNS, GET, STATEMENTS, UPSERTS, Statement, with_dates

_PORTS_A_NODE = 3


def _texts() -> dict[str, str]:
    """Statement -> its text in Ignite's SQL, where it has one."""
    given = {one.name: one.sql for one in STATEMENTS if one != GET and not one.writes}
    return {**given, UPSERTS[0]: f"MERGE INTO orders ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"}


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        # The library is not in the environment that holds the members.
        from pyignite import Client
        from pyignite.datatypes import TimestampObject

        self._client = Client(partition_aware=True)
        addresses = [address.split(":") for address in service["addresses"]]
        self._client.connect([(host, int(port)) for host, port in addresses])
        self._texts, self._timestamp = service["texts"], TimestampObject
        self._get = self._client.get_cache("orders_by_id").get

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        # A DATE cannot be read by pyignite, so days are timestamps; these travel with their nanoseconds.
        return with_dates(statement, values, lambda text: ((datetime.fromisoformat(text), 0), self._timestamp))

    def call(self, statement: Statement) -> Call:
        if statement == GET:
            return self._got
        if statement.name not in self._texts:
            raise CannotAnswerError("Ignite has no ON CONFLICT; MERGE is the line of INSERT OR REPLACE")
        sql, run = self._texts[statement.name], self._client.sql
        if statement.writes:
            return lambda values: _no_rows(list(run(sql, query_args=values)))
        return lambda values: [[_day(value) for value in row] for row in run(sql, query_args=values)]

    def close(self) -> None:
        self._client.close()

    def _got(self, key: list[int]) -> list[tuple[Any, ...]]:
        found = self._get(key[1])
        if found is None:
            return []
        return [(found.CUSTOMER_ID, key[1], found.STATUS, _day(found.ORDERED_ON), found.QUANTITY, found.PRICE)]


def _day(value: Any) -> Any:
    return value[0].date() if type(value) is tuple else value


def _no_rows(_: object) -> list[Any]:
    return []


@contextmanager
def _started(setting: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    from benchmarks.peers.adapters.java_members import free_ports, java_members

    ports = free_ports(_PORTS_A_NODE * setting["members"])
    joined = ",".join(str(port) for port in ports)
    arguments = [
        [joined, str(index), str(Path(setting["work"]) / str(index)), *([] if index else [setting["data"]])]
        for index in range(setting["members"])
    ]
    with java_members("IgniteMember", arguments, ("IGNITE_QUIET=true", "IGNITE_UPDATE_NOTIFIER=false")):
        yield {"addresses": [f"127.0.0.1:{port}" for port in ports[2::_PORTS_A_NODE]], "texts": _texts()}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(_started)
    else:
        serve_calls(_Caller())
