"""Clusters that many tests share. Every table belongs to one test: take its name from ``table_name``."""

from __future__ import annotations

import atexit
import decimal
import functools
import gc
import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import hypothesis
import pytest
import trustme

import secateur
from secateur.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = (
    "tests/simulation/test_simulation.py",
    "tests/system/test_values_of_other_types.py",
    "tests/system/test_cli_names.py",
    "tests/plans/test_plans.py",
    "tests/system/test_many_executions.py",
    "tests/system/test_members_on_ray.py",
    "tests/sql/test_sql_files.py",
    "tests/tpc/test_tpcds.py",
    "tests/system/test_verify.py",
)
"""Files that take more than ten seconds on an idle machine, the longest first."""
WAITING = (
    "tests/system/dashboard/test_dashboard.py",
    "tests/system/test_returning_members.py",
    "tests/system/test_member_leases.py",
    "tests/system/test_lying_disks.py",
    "tests/system/test_cold_restart.py",
    "tests/system/test_healing.py",
    "tests/system/test_endless_statements.py",
    "tests/system/test_scaling.py",
    "tests/system/test_failover_copies.py",
    "tests/system/test_kills_between_phases.py",
    "tests/system/test_lost_members.py",
    "tests/system/test_moves_under_load.py",
    "tests/unit/client/test_silent_members.py",
    "tests/system/test_cluster_life.py",
    "tests/system/test_unused_tables.py",
    "tests/system/test_write_behind_load.py",
    "tests/system/test_job_writes.py",
    "tests/system/test_job_failures.py",
    "tests/unit/wire/test_channel.py",
    "tests/system/test_controller_restarts.py",
    "tests/unit/cluster/test_plan_source.py",
)
"""Files that wait for most of their time, until a member counts as lost, the longest first."""
CASES_MIN = 5
MANY_CASES = 24
"""Where a test has so many cases, a half or a quarter of them finds nearly what all find; two samples are different."""
SPARK_PYTHON = str(Path(__file__).parent / "spark_python")
_numbers = itertools.count(1)

# For each client that it makes, also for http://, httpx reads the certificates of all authorities that there are: most
# of what a test with a request costs. What it makes of them may be shared.
httpx._transports.default.create_ssl_context = functools.cache(httpx.create_ssl_context)  # type: ignore[attr-defined]

# Spark's jobs are small here: compiling their code once more, for the last bit of speed, costs more than it brings.
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS", '--driver-java-options "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" pyspark-shell'
)

# On a busy machine any example may take long.
hypothesis.settings.register_profile("of a busy machine", deadline=None)
hypothesis.settings.load_profile("of a busy machine")

# Nothing that secateur does may depend on the decimal context of a thread: all tests run in one in which what is
# rounded to five digits raises.
decimal.DefaultContext.prec = 5
decimal.DefaultContext.traps[decimal.Inexact] = True
decimal.setcontext(decimal.DefaultContext.copy())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        type=int,
        metavar="SEED",
        help=f"of each test with {CASES_MIN} cases or more, run a half, with {MANY_CASES} or more a quarter; SEED"
        " decides which ones (default: all cases)",
    )


