"""1,000 tenants, an application of 40 lines, a tenant that goes mad, a member that is killed.

``python -m examples.tenants`` draws the 99th percentile of each second while it runs, and writes ``tenants.svg``. The
members are Ray actors, the application is a process of its own, and the callers are in this one.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal

import httpx
import pyarrow as pa
from rich.console import Console
from rich.live import Live
from rich.table import Table

import secateur
from examples.tenants.issuer import Issuer
from examples.tenants.picture import svg

__all__ = ["Play", "main", "run"]

TENANTS: Final = 1_000
ORDERS: Final = 200
_LINES: Final = 3
MAD: Final = "T007"
SAME, OTHER = "at the same member", "at other members"
_CALLERS_EACH: Final = 10
_PAUSE_S: Final = 0.1
_MAD_CALLERS: Final = 20
_SECONDS_DRAWN: Final = 60
_LIMITS: Final = httpx.Limits(max_connections=1000)
_BARS: Final = " ▁▂▃▄▅▆▇█"
_QUESTIONS: Final = (
    "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 10",
    "SELECT count(*), sum(amount) FROM orders",
    "SELECT product, sum(quantity) AS sold FROM orders JOIN lines USING (tenant, id) GROUP BY product ORDER BY sold",
    "SELECT * FROM orders WHERE id = 17",
)
_MADNESS: Final = "SELECT count(*) FROM orders a, orders b, orders c WHERE a.amount + b.amount < c.amount"


def set_up(conn: secateur.Connection) -> None:
    """Two tables that are partitioned by tenant, 1,000 tenants in them, and one policy for each."""
    placed = "PARTITION BY HASH (tenant) PARTITIONS 64"
    conn.execute(f"CREATE TABLE orders (tenant VARCHAR, id BIGINT, amount DOUBLE, PRIMARY KEY (tenant, id)) {placed}")
    conn.execute(
        "CREATE TABLE lines (tenant VARCHAR, id BIGINT, line BIGINT, product VARCHAR, quantity BIGINT,"
        f" PRIMARY KEY (tenant, id, line)) {placed}"
    )
    chance = random.Random(7)
    keys = [(f"T{tenant:03}", order) for tenant in range(TENANTS) for order in range(ORDERS)]
    tenants, ids = zip(*keys, strict=True)
    conn.table("orders").load(
        pa.table({"tenant": tenants, "id": ids, "amount": [chance.expovariate(0.01) for _ in keys]})
    )
    lines = [(*key, line, f"P{chance.randrange(50)}", chance.randrange(1, 9)) for key in keys for line in range(_LINES)]
    names = ("tenant", "id", "line", "product", "quantity")
    conn.table("lines").load(pa.table(dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))))
    conn.execute("CREATE ROLE customer")
    for table in ("orders", "lines"):
        conn.execute(f"GRANT SELECT ON {table} TO customer")
        conn.execute(f"CREATE POLICY own_rows ON {table} USING (tenant = session('tenant'))")
        conn.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def owner_of(cluster: secateur.Cluster, issuer: Issuer, tenant: str) -> str:
    """The member that has the rows of a tenant: the only one that its statements reach."""
    with secateur.connect(cluster.address, issuer.token(tenant)) as conn:
        cur = conn.execute("SELECT count(*) FROM orders")
        assert cur.fetchall() == [(ORDERS,)], "the rows of this tenant, and no others"
        (member,) = conn.explain("SELECT count(*) FROM orders").to_dict()["pruning"]["required_members"]
    return str(member)


class Play:
    """Calls of tenants, and how long each took.

    Args:
        url: The address of the application.
        groups: JWTs of the tenants that are watched, by group.
        mad: The JWT of the one that goes mad.
    """

    def __init__(self, url: str, groups: Mapping[str, Sequence[str]], mad: str) -> None:
        self._url = url
        self._groups = groups
        self._mad = mad
        self._started = 0.0
        self._taken: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in groups}
        self.answers = self.errors = 0
        self.events: dict[int, str] = {}

    @property
    def second(self) -> int:
        """Seconds since the beginning."""
        return int(time.perf_counter() - self._started)

    def lines(self) -> dict[str, list[float | None]]:
        """The 99th percentile of each second in milliseconds, by group."""
        return {name: [_p99(seconds[second]) for second in range(self.second)] for name, seconds in self._taken.items()}

    def p99(self, group: str, first: int, end: int) -> float | None:
        """The 99th percentile of some seconds in milliseconds."""
        return _p99([each for second in range(first, end) for each in self._taken[group][second]])

    async def run(self, seconds: int, kill: Callable[[], None]) -> None:
        """Three thirds: all are calm; one is mad; one is mad and a member is killed."""
        async with httpx.AsyncClient(base_url=self._url, timeout=60, limits=_LIMITS) as client:
            jwts = [jwt for some in self._groups.values() for jwt in some]
            await asyncio.gather(*(_asked(client, jwt, sql) for jwt in jwts for sql in _QUESTIONS))
            self._started = time.perf_counter()
            calls = [self._call(client, name, jwt) for name, jwts in self._groups.items() for jwt in jwts]
            callers = [asyncio.create_task(call) for call in calls]
            with Live(self._drawn(), refresh_per_second=2, get_renderable=self._drawn):
                await asyncio.sleep(seconds / 3)
                self.events[self.second] = "a tenant goes mad"
                callers += [asyncio.create_task(self._rave(client)) for _ in range(_MAD_CALLERS)]
                await asyncio.sleep(seconds / 3)
                self.events[self.second] = "a member is killed"
                await asyncio.to_thread(kill)
                await asyncio.sleep(seconds / 3)
            for caller in callers:
                caller.cancel()
            for ended in await asyncio.gather(*callers, return_exceptions=True):
                if not isinstance(ended, asyncio.CancelledError):
                    raise ended or AssertionError("a caller ended before the play")

    async def _call(self, client: httpx.AsyncClient, group: str, jwt: str) -> None:
        chance = random.Random(jwt)
        while True:
            started = time.perf_counter()
            answer = await _asked(client, jwt, chance.choice(_QUESTIONS))
            self._taken[group][self.second].append(time.perf_counter() - started)
            self.answers += answer.is_success
            self.errors += not answer.is_success
            await asyncio.sleep(_PAUSE_S * chance.uniform(0.5, 1.5))

    async def _rave(self, client: httpx.AsyncClient) -> None:
        while True:
            answer = await _asked(client, self._mad, _MADNESS)
            await asyncio.sleep(0 if answer.is_success else 0.05)

    def _drawn(self) -> Table:
        title = "; ".join(f"second {second}: {what}" for second, what in self.events.items()) or "all are calm"
        table = Table("tenants", "p99 of each second, from 1 ms to 10 s", "now", title=title)
        for group, line in self.lines().items():
            now = next((value for value in reversed(line) if value), 0.0)
            table.add_row(group, "".join(map(_bar, line[-_SECONDS_DRAWN:])), f"{now:.1f} ms")
        return table


async def _asked(client: httpx.AsyncClient, jwt: str, sql: str) -> httpx.Response:
    return await client.post("/sql", content=sql, headers={"authorization": f"Bearer {jwt}"})


def _p99(taken: Sequence[float]) -> float | None:
    return sorted(taken)[int(len(taken) * 0.99)] * 1000 if taken else None


def _bar(value: float | None) -> str:
    return " " if value is None else _BARS[min(8, max(1, round(2 * math.log10(max(value, 1.0)))))]


def _served(ends: ExitStack, address: str) -> str:
    """Start the application as a process of its own; returns its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "uvicorn", "examples.tenants.application:app", "--port", str(port), "--log-level", "critical"]
    served = subprocess.Popen([sys.executable, *command], env=os.environ | {"SECATEUR_ADDRESS": address})
    ends.callback(served.wait)
    ends.callback(served.terminate)
    url = f"http://127.0.0.1:{port}"
    for _ in range(300):
        with suppress(httpx.TransportError):
            httpx.get(f"{url}/docs")
            return url
        time.sleep(0.1)
    raise RuntimeError("the application did not start within 30 s")


