"""A disk that is really full: a file system of a few megabytes, mounted for the test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

import secateur
from secateur.cluster import Cluster
from secateur.errors import DiskError

SIZE_BYTES = 32 << 20
ROOM_BYTES = 2 << 20
ROW_CHARS = 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "disk"
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(directory)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"NOT TESTED, a full disk: this user may not mount a file system ({mounted.stderr.strip()})")
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def started(directory: Path) -> Cluster:
    return secateur.start(members=2, runtime="embedded", data_directory=directory, fsync="always")


def upsert(conn: secateur.Connection, key: int, expected: dict[int, str]) -> bool:
    """Write a row; whether the disk took it."""
    value = f"{key:06}" * (ROW_CHARS // 6)
    try:
        conn.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", [key, value])
    except DiskError as error:
        # How much is free by now is not asked: a member that was refused earlier may have removed files since.
        if "No space left on device" not in str(error) or "make room" not in str(error):
            raise
        return False
    expected[key] = value
    return True


def test_a_full_disk_refuses_writes_and_loses_none_and_room_is_enough_to_go_on(small_disk: Path) -> None:
    expected: dict[int, str] = {}
    with started(small_disk) as cluster, cluster.connect() as conn:
        conn.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR) PARTITION BY HASH (k) PARTITIONS 4 BACKUPS 1")
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - ROOM_BYTES))
        refused = next(key for key in range(1_000) if not upsert(conn, key, expected))
        assert 10 < refused < 200
        found = dict(conn.execute("SELECT k, v FROM t").fetchall())
        assert {key: found[key] for key in expected} == expected, "reads go on"
        ballast.unlink()
        eventually(lambda: upsert(conn, 5_000, expected), "writes are taken again when there is room")
    with started(small_disk) as cluster, cluster.connect() as conn:
        found = dict(conn.execute("SELECT k, v FROM t").fetchall())
        assert {key: found.get(key) for key in expected} == expected
