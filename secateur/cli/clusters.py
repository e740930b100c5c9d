"""The clusters that commands know: by options, by the environment, or because ``secateur start`` started them here.

Each cluster of this machine has a file in ``$SECATEUR_HOME/clusters``, or ``~/.secateur/clusters``, which only its user
can read: it has the token. The process that holds the cluster writes it when the cluster serves, and removes it at the
end. While it lives it holds a lock, by which a file that a killed process has left is told from one of a living
process: its process id may belong to another process by then.

What is known of a cluster with a data directory is in a file of that as well, ``ADDRESS``, so that it has the same port
and token after a restart, and programs find it. Only its user can read that, too.

Options that several commands have are here, so that they are written and explained alike.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TextIO, TypeAlias

import msgspec
import typer

import secateur
from secateur.cli.rendering import CommandError
from secateur.client.connect import ADDRESS_VARIABLE, TOKEN_VARIABLE, parse_address
from secateur.errors import InterfaceError
from secateur.protocol.codec import from_json

DEFAULT_NAME: Final = "default"
HOME_VARIABLE: Final = "SECATEUR_HOME"
_FILE: Final = "ADDRESS"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class KnownCluster(msgspec.Struct, frozen=True):
    """A cluster, as the commands know it.

    Attributes:
        name: Its name on this machine; empty for one that was not started here.
        address: ``secateur://host:port``.
        token: Its secret; empty for a cluster without one.
        pid: The process that holds it; None for one that runs detached on a Ray cluster.
        ray_address: The Ray of a detached one.
        tls_ca: The file with the authority of its certificate.
        tls_server_name: The name that its certificate bears, if that is not its host.
        has_tls: Whether it speaks TLS.
    """

    name: str
    address: str
    token: str
    pid: int | None = None
    ray_address: str | None = None
    tls_ca: str | None = None
    tls_server_name: str | None = None
    has_tls: bool = False

    @property
    def tls(self) -> secateur.Tls | None:
        """The encryption of connections to it; None if there is none."""
        return secateur.Tls(ca=self.tls_ca, server_name=self.tls_server_name) if self.has_tls else None

    @property
    def is_running(self) -> bool:
        """Whether the process that holds it lives; a detached one is taken to."""
        return self.pid is None or _is_locked(self.name)


def typed(command: str, name: str) -> str:
    """Returns the words that run a command on a cluster of this machine, whatever else runs here by then."""
    return f"`secateur {command} --name {name}`"


def home() -> Path:
    """The directory of the files that commands keep, made if it is not there; only the user can read it."""
    directory = Path(os.environ.get(HOME_VARIABLE) or Path.home() / ".secateur")
    (directory / "clusters").mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def log_of(name: str) -> Path:
    """The file with what the process of a cluster prints."""
    return _file(name, "log")


def record_of(name: str) -> Path:
    """The file with what is known of a cluster."""
    return _file(name, "json")


def remember(cluster: KnownCluster) -> None:
    """Write the file of a cluster."""
    _write(record_of(cluster.name), cluster)


def forget(name: str, *, pid: int | None = None) -> None:
    """Remove the file of a cluster; with ``pid``, only if it is that of this process."""
    if pid is None or ((known := _read(record_of(name))) is not None and known.pid == pid):
        record_of(name).unlink(missing_ok=True)


def find(name: str) -> KnownCluster | None:
    """The running cluster of a name; None when there is none."""
    known = _read(record_of(name))
    return known if known is not None and known.is_running else None


def running() -> list[KnownCluster]:
    """All clusters that run, by name."""
    known = (_read(path) for path in sorted((home() / "clusters").glob("*.json")))
    return [cluster for cluster in known if cluster is not None and cluster.is_running]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of a name for the length of the block, which is the life of its cluster.

    Raises:
        CommandError: A cluster has the name: another process holds the lock, or it is a detached one.
    """
    with _file(name, "lock").open("w") as lock:
        if find(name) is not None or not _is_given(lock, fcntl.LOCK_EX):
            free = next(other for number in itertools.count(2) if find(other := f"{name[:60]}-{number}") is None)
            raise CommandError(
                f"a cluster {name!r} runs here already: {typed('stop', name)} ends it, and {typed('start', free)}"
                " starts one beside it"
            )
        yield


def _file(name: str, ending: str) -> Path:
    if not _NAME.fullmatch(name):
        raise CommandError(f"{name!r} is no name of a cluster: letters, digits, _ and -, at most 64")
    return home() / "clusters" / f"{name}.{ending}"


def _write(file: Path, cluster: KnownCluster) -> None:
    """Write a file with a token, which only its user can read, whole or not at all."""
    new = file.with_suffix(f".{os.getpid()}.new")
    new.touch(mode=0o600)
    new.write_bytes(msgspec.json.encode(cluster))
    new.replace(file)


def _read(file: Path) -> KnownCluster | None:
    try:
        return from_json(file.read_bytes(), KnownCluster)
    except (OSError, msgspec.DecodeError):
        return None


