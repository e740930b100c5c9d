"""Port and token that a cluster with a data directory had the last time, so that programs find it after a restart.

The file ``ADDRESS`` of the data directory has them. Only its user can read it, since the token is in it.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from secateur.cli.local_clusters import KnownCluster, write_secret
from secateur.client.address import parse_address
from secateur.protocol.decoders import from_json

_FILE: Final = "ADDRESS"


class _Kept(msgspec.Struct, frozen=True):
    port: int
    token: str


def with_kept(settings: dict[str, Any]) -> dict[str, Any]:
    """Fill in the port and the token that the command line leaves open: what they were, a free port if there is none.

    Args:
        settings: Those of ``secateur start``; ``port`` and ``token`` are None where nothing was said.
    """
    kept = None if settings["data_directory"] is None else _read(Path(settings["data_directory"]) / _FILE)
    port, token = settings["port"], settings["token"]
    if port is None and kept is not None:
        port = kept.port
        if not _is_free(settings["host"] or "127.0.0.1", port):
            typer.echo(f"port {port}, which it had the last time, is taken: it gets another one", err=True)
            port = 0
    return {**settings, "port": port or 0, "token": kept.token if token is None and kept is not None else token}


def keep(cluster: KnownCluster, data_directory: str | None) -> None:
    """Write what the next start fills in, if there is a directory, and this machine has it."""
    if data_directory is not None and Path(data_directory).is_dir():
        write_secret(Path(data_directory) / _FILE, _Kept(parse_address(cluster.address)[1], cluster.token))


def _read(file: Path) -> _Kept | None:
    try:
        return from_json(file.read_bytes(), _Kept)
    except (OSError, msgspec.DecodeError):
        return None


def _is_free(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        return False
    return True