def run(seconds: int, runtime: Literal["ray", "embedded"], picture: Path) -> Play:
    """Run it all; whatever was started is ended, also after an exception or Ctrl-C."""
    console = Console()
    with ExitStack() as ends:
        issuer = Issuer(Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="secateur-tenants-"))))
        with console.status("Starting three members"):
            cluster = ends.enter_context(secateur.start(members=3, runtime=runtime, jwt=issuer.trusted))
        with console.status(f"Loading orders of {TENANTS:,} tenants"), cluster.connect() as conn:
            set_up(conn)
        owner = owner_of(cluster, issuer, MAD)
        groups: dict[str, list[str]] = {SAME: [], OTHER: []}
        tenants = (f"T{number:03}" for number in random.Random(1).sample(range(TENANTS), TENANTS))
        while any(len(jwts) < _CALLERS_EACH for jwts in groups.values()):
            tenant = next(tenants)
            jwts = groups[SAME if owner_of(cluster, issuer, tenant) == owner else OTHER]
            if tenant != MAD and len(jwts) < _CALLERS_EACH:
                jwts.append(issuer.token(tenant))
        play = Play(_served(ends, cluster.address), groups, issuer.token(MAD))
        killed = next(member.id for member in cluster.members() if member.id != owner)
        asyncio.run(play.run(seconds, partial(cluster.kill_member, killed)))
    first, second, *_ = play.events
    for name in groups:
        thirds = (play.p99(name, *bounds) for bounds in ((0, first), (first, second), (second, play.second)))
        calm, mad, killed_too = (f"{found or math.nan:.1f} ms" for found in thirds)
        console.print(f"{name}: p99 {calm} calm, {mad} beside a mad tenant, {killed_too} with a member killed as well")
    console.print(f"{play.answers:,} answers, {play.errors} errors; the picture is in {picture}")
    picture.write_text(svg("p99 of each second, in milliseconds", play.lines(), play.events))
    return play


def main(arguments: Sequence[str] | None = None) -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--runtime", choices=["ray", "embedded"], default="ray")
    parser.add_argument("--picture", type=Path, default=Path("tenants.svg"))
    given = parser.parse_args(arguments)
    run(given.seconds, given.runtime, given.picture)


if __name__ == "__main__":
    main()
