"""A cluster that a process starts changes no setting of the process: those belong to its user."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROBE = """
import asyncio, decimal, faulthandler, gc, json, locale, logging, os, resource, signal, socket, sys, threading, warnings
import duckdb, numpy, pandas, pyarrow, secateur

RUNTIME = sys.argv[1]
if RUNTIME == "ray":
    import ray
    ray.init(address="local", include_dashboard=False)  # what Ray itself changes is Ray's
    ray.shutdown()

def settings():
    root = logging.getLogger()
    return {
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "umask": (mask := os.umask(0o22), os.umask(mask))[0],
        "recursion limit": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "limits": {
            name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")
        },
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "signal handlers": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "root logger": [root.level, [str(handler) for handler in root.handlers], logging.root.manager.disable],
        "warnings": [str(entry) for entry in warnings.filters],
        "locale": locale.setlocale(locale.LC_ALL),
        "decimal context": str(decimal.getcontext()),
        "floating-point errors": numpy.geterr(),
        "collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "hooks": [str(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook)],
        "tracing": [str(sys.gettrace()), str(sys.getprofile()), faulthandler.is_enabled()],
        "socket timeout": socket.getdefaulttimeout(),
        "loop policy": type(asyncio.get_event_loop_policy()).__qualname__,
        "threads of pyarrow": [pyarrow.cpu_count(), pyarrow.io_thread_count()],
        "memory pool": pyarrow.default_memory_pool().backend_name,
        "path": sys.path,
        "pandas": [pandas.get_option("display.max_rows"), pandas.get_option("mode.copy_on_write")],
        "duckdb": duckdb.sql("SELECT value FROM duckdb_settings() WHERE name IN ('threads', 'TimeZone')").fetchall(),
    }

before = settings()
with secateur.start(members=2, runtime=RUNTIME, start_timeout_s=150) as cluster, cluster.connect() as conn:
    conn.execute("CREATE TABLE t (id BIGINT, v DECIMAL(9, 2), PRIMARY KEY (id))")
    conn.execute("INSERT INTO t SELECT range, range FROM range(100)")
    conn.execute("SELECT sum(v), max(id) FROM t WHERE id > 5").fetchall()
    conn.execute("SELECT " + "(" * 200 + "1" + ")" * 200).fetchall()
    during = settings()
after = settings()
changed = {when: {name: [before[name], found[name]] for name in before if before[name] != found[name]}
           for when, found in (("during", during), ("after", after))}
print(json.dumps(changed))
"""


@pytest.mark.parametrize("runtime", ["embedded", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_cluster_changes_no_setting_of_the_process_that_starts_it(runtime: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RAY_USAGE_STATS_ENABLED"}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, runtime],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"during": {}, "after": {}}
