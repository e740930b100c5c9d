"""Reads rows of a snapshot from the member that keeps them, one request ahead of Spark.

The member is asked over a connection to it alone, without the client and without a call to the controller. Only who
does not get the rows there, because the member is lost or has dropped them, loads the client and looks elsewhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_values import RowsAtMember
from secateur.errors import Error
from secateur.protocol.arrow_ipc import decode_tables
from secateur.protocol.snapshots import ReadSnapshot, SnapshotPiece
from secateur.wire.channel import Channel
from secateur.wire.handshake import hello

if TYPE_CHECKING:
    from secateur.client.execution.snapshot import SnapshotReader


class MemberReader:
    """Reads rows that one member keeps. A context manager that closes its connections."""

    def __init__(self, endpoint: Endpoint, rows: RowsAtMember) -> None:
        self._endpoint = endpoint
        self._rows = rows
        self._open = ExitStack()
        self._channel = Channel(rows.host, rows.port, hello(endpoint.token, "Spark read"), tls=endpoint.tls)
        self._open.callback(self._channel.close)
        self._elsewhere: SnapshotReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tables(self) -> Iterator[pa.Table]:
        """The rows, a table for each request: the member makes the next one while Spark takes the one before.

        Raises:
            DataChangedError: The member has dropped the snapshot or was lost, and the table has changed since.
            Error: The query fails over these rows, or no member that has them could be reached for 10 s.
        """
        with ThreadPoolExecutor(1) as thread:
            coming: Future[pa.Table] | None = None
            for request in self._rows.requests:
                pieces = [SnapshotPiece(*piece) for piece in request]
                before, coming = coming, thread.submit(self._read, pieces)
                if before is not None:
                    yield before.result()
            if coming is not None:
                yield coming.result()

    def _read(self, pieces: Sequence[SnapshotPiece]) -> pa.Table:
        if self._elsewhere is None:
            try:
                answer = self._channel.request(ReadSnapshot(self._rows.snapshot, list(pieces)))
                if answer.message.is_open:
                    return decode_tables(answer.parts)
            except Error:  # one of the query itself comes again from the client, which tells such from lost members
                pass
            self._elsewhere = self._client_reader()
        return self._elsewhere.read(pieces)

    def _client_reader(self) -> SnapshotReader:
        from secateur.client.execution.snapshot import SnapshotReader

        session = self._open.enter_context(self._endpoint.session(timeout_s=None))
        return SnapshotReader(session, pickle.loads(self._rows.whole))
