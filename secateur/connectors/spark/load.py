"""``secateur.spark.write``: loads a DataFrame into a table, all of it or nothing.

How Spark cuts rows into Arrow batches for our tasks is set for the load: it bounds a batch in rows and, unless the
bound is infinite, in bytes. To enforce the bound in bytes it adds up the buffers of the batch after every single row:
half of a load's cost in the JVM (measured with Spark 4.3: 1 M rows of six columns take 0.74 s of CPU with it and 0.38 s
without).
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TextIO, TypeAlias
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakSet

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark program gives it)
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from secateur.client.dbapi.connection import Connection
from secateur.client.loads.create_table import drop_unused
from secateur.client.loads.load_progress import OneLine
from secateur.connectors.spark.columns import partition_id
from secateur.connectors.spark.endpoint import Endpoint, answer_spark
from secateur.connectors.spark.environment import activate, is_known_format, runs_beside_us, this_environment
from secateur.connectors.spark.failures import error_behind
from secateur.connectors.spark.schema import check_columns
from secateur.connectors.spark.source import SecateurDataSource
from secateur.connectors.spark.write_options import NewTable, found_or_created
from secateur.connectors.spark.writer import WriteMode
from secateur.errors import Error, LoadFailedError, NotSupportedError, ProgrammingError
from secateur.partitioning.schemes.components import ROW_ID
from secateur.partitioning.tables.conform import MissingColumns
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.changes import AbortLoad

_registered: Final[WeakSet[SparkSession]] = WeakSet()


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The outcome of a load.

    Attributes:
        rows: Rows published; for ``delete``, rows removed.
        partitions: Partitions of the table that got rows.
        tasks: Spark tasks that sent them.
        seconds: From the call of :func:`write` to its return, the computation of the DataFrame included.
    """

    rows: int
    partitions: int
    tasks: int
    seconds: float


def register(spark: SparkSession) -> None:
    """Register the format ``secateur`` with a Spark session; :func:`write` and :func:`read` do so themselves.

    Needed where Spark does not find the format by itself, because secateur is not installed where its driver looks for
    modules (:mod:`pyspark_secateur`), and in a process that uses secateur by its format alone, so that the format finds
    the settings of the session and the variables of the process. A second call for a session does nothing.
    """
    activate(spark)
    answer_spark()
    if spark not in _registered:
        with this_environment(spark):
            # Spark logs a warning for a format that replaces one of the same name.
            if not is_known_format(spark, SecateurDataSource.name()):
                spark.dataSource.register(SecateurDataSource)
        _registered.add(spark)


