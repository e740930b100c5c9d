"""Bytes of real conversations, spoilt, at a live controller and a live member: nothing hangs, grows or ends.

``SECATEUR_FUZZ`` sets how many conversations are spoilt, ``SECATEUR_SEED`` how.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator

import psutil
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster

CONVERSATIONS = int(os.environ.get("SECATEUR_FUZZ", "600"))
SEED = int(os.environ.get("SECATEUR_SEED", "0"))
LOOK_EVERY = 100
HANGS_S = 30.0
GROWTH_BYTES_MAX = 200 << 20
"""More than the allocators keep back; a leak of a kilobyte a conversation shows within 200,000 of them."""
ROWS = pa.table({"id": pa.array(range(64), pa.int64()), "v": pa.array(range(64), pa.int64())})

Said = dict[tuple[str, int], list[list[bytes]]]
"""For each address the conversations of its clients, each as what was sent at a time."""


@pytest.fixture
def own() -> Iterator[Cluster]:
    with secateur.start(members=2, runtime="embedded", member_silence_s=10.0) as running:
        yield running


class Recorder(socket.socket):
    """A socket that notes what is sent."""

    said: list[bytes]

    def sendall(self, data: bytes | memoryview, flags: int = 0) -> None:  # type: ignore[override]
        self.said.append(bytes(data))
        super().sendall(data, flags)


def recorded(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> Said:
    """What a client says that creates a table, loads, reads, changes, and runs a job."""
    said: Said = {}
    connect = socket.create_connection

    def connected(address: tuple[str, int], timeout: float | None = None) -> socket.socket:
        made = Recorder(fileno=connect(address, timeout).detach())
        made.settimeout(timeout)
        made.said = []
        said.setdefault(address, []).append(made.said)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(socket, "create_connection", connected)
        with own.connect() as conn:
            conn.execute(
                "CREATE TABLE f (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4 BACKUPS 1"
            )
            table = conn.table("f")
            table.load(ROWS)
            conn.execute("SELECT v FROM f WHERE id = ?", [5]).fetchall()
            conn.execute("SELECT a.v, count(*) FROM f a JOIN f b ON a.id = b.v GROUP BY ALL").fetchall()
            conn.execute("INSERT OR REPLACE INTO f VALUES (1, 1), (2, 2)")
            conn.execute("UPDATE f SET v = v WHERE v > 3")
            conn.execute("EXPLAIN ANALYZE SELECT * FROM f").fetchall()
            table.get(3)
            job = secateur.Pipeline().read_table("f").write_to(secateur.connectors.collect())
            conn.submit(job).result(timeout_s=30)
    return {address: [talk for talk in talks if talk] for address, talks in said.items()}


def spoilt(chance: random.Random, talk: list[bytes], others: list[list[bytes]]) -> bytes:
    """A conversation with a few bytes, pieces or frames other than they were; its hello mostly as it was."""
    hello, frames = talk[0], list(talk[1:])
    if chance.random() < 0.2:
        chance.shuffle(frames)
    if chance.random() < 0.2:
        frames.insert(0, chance.choice(chance.choice(others)))
    data = bytearray(b"".join(frames[: chance.randrange(1, 12)]))
    keeps_hello = chance.random() < 0.9
    if not keeps_hello:
        data = bytearray(hello) + data
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data)) if data else 0
        match chance.randrange(6):
            case 0 if data:
                data[at] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xC1, 0xDC, 0xFF))
            case 2:
                del data[at : at + chance.randrange(1, 64)]
            case 3:
                data[at:at] = chance.randbytes(chance.randrange(1, 64))
            case 4:
                data[at:at] = data[at : at + chance.randrange(1, 256)]
            case _:
                del data[at:]
    return bytes(data) if not keeps_hello else hello + bytes(data)


def say(address: tuple[str, int], data: bytes) -> None:
    """Send, and read what comes until the other side hangs up.

    Raises:
        TimeoutError: It does not, for too long.
    """
    with socket.create_connection(address, HANGS_S) as connected:
        try:
            connected.sendall(data)
            connected.shutdown(socket.SHUT_WR)
            while connected.recv(1 << 16):
                pass
        except ConnectionError:
            return


def test_spoilt_conversations_harm_nobody_else(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(SEED)
    said = recorded(own, monkeypatch)
    assert len(said) == 3, "the controller and both members"
    targets = [(address, talk) for address, talks in said.items() for talk in talks]
    everything = [talk for talks in said.values() for talk in talks]
    process = psutil.Process()
    before = 0
    with own.connect() as honest:
        honest.execute("CREATE TABLE other (id BIGINT, v BIGINT, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4")
        honest.table("other").load(ROWS)
        for number in range(CONVERSATIONS):
            address, talk = chance.choice(targets)
            say(address, spoilt(chance, talk, everything))
            if number % LOOK_EVERY == 0:
                assert honest.execute("SELECT count(*), sum(v) FROM other").fetchall() == [(64, sum(range(64)))]
                before = before or process.memory_info().rss
        assert honest.execute("SELECT v FROM other WHERE id = 7").fetchall() == [(7,)]
    assert [member.is_alive for member in own.members()] == [True, True]
    assert process.memory_info().rss - before < GROWTH_BYTES_MAX