def _is_locked(name: str) -> bool:
    with _file(name, "lock").open("a") as lock:
        return not _is_given(lock, fcntl.LOCK_SH)


def _is_given(lock: TextIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def with_kept(settings: dict[str, Any]) -> dict[str, Any]:
    """Fill in the port and the token that the command line leaves open: what they were, a free port if there is none.

    In the settings of ``secateur start``, ``port`` and ``token`` are None where nothing was said.
    """
    kept = None if settings["data_directory"] is None else _read(Path(settings["data_directory"]) / _FILE)
    port, token = settings["port"], settings["token"]
    if port is None and kept is not None:
        port = parse_address(kept.address)[1]
        if not _is_free(settings["host"] or "127.0.0.1", port):
            typer.echo(f"port {port}, which it had the last time, is taken: it gets another one", err=True)
            port = 0
    return {**settings, "port": port or 0, "token": kept.token if token is None and kept is not None else token}


def keep(cluster: KnownCluster, data_directory: str | None) -> None:
    """Write what the next start fills in, if there is a directory, and this machine has it."""
    if data_directory is not None and Path(data_directory).is_dir():
        _write(Path(data_directory) / _FILE, cluster)


def _is_free(host: str, port: int) -> bool:
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        return False
    return True


def located(name: str | None, address: str | None = None, token: str | None = None) -> KnownCluster:
    """Return the cluster that is meant: by ``--name``, by its address, or the only one that runs here.

    If several run here and nothing says which, the user is asked on a terminal.

    Args:
        name: That of ``--name``. It stands above the environment, which may speak of another cluster.
        address: As given; by default that of the environment.
        token: As given; by default that of the environment, or else that of the cluster that was started here.

    Returns:
        The cluster; one that was not started here has no name.

    Raises:
        CommandError: No cluster has the name, or none runs here.
        BadParameter: The address has another form, there are a name and an address, or several clusters run here.
    """
    if name is not None:
        if address is not None:
            raise typer.BadParameter("--name and an address each say which cluster is meant: pass one of them")
        found = _named(name)
    else:
        address = address or os.environ.get(ADDRESS_VARIABLE)
        token = os.environ.get(TOKEN_VARIABLE) if token is None else token
        found = _only() if not address else _at(address)
    return found if token is None else msgspec.structs.replace(found, token=token)


def connected(name: str | None, address: str | None, token: str | None) -> secateur.Connection:
    """Connect to the cluster that is meant."""
    found = located(name, address, token)
    return secateur.connect(found.address, found.token, tls=found.tls)


def _named(name: str) -> KnownCluster:
    found = find(name)
    if found is None:
        raise CommandError(f"no cluster {name!r} runs here: {typed('start', name)} starts one{_others()}")
    return found


def _at(address: str) -> KnownCluster:
    try:
        parse_address(address)
    except InterfaceError as error:
        raise typer.BadParameter(error.message) from error
    return next((known for known in running() if known.address == address), KnownCluster("", address, ""))


def _only() -> KnownCluster:
    here = running()
    if not here:
        raise CommandError(
            "no cluster was named, and none was started here: run `secateur start`, or pass the address of one"
            f" (or set {ADDRESS_VARIABLE})"
        )
    if len(here) == 1:
        return here[0]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter(f"several clusters run here: pass --name to say which is meant{_others()}")
    typer.echo(f"several clusters may be meant{_others()}", err=True)
    while True:
        typer.echo("the name of the one that is meant: ", nl=False, err=True)  # input() would ask on standard output
        answer = sys.stdin.readline()
        if not answer:
            raise typer.Abort
        found = next((known for known in here if known.name == answer.strip()), None)
        if found is not None:
            return found


def _others() -> str:
    """The clusters that run here, for the end of a sentence."""
    here = ", ".join(f"{known.name} ({known.address})" for known in running())
    return f"; running here: {here}" if here else ""


# The environment is read where the cluster is found (:func:`located`): what it says yields to --name.
_ADDRESS_HELP = (
    f"The cluster, secateur://host:port. Left out: that of --name, of {ADDRESS_VARIABLE}, or the one that was started"
    " here."
)
_NAME_HELP = "The name of the cluster on this machine."

Address: TypeAlias = Annotated[str | None, typer.Argument(help=_ADDRESS_HELP, show_default=False)]
AddressOption: TypeAlias = Annotated[str | None, typer.Option("--address", help=_ADDRESS_HELP, show_default=False)]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The secret of the cluster. Left out: that of the one that was started here, or {TOKEN_VARIABLE}.",
        show_default=False,
    ),
]
TlsKey: TypeAlias = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="Its private key; by default it is in the same file.")
]
LogFormat: TypeAlias = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="text, or json: log lines on standard error, one object a line."),
]
NewName: TypeAlias = Annotated[str, typer.Option("--name", help=_NAME_HELP)]
ClusterName: TypeAlias = Annotated[
    str | None, typer.Option("--name", help=f"{_NAME_HELP} Needed where several run.", show_default=False)
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON.")]
