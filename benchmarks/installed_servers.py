"""PostgreSQL and Redis as the distribution installs them, each started on a free port of its own and ended again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["NotInstalledError", "postgres_server", "redis_server"]

_POSTGRES_PROGRAMS: Final = "usr/lib/postgresql/*/bin"
_REDIS_PROGRAM: Final = "redis-server"
_STOP_S: Final = 20.0


class NotInstalledError(Exception):
    """The distribution's package of a server is not on this machine; the message names it."""


@contextmanager
def postgres_server() -> Iterator[int]:
    """A PostgreSQL with the settings of its package, in a folder of its own; the port where user ``bench`` may enter.

    Raises:
        NotInstalledError: There is none.
    """
    found = sorted(Path("/").glob(_POSTGRES_PROGRAMS))
    if not found:
        raise NotInstalledError(f"PostgreSQL is not installed: there is no /{_POSTGRES_PROGRAMS} (package postgresql)")
    programs = found[-1]
    folder = Path(tempfile.mkdtemp(prefix="secateur-postgres-"))
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data, port = str(folder / "data"), _free_port()

    # In sessions of their own: Ctrl-C in a terminal is the benchmark's to handle, which then ends what it started.
    def run(program: str, *arguments: str) -> None:
        argv = [*user, str(programs / program), *arguments]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=folder, start_new_session=True)

    try:
        if user:
            shutil.chown(folder, "postgres")
        run("initdb", "--pgdata", data, "--username", "bench", "--auth", "trust")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        try:
            run("pg_ctl", "start", "--wait", "--pgdata", data, "--log", str(folder / "log"), "--options", settings)
            yield port
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                run("pg_ctl", "stop", "--wait", "--pgdata", data, "--mode", "fast")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis_server() -> Iterator[int]:
    """A Redis that keeps nothing on disk; its port.

    Raises:
        NotInstalledError: There is none.
    """
    program = shutil.which(_REDIS_PROGRAM)
    if program is None:
        raise NotInstalledError(f"Redis is not installed: {_REDIS_PROGRAM} is not on PATH (package redis-server)")
    port = _free_port()
    argv = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=tempfile.gettempdir(), start_new_session=True) as server:
        try:
            assert server.stdout is not None
            if not any(b"eady to accept connections" in line for line in server.stdout):
                raise RuntimeError(f"{_REDIS_PROGRAM} ended with {server.wait()}")
            yield port
        finally:
            server.terminate()
            try:
                server.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
