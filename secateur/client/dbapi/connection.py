"""The connection of PEP 249, with tables and plans as well as cursors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Literal, Protocol, Self, overload

import secateur.protocol.query as protocol
from secateur import errors
from secateur.client.changes import Changes, Position
from secateur.client.dbapi.cursor import Cursor
from secateur.client.dbapi.parameters import Parameters, plain_values
from secateur.client.dbapi.shown_rows import text_table
from secateur.client.jobs.job import Job, find_job, list_jobs, submit_job
from secateur.client.jobs.light_job import LightJob, submit_light
from secateur.client.jobs.resolved_plan import ResolvedPlan
from secateur.client.jobs.submittable import Params, Submittable, plan_job
from secateur.client.loads.create_table import columns_of, create_table_sql
from secateur.client.loads.table_handle import TableHandle
from secateur.client.session import Session
from secateur.client.tokens import Tokens
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, Drawable, abbreviated
from secateur.errors import DataError, Error, NotSupportedError, ParameterError, forget_frames
from secateur.protocol.catalog import RegisterExternalTable
from secateur.protocol.job_description import JobConfig
from secateur.protocol.jobs import JobInfo

_MEMBERS_SHOWN_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class Explain(Drawable):
    """The plan of a statement: ``str()`` is the text, :meth:`to_dict` the same as data.

    A notebook shows its DAG as a picture, below the rest of the text.
    """

    text: str
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The ``EXPLAIN (FORMAT JSON)`` form; a copy."""
        return copy.deepcopy(self.data)

    def to_text(self) -> str:
        """The text of EXPLAIN."""
        return self.text

    def diagram(self) -> Diagram:
        """Draw a box for each vertex with its members, an arrow for each edge, and the partitions and members above."""
        dag = self.data["dag"]
        boxes = []
        for vertex in dag["vertices"]:
            places = [f"{member} x{vertex['local_parallelism']}" for member in vertex["members"]]
            boxes.append(DiagramNode(vertex["name"], abbreviated(places, _MEMBERS_SHOWN_MAX), "\n".join(places)))
        arrows = tuple(
            DiagramEdge(
                edge["from"],
                edge["to"],
                (edge["kind"], *(["distributed"] if edge["distributed"] else [])),
                is_bold=edge["distributed"],
            )
            for edge in dag["edges"]
        )
        return Diagram(tuple(boxes), arrows, tuple(self.text.partition("\ndag:\n")[0].split("\n")))


_TABLES: Final = "SELECT table_name, partitioning, rows, bytes FROM secateur.tables ORDER BY table_name"


class EncodableConnector(Protocol):
    """A connector, as far as a client has to know it."""

    def encoded(self) -> bytes:
        """The connector as it travels; code by cloudpickle."""


class ShownCursor(Cursor):
    """A cursor that is shown by its next rows, which stay to be fetched.

    Made by :meth:`Connection.sql <secateur.client.dbapi.connection.Connection.sql>`.
    """

    def __repr__(self) -> str:
        if self._closed or self._rows is None:
            return super().__repr__()
        try:
            return text_table(*self._shown(self._rows))
        except DataError as error:
            return f"{super().__repr__()}\n{error.message}"


