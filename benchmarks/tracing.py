"""What do the hooks for OpenTelemetry cost a look-up of one row, and what does a trace?

Question: is a look-up by a client whose process has the library, and no tracer provider, as fast as one by a client
without the library?
Data: 100,000 rows on three Ray members.
Control: a client process in which the library cannot be imported, in the same rounds. ``recorded`` is a client whose
spans are made and dropped; its members have no provider.
Metric: processor time and time of a look-up at the client, microseconds; medians of rounds of ``--calls``, in which the
clients take turns.

Run: ``python -m benchmarks.tracing [--rounds N] [--calls N] [--check]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from typing import IO, Final

import pyarrow as pa

import secateur
from benchmarks.record import Bar, print_bars

_ROWS: Final = 100_000
_RATIO_MAX: Final = 1.05
"""Less than the medians of two equal clients differ on a busy machine."""

_BEFORE: Final = {
    "without the library": "import sys; sys.modules['opentelemetry'] = None",
    "no provider": "import opentelemetry.trace",
    "recorded": """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
""",
}
_CLIENT: Final = """
import os, sys, time
import secateur
with secateur.connect(os.environ["ADDRESS"]) as connection:
    for line in sys.stdin:
        calls = int(line)
        wall, cpu = time.perf_counter(), time.process_time()
        for number in range(calls):
            rows = connection.execute("SELECT v FROM t WHERE k = ?", [number]).fetchall()
            assert rows == [(number,)], rows
        print((time.perf_counter() - wall) / calls * 1e6, (time.process_time() - cpu) / calls * 1e6, flush=True)
"""


def main() -> int:
    """Start the cluster and the clients, let them take turns, print.

    Returns:
        0; with ``--check`` 1 if the bar was missed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--check", action="store_true", help=f"fail if the ratio is above {_RATIO_MAX:g}")
    options = parser.parse_args()
    with secateur.start(members=3, start_timeout_s=300) as cluster, cluster.connect() as connection:
        connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT) PARTITION BY HASH (k) PARTITIONS 271")
        connection.table("t").load(pa.table({"k": range(_ROWS), "v": range(_ROWS)}))
        environment = {**os.environ, "ADDRESS": cluster.address, "SECATEUR_TOKEN": cluster.token or ""}
        clients = {name: _client(before, environment) for name, before in _BEFORE.items()}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in clients}
        for number in range(options.rounds + 1):
            for name, client in clients.items():
                measured = _round(client, options.calls)
                if number:  # the first one warms up
                    found[name].append(measured)
        for client in clients.values():
            client.communicate()
    control = found["without the library"]
    print("client                      time   processor time   ratio of the processor time in each round, median")
    ratios = {}
    for name, times in found.items():
        wall_us = statistics.median(time[0] for time in times)
        cpu_us = statistics.median(time[1] for time in times)
        ratios[name] = statistics.median(own[1] / other[1] for own, other in zip(times, control, strict=True))
        print(f"{name:<22} {wall_us:>6.0f} us {cpu_us:>13.0f} us {ratios[name]:>7.3f}")
    bar = Bar.at_most(
        "a client with the library and no provider, against one without", ratios["no provider"], _RATIO_MAX
    )
    print_bars([bar])
    return 1 if options.check and not bar.met else 0


def _client(before: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", before + "\n" + _CLIENT]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _round(client: subprocess.Popen[str], calls: int) -> tuple[float, float]:
    """Microseconds of a look-up, and of processor time at the client."""
    _pipe(client.stdin).write(f"{calls}\n")
    _pipe(client.stdin).flush()
    wall_us, cpu_us = map(float, _pipe(client.stdout).readline().split())
    return wall_us, cpu_us


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


if __name__ == "__main__":
    raise SystemExit(main())
