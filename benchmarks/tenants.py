"""Does one tenant with heavy statements, or with a flood of look-ups, hold up another one at the same member?

Question: is the 99th percentile of a tenant's statements, while another asks for twenty times as many at once, at most
2 times that of the same statements alone?
Data: a table of two million rows in 8 partitions on one Ray member.
Statements: a GROUP BY of the whole table by each of both tenants, the *mad* one over twenty connections; and look-ups
by key of the calm tenant while four processes of the mad one make look-ups without a pause.
Control: the same statements of the calm tenant alone, in the same run; and, with ``--owner``, both tenants as the
owner, who has no tenants beside it, as before there were tenants.
Metric: milliseconds of each statement of the calm tenant.

The clients of a flood take the processors of a small machine from the calm client: they have a niceness of 15, and
where less than two cores are free the look-ups measure the operating system's queue. Run:
``python -m benchmarks.tenants [--seconds N] [--owner] [--check]``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from typing import Final

import numpy as np
import pyarrow as pa

import secateur
from benchmarks.record import Bar, print_bars
from secateur.cluster import Cluster

_ROWS: Final = 2_000_000
_MAD_CONNECTIONS: Final = 20
_MAD_PROCESSES: Final = 4
_WARM_UP_S: Final = 1.5
_STATEMENTS: Final = {
    "heavy": "SELECT v % 1000 AS g, count(*), sum(v), min(v), max(v) FROM numbers GROUP BY 1 ORDER BY 2, 1 LIMIT 10",
    "look-up": "SELECT v FROM numbers WHERE id = ?",
}


def main() -> int:
    """Start the cluster, measure the calm tenant alone and beside the mad one, print.

    Returns:
        0; with ``--check`` 1 if a bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each phase is measured")
    parser.add_argument("--owner", action="store_true", help="let both be the owner")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    parser.add_argument("--client", choices=tuple(_STATEMENTS), help=argparse.SUPPRESS)
    parser.add_argument("--connections", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--pause-ms", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client is not None:
        return _run_client(options.client, options.seconds, options.connections, options.pause_ms / 1000)
    bars = []
    with secateur.start(members=1, runtime="ray") as cluster, cluster.connect() as owner:
        _fill(owner)
        tokens = {
            name: cluster.token or "" if options.owner else cluster.tokens.create("read", principal=name).token
            for name in ("calm", "mad")
        }
        for kind, mad in (("heavy", (1, _MAD_CONNECTIONS)), ("look-up", (_MAD_PROCESSES, 1))):
            pause_ms = 2.0 if kind == "look-up" else 0.0
            alone = _measured(_started(cluster, tokens["calm"], kind, options.seconds, pause_ms=pause_ms))
            floods = [
                _started(cluster, tokens["mad"], kind, options.seconds + 2 * _WARM_UP_S, connections=mad[1])
                for _ in range(mad[0])
            ]
            time.sleep(_WARM_UP_S)
            beside = _measured(_started(cluster, tokens["calm"], kind, options.seconds, pause_ms=pause_ms))
            flooded = sum(len(_measured(flood)) for flood in floods)
            for title, taken in (("alone", alone), ("beside", beside)):
                p50, p99 = np.percentile(taken, [50, 99])
                print(f"{kind} {title:<7} {len(taken):>7} times, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
            print(f"{kind} of the mad tenant {flooded:>7} times")
            ratio = float(np.percentile(beside, 99) / np.percentile(alone, 99))
            bars.append(Bar.at_most(f"p99 of a {kind} beside a mad tenant, to alone", ratio, 2.0))
        for row in owner.execute(
            "SELECT tenant, sum(statements), round(sum(processor_ms)), round(sum(waiting_ms)) FROM secateur.tenants"
            " GROUP BY tenant ORDER BY tenant"
        ).fetchall():
            print("ledger: tenant {!r}, {} statements, {:.0f} ms of processors, {:.0f} ms waiting".format(*row))
    print_bars(bars)
    return int(options.check and not all(bar.met for bar in bars))


def _fill(owner: secateur.Connection) -> None:
    owner.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (id) PARTITIONS 8")
    ids = np.arange(_ROWS)
    owner.table("numbers").load(pa.table({"id": ids, "v": ids * 7919 % 1_000_003}))


def _started(
    cluster: Cluster, token: str, kind: str, seconds: float, *, connections: int = 1, pause_ms: float = 0.0
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.tenants", "--client", kind, "--seconds", str(seconds)]
    return subprocess.Popen(
        [*command, "--connections", str(connections), "--pause-ms", str(pause_ms)],
        env={**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": token},
        stdout=subprocess.PIPE,
        text=True,
    )


def _measured(client: subprocess.Popen[str]) -> list[float]:
    return list(json.loads(client.communicate()[0]))


def _run_client(kind: str, seconds: float, connections: int, pause_s: float) -> int:
    taken: list[float] = []
    if kind == "look-up" and not pause_s:
        os.nice(15)

    def work() -> None:
        chosen = random.Random(threading.get_ident())
        with secateur.connect(os.environ["ADDRESS"]) as connection:
            until_s = time.perf_counter() + seconds
            while time.perf_counter() < until_s:
                params = [chosen.randrange(_ROWS)] if kind == "look-up" else []
                began_s = time.perf_counter()
                connection.execute(_STATEMENTS[kind], params).fetchall()
                taken.append((time.perf_counter() - began_s) * 1000)
                time.sleep(pause_s)

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(taken))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