class Connection:
    """A connection to a cluster. Made by :func:`secateur.connect`; a context manager that closes itself.

    Threads may share it. A process that is forked may use it as well, and gets sockets of its own; results that come in
    parts stay those of the parent. Every statement commits by itself: there are no transactions over several
    statements. Names of ``PREPARE`` are those of the connection.
    """

    Warning: Final = errors.Warning
    Error: Final = errors.Error
    InterfaceError: Final = errors.InterfaceError
    DatabaseError: Final = errors.DatabaseError
    DataError: Final = errors.DataError
    OperationalError: Final = errors.OperationalError
    IntegrityError: Final = errors.IntegrityError
    InternalError: Final = errors.InternalError
    ProgrammingError: Final = errors.ProgrammingError
    NotSupportedError: Final = errors.NotSupportedError

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def address(self) -> str:
        """``secateur://host:port`` of the cluster."""
        return self._session.address

    @property
    def closed(self) -> bool:
        return self._session.closed

    @property
    def local_effects(self) -> bool:
        """Whether statements may change something on this side; True unless it was set to False.

        False refuses COPY, BACKUP and RESTORE, which read or write files of this machine, and SET, which changes this
        connection for whoever uses it next: for a program that executes statements of others.
        """
        return self._session.local_effects

    @local_effects.setter
    def local_effects(self, value: bool) -> None:
        self._session.local_effects = value

    def cursor(self) -> Cursor:
        """A new cursor."""
        session = self._session
        if session.closed:
            session.check_open()  # says so
        return Cursor(self, session)

    def execute(self, sql: str, params: Parameters = (), *, timeout: float | None = None) -> Cursor:
        """Execute one statement on a new cursor; see :meth:`Cursor.execute`."""
        return Cursor(self, self._session).execute(sql, params, timeout=timeout)

    def sql(self, sql: str, params: Parameters = ()) -> ShownCursor:
        """Execute one statement on a new cursor that is shown by its rows: for a shell of Python.

        ``conn.sql("FROM orders")`` prints the first rows, which can still be fetched. The arguments and errors are
        those of :meth:`execute`.
        """
        self._session.check_open()
        return ShownCursor(self, self._session).execute(sql, params)

    def executemany(self, sql: str, seq_of_params: Sequence[Parameters]) -> Cursor:
        """Execute a statement that changes rows on a new cursor, for many sets of parameters.

        See :meth:`Cursor.executemany`.
        """
        return self.cursor().executemany(sql, seq_of_params)

    def explain(self, sql: str, params: Parameters = ()) -> Explain:
        """Return the plan of a statement: kept partitions and members, and the reason where nothing is pruned.

        Nothing is executed.

        Args:
            sql: The statement, without EXPLAIN in front.
            params: Its parameters; without them, the plan shows them open.
        """
        control = self._session.begin_statement()
        try:
            answer = self._session.ask(protocol.ExplainRequest(sql, plain_values(params), self._session.settings()))
        except Error as error:
            forget_frames(error)
            raise
        finally:
            self._session.end_statement(control)
        return Explain(answer.message.text, answer.message.json)

    @overload
    def submit(
        self,
        dag: Submittable,
        config: JobConfig | None = None,
        params: Params = (),
        *,
        light: Literal[False] = False,
    ) -> Job: ...

    @overload
    def submit(
        self, dag: Submittable, config: JobConfig | None = None, params: Params = (), *, light: Literal[True]
    ) -> LightJob: ...

    def submit(
        self, dag: Submittable, config: JobConfig | None = None, params: Params = (), *, light: bool = False
    ) -> Job | LightJob:
        """Run a DAG or a pipeline on the members that own the partitions it requires.

        Args:
            dag: A :class:`secateur.DAG`, or a :class:`secateur.Pipeline` whose chains have reached their sinks.
                Functions in it travel by cloudpickle, and only to a cluster that was started with ``allow_code=True``.
            config: A :class:`secateur.JobConfig`; None for its defaults.
            params: The parameters of the job, by position or by name.
            light: Without a record: the job starts with one message less to wait for, ends with this connection, and
                fails with a lost member. For jobs of milliseconds, of which there are many.

        Raises:
            DagError: The DAG is not valid.
            SerializationError: A function in it cannot be pickled.
            JobExistsError: A job with the name in ``config`` has not ended.
        """
        return (
            submit_light(self._session, dag, config, params)
            if light
            else submit_job(self._session, dag, config, params)
        )

    def plan(self, dag: Submittable, config: JobConfig | None = None, params: Params = ()) -> ResolvedPlan:
        """Return where a job would run now: participants, processors and partitions on each member, and edges.

        It is to jobs what :meth:`explain` is to statements: nothing is started. ``str()`` of it is the text; a notebook
        shows the picture.

        Args:
            dag: As for :meth:`submit`.
            config: As for :meth:`submit`.
            params: As for :meth:`submit`.

        Raises:
            Error: Why it could not start; see :meth:`submit`.
        """
        return plan_job(self._session, dag, config, params)

    def new_job_if_absent(
        self, name: str, dag: Submittable, config: JobConfig | None = None, params: Params = ()
    ) -> Job:
        """Return the job of that name that has not ended, or start a new one.

        If several clients ask at once, only one of them starts it.

        Args:
            name: The name, in place of that in ``config``.
            dag: As for :meth:`submit`; unused when the job is there.
            config: As for :meth:`submit`.
            params: As for :meth:`submit`.

        Raises:
            Error: As :meth:`submit`.
        """
        return submit_job(self._session, dag, config, params, name)

    def job(self, id_or_name: str) -> Job:
        """The job on record with that id, or else the newest of that name, whichever client submitted it.

        Raises:
            UnknownJobError: There is none, or it its record was dropped some time after it ended.
        """
        return find_job(self._session, id_or_name)

    @property
    def tokens(self) -> Tokens:
        """Tokens with a role, made and revoked by a connection with the role ``admin``."""
        return Tokens(lambda message: self._session.ask(message).message)

    def jobs(self) -> list[JobInfo]:
        """The jobs on record, newest first: all that have not ended, and the last 1,000 that have.

        Light jobs have no record.
        """
        return list_jobs(self._session)

    def table(self, name: str) -> TableHandle:
        """One table, by name without regard to case.

        Raises:
            UnknownTableError: There is no such table.
        """
        return TableHandle(self._session, self._session.outlined_table(name))

    def changes(self, table: str, since: Position | str | None = None, *, follow: bool = False) -> Changes:
        """The changes of the rows of a table, as batches of Arrow, from the change feed of its partitions.

        ::

            changes = conn.changes("orders", follow=True)  # from now on
            orders = conn.execute("SELECT * FROM orders").arrow()
            for batch in changes: ...  # what was changed meanwhile comes again: apply it by key

        The table was created ``WITH (change_feed = true)``. Each batch has its columns, ``_change_type`` and
        ``_commit_version``; see :class:`~secateur.client.changes.Changes`. Every owner is asked in each turn; while
        there is nothing new, a few times a second.

        Args:
            table: The table.
            since: A position (:attr:`Changes.position`) or its text; ``"earliest"`` for all changes that are kept;
                None for now.
            follow: Whether to wait for more changes at the end.

        Raises:
            UnknownTableError: There is no such table.
            ProgrammingError: It has no change feed, or the position is one of another table.
            ParameterError: ``since`` is no position.
        """
        return Changes(self._session, self._session.table(table), since, follow=follow)

    def create_table(
        self,
        name: str,
        like: Any,
        *,
        primary_key: Sequence[str] = (),
        partition_by: str | None = None,
        backups: int | None = None,
        replicated: bool = False,
        change_feed: bool = False,
    ) -> TableHandle:
        """Create an empty table with the columns of a DataFrame, an Arrow table or schema, or another table.

        ``conn.create_table("orders", df, primary_key=["id"], partition_by="HASH (id) PARTITIONS 16").load(df)`` makes
        a table of a DataFrame.

        Args:
            name: The name of the table.
            like: A :class:`pyarrow.Schema`, anything with such a ``schema``, or anything that :meth:`TableHandle.load`
                takes. Its rows are not loaded.
            primary_key: As :func:`~secateur.client.loads.create_table.create_table_sql`, like all below.
            partition_by: As there.
            backups: As there.
            replicated: As there.
            change_feed: As there; :meth:`changes` follows them.

        Raises:
            TableExistsError: The name is taken.
            ParameterError: The key names no column.
            NotSupportedError: A column has a type that SQL does not have.
            SchemeError: ``partition_by`` is not valid.
        """
        self.execute(
            create_table_sql(
                name,
                columns_of(like),
                primary_key=primary_key,
                partition_by=partition_by,
                backups=backups,
                replicated=replicated,
                change_feed=change_feed,
            )
        )
        return self.table(name)

    def register(self, name: str, connector: EncodableConnector, *, or_replace: bool = False) -> None:
        """Make an external table: a connector reads its rows on the members when a statement needs them.

        Args:
            name: The name of the table; ``DROP TABLE`` forgets it.
            connector: A :class:`secateur.connectors.Connector`. One of your own travels by cloudpickle, and only to a
                cluster that was started with ``allow_code=True``; folders of files travel as data, and the cluster has
                to allow them with ``external_directories``.
            or_replace: Whether it may take the place of an external table of that name.

        Raises:
            TableExistsError: The name is taken.
            SerializationError: The connector cannot be pickled, or the cluster accepts no code.
            NotSupportedError: The cluster does not let external tables read that folder, or a column has a type that
                SQL does not have.
            JobFailedError: The connector failed; the message has the traceback.
        """
        self._session.check_open()
        if not hasattr(connector, "encoded"):
            raise ParameterError(
                f"a {type(connector).__name__} is no connector: derive it from secateur.connectors.Connector"
            )
        self._session.ask(RegisterExternalTable(name, connector.encoded(), or_replace))

    def commit(self) -> None:
        """Does nothing to rows: every statement has committed already.

        With ``autocommit_only``, :meth:`rollback` is about what is changed from now on.
        """
        self._session.check_open()
        if self._session.commits is not None:
            self._session.commits.begin()

    def rollback(self) -> None:
        """Refuse, since every statement has committed already.

        A connection that was opened with ``autocommit_only`` accepts it if no statement has changed anything since the
        last BEGIN, :meth:`commit` or :meth:`rollback`. Rows that were changed through :meth:`table` do not count.

        Raises:
            NotSupportedError: There would be something to roll back, or the connection was opened as usual.
        """
        self._session.check_open()
        if self._session.commits is not None:
            self._session.commits.roll_back()
            return
        raise NotSupportedError(
            "rollback(): every statement is a transaction of its own, so there is nothing to roll back"
        )

    def interrupt(self) -> None:
        """Cancel every statement of this connection that runs or is being read; from another thread.

        See :meth:`Cursor.cancel`.
        """
        self._session.interrupt()

    def close(self) -> None:
        """Close all sockets. May be called twice."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """Show its address and the cluster's tables in a notebook; only the address if the cluster does not answer."""
        head = f"<pre>{escape(repr(self))}</pre>"
        if self.closed:
            return head
        try:
            return head + self.execute(_TABLES)._repr_html_()
        except Error:
            return head

    def __repr__(self) -> str:
        return f"<Connection {self.address}{' closed' if self.closed else ''}>"