def write(
    df: DataFrame,
    table: str,
    *,
    mode: str = "append",
    missing: Literal["null"] | None = None,
    address: str | None = None,
    token: str | None = None,
    tasks: int | None = None,
    overwrite_scope: str = "table",
    primary_key: Sequence[str] | None = None,
    partition_by: str | None = None,
    backups: int | None = None,
    change_feed: bool = False,
    progress: ShowProgress = None,
) -> LoadReport:
    """Write a DataFrame into a table: published at once when all of it has arrived, or not at all.

    Every task sends its rows straight to the members that own them, over sockets and as Arrow, where they are staged
    until the last task has ended.

    Args:
        df: Its columns match the table's by name without regard to case, in any order. Types convert where that loses
            nothing.
        table: The table.
        mode: ``append`` adds rows, whose keys have to be new; ``overwrite`` replaces all rows of the table; ``upsert``
            adds rows and replaces those with equal keys; of several rows with one key, the last in the order of the
            DataFrame stays. ``delete`` removes the rows with the keys of the DataFrame, which has at least the columns
            of the primary key; keys that are not there do not matter.
        missing: ``"null"`` has the default, or NULL, in the columns of the table that the DataFrame lacks. Without it,
            ``upsert`` keeps their values in rows that are there; ``append`` and ``overwrite`` refuse those without a
            default.
        address: ``cluster.address``; the default is the Spark setting ``spark.secateur.address`` or the variable
            ``SECATEUR_ADDRESS``.
        token: The secret of the cluster, if it has one; the default is ``spark.secateur.token`` or ``SECATEUR_TOKEN``.
        tasks: Bring the rows of each partition together in one of so many tasks before they are sent. That shuffle
            costs more than it saves, unless the DataFrame has so many tasks, and the table so many partitions, that a
            task has only a few rows for each.
        overwrite_scope: ``table``; or ``partitions``, for ``overwrite``: only range partitions that get a row are
            replaced, each as a whole.
        primary_key: Create the table, if there is none, with the columns of the DataFrame and this primary key; ``[]``
            for a table without one.
        partition_by: For a table that is created, the text behind PARTITION BY, such as ``HASH (a) PARTITIONS 16``.
        backups: For a table that is created, the copies beside the primary.
        change_feed: For a table that is created, whether it keeps its last changes for those who follow them.
        progress: Whether to show, once a second, the rows and partitions that have arrived and their rate, in a line on
            ``sys.stderr``; by default in a terminal and in a notebook, and nowhere else. Or a function, which is called
            with a :class:`ProgressReport` in a thread of its own. The driver reads ``secateur.loads`` for it; a cluster
            that does not answer that is no failure of the load.

    Returns:
        Counts of the published rows; for ``delete``, of the rows that were there and are removed.

    Raises:
        UnknownTableError: There is no such table.
        UnknownColumnError: The DataFrame has a column that the table does not have.
        DataError: A column, or a value in it, does not convert to the table's.
        NullKeyError: A NULL in a NOT NULL column.
        NoRangeError: A row that no range partition covers.
        DuplicateKeyError: An appended key exists already, or occurs twice in the DataFrame.
        LoadFailedError: Spark or a member failed on the way. Safe to repeat.
        OperationalError: Spark's workers run in another Python environment, or the cluster does not answer.
        ProgrammingError: There is no such mode or scope, or the table has another primary key or lacks the change feed.
        InterfaceError: The address is invalid or missing.
        NotSupportedError: The session is one of Spark Connect.

    The driver fetches all ranges and owners of the table, once, and sends them to the tasks, which ask for none.

    After each of these errors the table is unchanged; one that was created is dropped again, unless somebody else has
    begun to use it. Spark's exception is the ``__cause__`` of a LoadFailedError, and of no other, which says all that
    there is to say.
    """
    started_s = time.perf_counter()
    write_mode = WriteMode.of(mode, overwrite_scope)
    if primary_key is None and (partition_by is not None or backups is not None or change_feed):
        raise ProgrammingError(
            "partition_by, backups and change_feed are for a table that is created: give its primary_key as well, or []"
        )
    spark = df.sparkSession
    if not runs_beside_us(spark):
        raise NotSupportedError(
            "secateur.spark.write does not work over Spark Connect, whose driver is elsewhere: use"
            ' df.write.format("secateur")'
        )
    endpoint = Endpoint.of(spark, address, token)
    load_id = uuid4().hex
    register(spark)
    created: TableDef | None = None
    if primary_key is not None:
        key = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key)
        new = NewTable(key, partition_by, backups, change_feed)
        with endpoint.session() as session:
            found, is_new = found_or_created(session, endpoint, table, df.schema, new)
            created = found if is_new else None
    with _dropped_on_failure(endpoint, load_id, created), TemporaryDirectory(prefix="secateur-load-") as folder:
        if tasks is not None:
            lacking = MissingColumns.of_load(missing, is_upsert=write_mode is WriteMode.UPSERT)
            df = _gathered(df, endpoint, table, tasks, write_mode, lacking)
        report = Path(folder, "report.json")
        options = {
            **endpoint.options(),
            "table": table,
            "overwriteScope": overwrite_scope,
            "load_id": load_id,
            "report": str(report),
        }
        if missing is not None:
            options["missing"] = missing
        if write_mode in (WriteMode.UPSERT, WriteMode.DELETE):
            options["operation"] = write_mode.value
        writer = (
            df.write.format(SecateurDataSource.name())
            .mode("overwrite" if write_mode.is_overwrite else "append")
            .options(**options)
        )
        try:
            with batches_bounded_in_rows(df), progress_shown(endpoint, table, load_id, progress):
                writer.save()
        except Exception as failure:
            error = error_behind(failure, table=table)
            # Spark's has the frames of three processes around the same sentence
            raise error from failure if isinstance(error, LoadFailedError) else None
        published = json.loads(report.read_text())
    return LoadReport(**published, seconds=time.perf_counter() - started_s)


def _gathered(
    df: DataFrame, endpoint: Endpoint, table: str, tasks: int, mode: WriteMode, missing: MissingColumns
) -> DataFrame:
    """The rows in so many tasks, all rows of a partition in the same one."""
    with endpoint.session() as session:
        definition = session.table(table)
    check_columns(
        df.schema, definition, missing, keys_only=mode is WriteMode.DELETE
    )  # names every column at fault, where Spark would say that it cannot resolve one
    if ROW_ID in definition.scheme.columns:  # at random, by ids that the tasks give
        return df.repartition(tasks)
    # Rows without a range have no id: EVERY makes their range when they are sent; otherwise they are refused then.
    return df.repartitionById(tasks, F.pmod(F.coalesce(partition_id(definition.scheme), F.lit(0)), F.lit(tasks)))


@contextmanager
def _dropped_on_failure(endpoint: Endpoint, load_id: str, created: TableDef | None) -> Iterator[None]:
    """Around a load: if it fails, drop what it has staged, and the table that was created for it.

    Spark drops a failed load itself, unless its driver failed or the user interrupts us.
    """
    try:
        yield
    except BaseException:
        with suppress(Error), endpoint.session() as session:
            session.ask(AbortLoad(load_id))
            if created is not None:
                drop_unused(session, created)
        raise