@pytest.hookimpl(tryfirst=True)  # before -m leaves out what is slow
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All but a few cases of a test that is ``sampled`` are slow; which ones, their names decide. ``--sample`` leaves
    out more of those that are not slow.
    """
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and is_left_out(item.nodeid, marker.kwargs["one_in"]):
            item.add_marker(pytest.mark.slow)
    seed = config.getoption("sample")
    if seed is not None:
        quick = [item.nodeid for item in items if item.get_closest_marker("slow") is None]
        left_out = not_sampled(quick, seed)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]


def not_sampled(cases: Iterable[str], seed: int) -> set[str]:
    """The cases that a sample leaves out: of each test with many, about one of two, or three of four."""
    tests: dict[str, list[str]] = {}
    for case in cases:
        tests.setdefault(case.partition("[")[0], []).append(case)
    many = [test for test in tests.values() if len(test) >= CASES_MIN]
    return {
        case for test in many for case in test if is_left_out(f"{seed} {case}", 4 if len(test) >= MANY_CASES else 2)
    }


def is_left_out(name: str, one_in: int) -> bool:
    """Whether a name is not among the one in so many that stay."""
    return zlib.crc32(name.encode()) % one_in != 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file goes to one worker, as by ``--dist loadfile``; those that use Spark go to one together, and share it.

    Spark is started first, since its files take longest, and then the other files that take long: one that begins last
    runs on one core, while the others are idle. One worker begins with the files that wait, which leave the cores to
    the others. The files of each folder are spread evenly over the rest of the run: some folders compute and others
    wait, and the workers fill the cores while they do different things.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    root, here = config.rootpath, Path(__file__).parent
    spark = {
        path.relative_to(root).as_posix()
        for path in here.rglob("test_*.py")
        if "spark_session" in path.read_text(encoding="utf-8")
    }

    class Scheduling(LoadFileScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "spark" if file in spark else file

        def _assign_work_unit(self, node: Any) -> None:
            if not due:
                due.update(evenly_spread(self.workqueue))
            waiting = [scope for scope in WAITING if scope in self.workqueue] if node is self.nodes[0] else []
            chosen = waiting[0] if waiting else min(self.workqueue, key=due.__getitem__)
            self.workqueue.move_to_end(chosen, last=False)
            super()._assign_work_unit(node)

    due: dict[str, float] = {}
    return Scheduling(config, log)


def evenly_spread(scopes: Iterable[str]) -> dict[str, float]:
    """The place of each scope in a run of length 1: in one folder, they have the same distance of each other."""
    folders: dict[str, list[str]] = {}
    for scope in scopes:
        folders.setdefault("/".join(scope.split("/")[:2]), []).append(scope)
    places = {scope: index / len(folder) for folder in folders.values() for index, scope in enumerate(folder)}
    first = ("spark", *LONG)
    places |= {scope: float(index - len(first)) for index, scope in enumerate(first) if scope in places}
    return places | {scope: 1.0 + index for index, scope in enumerate(WAITING) if scope in places}


def pytest_configure() -> None:
    """What is collected is no garbage: to look for some meanwhile is a sixth of the time it takes."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected lives as long as the process: without this, the garbage collector looks at it again and
    again, which is a tenth of the processor time of tests that make many objects. The little garbage among it may stay.

    To look for garbage after each 700 objects that are made is a twentieth; members with a process look as rarely.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


# DuckDB lists at the end of the process what was never freed: what is frozen would be among it. Not earlier, since
# pytest itself collects garbage again and again when it is done, which takes seconds with all that was collected.
atexit.register(gc.unfreeze)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three members in this process."""
    with secateur.start(members=3, runtime="embedded", member_silence_s=10.0) as running:
        yield running


@pytest.fixture(scope="session")
def lone_cluster() -> Iterator[Cluster]:
    """One member in this process."""
    with secateur.start(members=1, runtime="embedded", member_silence_s=10.0) as running:
        yield running


@pytest.fixture
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as connection:
        yield connection


@pytest.fixture
def table_name() -> str:
    """A name that no other test uses."""
    return f"t{next(_numbers)}"


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., SparkSession]]:
    """Makes a session with some configuration, for one file; all have one Spark, of two cores, where a task may fail
    twice. To start another one and have Java compile everything again costs ten seconds of processor time.
    """
    from pyspark.sql import SparkSession

    from secateur.connectors.spark.environment import activate

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join(filter(None, (SPARK_PYTHON, os.environ.get("PYTHONPATH")))))
        driver = (
            SparkSession.builder.master("local[2,3]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.warehouse.dir", tmp_path_factory.mktemp("warehouse").as_uri())
            .getOrCreate()
        )
    driver.sparkContext.setLogLevel("OFF")

    def session(settings: Mapping[str, str] | None = None) -> SparkSession:
        made = driver.newSession()
        for name, value in (settings or {}).items():
            made.conf.set(name, value)
        activate(made)
        return made

    yield session
    driver.stop()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """An authority for certificates of this run."""
    return trustme.CA()


@pytest.fixture(scope="session")
def tls(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> secateur.Tls:
    """A certificate for 127.0.0.1, its key, and its authority."""
    folder = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return secateur.Tls(certificate=folder / "server.pem", ca=folder / "ca.pem")
