"""A member that falls silent while it joins holds up nobody for long: loads and changes of tables wait for it."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing

import pyarrow as pa

import secateur
from secateur.errors import Error
from secateur.protocol import JoinRequest, Role
from secateur.wire import Channel, hello

PATIENCE_S = 30.0
"""Far more than four times ``member_silence_s``, and less than ``start_timeout_s``."""


def test_a_newcomer_without_a_sign_of_life_is_no_member() -> None:
    with (
        secateur.start(members=1, runtime="embedded", member_silence_s=1.0, start_timeout_s=120.0) as cluster,
        cluster.connect() as conn,
        socket.create_server(("127.0.0.1", 0)) as silent,  # takes connections, and never reads from them
    ):
        conn.execute("CREATE TABLE t (id BIGINT PRIMARY KEY) REPLICATED")
        host, port = cluster.address.removeprefix("secateur://").split(":")
        refused: list[Error] = []

        def join() -> None:
            identity = cluster._settings.identity(Role.MEMBER)
            with closing(Channel(host, int(port), hello(cluster.token, identity=identity))) as channel:
                try:
                    channel.request(JoinRequest("m9", "127.0.0.1", silent.getsockname()[1], "127.0.0.1"))
                except Error as error:
                    refused.append(error)

        joining = threading.Thread(target=join)
        joining.start()
        connection, _ = silent.accept()
        begun_s = time.monotonic()
        with connection:
            conn.table("t").load(pa.table({"id": range(1000)}))
            conn.execute("CREATE TABLE other (id BIGINT PRIMARY KEY)")
            joining.join(PATIENCE_S)
        assert time.monotonic() - begun_s < PATIENCE_S
        (error,) = refused
        assert "127.0.0.1" in error.message
        assert [member.id for member in cluster.members()] == ["m1"]