_BYTES_CONF: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS_CONF: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_DEFAULT: Final = "10000"
_MAY_BE_LARGE: Final = (ArrayType, BinaryType, MapType, StructType)
_BYTES_UNBOUNDED: Final = str(2**31 - 1)

_writes: Final[WeakKeyDictionary[SparkSession, int]] = WeakKeyDictionary()
"""Writes under way in the sessions whose bound is lifted: the setting belongs to the session, the last write puts it
back.
"""
_lock: Final = threading.Lock()


@contextmanager
def batches_bounded_in_rows(df: DataFrame) -> Iterator[None]:
    """While open, Spark bounds the batches of this session's Python tasks in rows only.

    Does nothing if the user has set a bound in bytes or removed the one in rows, nor for binary and nested columns, of
    which 10,000 rows may be large.
    """
    spark = df.sparkSession
    lifted = not any(isinstance(field.dataType, _MAY_BE_LARGE) for field in df.schema.fields) and _lift(spark)
    try:
        yield
    finally:
        if lifted:
            _put_back(spark)


def _lift(spark: SparkSession) -> bool:
    with _lock:
        under_way = _writes.get(spark, 0)
        if under_way == 0:
            if spark.conf.get(_BYTES_CONF, None) is not None or int(spark.conf.get(_ROWS_CONF, _ROWS_DEFAULT)) <= 0:
                return False
            spark.conf.set(_BYTES_CONF, _BYTES_UNBOUNDED)
        _writes[spark] = under_way + 1
        return True


def _put_back(spark: SparkSession) -> None:
    with _lock:
        _writes[spark] -= 1
        if _writes[spark] == 0:
            spark.conf.unset(_BYTES_CONF)


_PERIOD_S: Final = 1.0
_QUERY: Final = "SELECT state, rows, partitions FROM secateur.loads WHERE id = ?"


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """A load on its way.

    Attributes:
        table: The table.
        rows: Rows that have arrived at members; those of failed tasks count as well.
        partitions: Partitions of the table that they are in.
        rows_per_s: Rows a second since the report before.
        seconds: Since the load began.
        is_publishing: Whether all rows have arrived, and members sort them.
    """

    table: str
    rows: int
    partitions: int
    rows_per_s: float
    seconds: float
    is_publishing: bool = False

    def __str__(self) -> str:
        placed = f"{self.table}: {self.rows:,} rows in {self.partitions:,} partitions"
        if self.is_publishing:
            return f"{placed} are being published, {self.seconds:.0f} s"
        return f"{placed}, {self.rows_per_s:,.0f} rows/s, {self.seconds:.0f} s"


ShowProgress: TypeAlias = bool | Callable[[ProgressReport], None] | None
"""Whether to show a load: None for where a person looks on, a function to be called with each report."""


@contextmanager
def progress_shown(endpoint: Endpoint, table: str, load_id: str, show: ShowProgress) -> Iterator[None]:
    """While open, report a load once a second.

    The driver has no part in a load, so it asks the cluster once a second: ``secateur.loads`` has the rows that the
    members have. A load never fails because that cannot be asked or shown.

    ``show`` is a function that gets the reports, in a thread of its own; True for a line on ``sys.stderr`` that is
    written over; None for that line in a terminal or a notebook, and otherwise nothing.
    """
    stream = sys.stderr
    if show is None:
        show = _is_watched(stream)
    if show is False:
        yield
        return
    line = OneLine(stream)  # over Spark's own bar, which may stand there
    report = line.show if show is True else show
    ended = threading.Event()
    follower = threading.Thread(
        target=_follow, args=(endpoint, table, load_id, report, ended), name="secateur-progress", daemon=True
    )
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join(_PERIOD_S)  # not for as long as a cluster that is out of reach may take
        line.clear()


def _follow(
    endpoint: Endpoint,
    table: str,
    load_id: str,
    report: Callable[[ProgressReport], None],
    ended: threading.Event,
) -> None:
    began_s = before_s = time.monotonic()
    before = 0
    with suppress(Error), endpoint.session() as session, Connection(session) as connection:
        while not ended.wait(_PERIOD_S):
            found = connection.execute(_QUERY, [load_id]).fetchone()
            if found is None:  # no row has arrived yet
                continue
            state, rows, partitions = found
            now_s = time.monotonic()
            rate = max(0, rows - before) / (now_s - before_s)
            before, before_s = rows, now_s
            report(ProgressReport(table, rows, partitions, rate, now_s - began_s, state != "staged"))


def _is_watched(stream: TextIO) -> bool:
    """Whether a person looks on: in a terminal, or in a notebook, whose streams are no terminals."""
    with suppress(AttributeError, ValueError):  # a stream that was replaced, or is closed
        if stream.isatty():
            return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
