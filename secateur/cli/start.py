"""``secateur start``, ``secateur stop`` and ``secateur status``.

A cluster ends with the process that holds it. ``start`` leaves such a process behind and returns; with ``--foreground``
it is that process itself, for a container or a service manager. On a Ray cluster that was named by its address, the
cluster is detached instead, and no process stays here.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

import secateur
from secateur.cli import clusters
from secateur.cli.clusters import (
    DEFAULT_NAME,
    Address,
    AsJson,
    ClusterName,
    KnownCluster,
    LogFormat,
    NewName,
    TlsKey,
    Token,
    connected,
    keep,
    located,
    typed,
    with_kept,
)
from secateur.cli.rendering import CommandError, OutputFormat, print_done, write_rows
from secateur.client.connect import ADDRESS_VARIABLE, TLS_CA_VARIABLE, TOKEN_VARIABLE
from secateur.dependencies import log_untested
from secateur.errors import OperationalError, ProgrammingError
from secateur.structured_logs import use_log_format

_BEFORE_AND_BEHIND_S: Final = 60.0
"""What the process of a cluster may take for itself, before and after the time that the cluster has to come up."""
_DOWN_WITHIN_S: Final = 60.0
_LOG_LINES: Final = 20
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([KMGT]?)(?:i?B)?", re.IGNORECASE)


def start(
    name: NewName = DEFAULT_NAME,
    members: Annotated[int, typer.Option(min=1, help="How many members.")] = 3,
    runtime: Annotated[
        Literal["ray", "embedded"],
        typer.Option(help="ray: members are Ray actors; embedded: all in one process, without Ray."),
    ] = "ray",
    ray_address: Annotated[
        str | None,
        typer.Option(help="Run on this Ray cluster, as `auto` or host:port; the cluster stays there until `stop`."),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on; loopback by default.")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="The port; 0 takes a free one. Left out: that of the last time, as for --token."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar=TOKEN_VARIABLE,
            help="The secret of the cluster. Left out: that of the last time, which the data directory has, or one that"
            " is made at random.",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Encrypt all connections with this certificate, a PEM file."),
    ] = None,
    tls_key: TlsKey = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            envvar=TLS_CA_VARIABLE,
            exists=True,
            dir_okay=False,
            help="The authority of the certificate; by default one that the machine trusts.",
        ),
    ] = None,
    tls_server_name: Annotated[
        str | None, typer.Option(help="The name that the certificate bears, if it is not the host.")
    ] = None,
    jwt_keys: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Accept JWTs that are signed by these public keys of an issuer: one in PEM, or a JWKS.",
        ),
    ] = None,
    jwt_issuer: Annotated[str | None, typer.Option(help="The `iss` that they have.")] = None,
    jwt_audience: Annotated[str | None, typer.Option(help="The `aud` that they have.")] = None,
    jwt_claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=CLAIM]", help="What session('NAME') is: the claim of that name, or CLAIM. May be repeated."
        ),
    ] = None,
    jwt_principal_claim: Annotated[str, typer.Option(help="The claim that names the bearer.")] = "sub",
    jwt_roles_claim: Annotated[str, typer.Option(help="The claim that lists roles of SQL.")] = "roles",
    data_directory: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep the tables in this directory.")
    ] = None,
    fsync: Annotated[Literal["always", "interval", "off"], typer.Option(help="When a write is on disk.")] = "interval",
    memory_limit: Annotated[
        str | None, typer.Option(help="What one member may take, such as 4GB; a share of the machine by default.")
    ] = None,
    start_timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that the cluster may take to come up; more on a busy machine.")
    ] = 60.0,
    log_format: LogFormat = "text",
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay until Ctrl-C or SIGTERM.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a cluster, and return when it serves.

    Other commands on this machine find it by themselves. Other programs need the address and the token, which are
    printed.

    For example:

        secateur start

        secateur start --members 3 --data-directory ./data

        secateur start --ray-address auto --name orders
    """
    settings: dict[str, Any] = {
        "members": members,
        "runtime": runtime,
        "host": host,
        "port": port,
        "token": token,
        "tls_certificate": _absolute(tls_certificate),
        "tls_key": _absolute(tls_key),
        "tls_ca": _absolute(tls_ca) if tls_certificate is not None else None,
        "tls_server_name": tls_server_name,
        "jwt_keys": _absolute(jwt_keys),
        "jwt_issuer": jwt_issuer,
        "jwt_audience": jwt_audience,
        "jwt_claim": jwt_claim or [],
        "jwt_principal_claim": jwt_principal_claim,
        "jwt_roles_claim": jwt_roles_claim,
        "data_directory": None if data_directory is None else str(data_directory.absolute()),
        "fsync": fsync,
        "memory_limit": None if memory_limit is None else _bytes(memory_limit),
        "start_timeout_s": start_timeout,
        "log_format": log_format,
    }
    if tls_certificate is None and (tls_key or tls_server_name) is not None:
        raise typer.BadParameter("--tls-key and --tls-server-name need --tls-certificate")
    if not jwt_keys and (jwt_issuer or jwt_audience or jwt_claim):
        raise typer.BadParameter("--jwt-issuer, --jwt-audience and --jwt-claim need --jwt-keys")
    if jwt_keys is not None and not (jwt_issuer and jwt_audience):
        raise typer.BadParameter("--jwt-keys needs --jwt-issuer and --jwt-audience: whom to trust, and with what")
    settings = with_kept(settings)
    if ray_address is not None:
        _show(_detached(name, ray_address, settings), as_json=as_json)
    elif foreground:
        _hold(name, settings, as_json=as_json)
    else:
        _show(_left_behind(name, settings), as_json=as_json)


def stop(name: ClusterName = None, as_json: AsJson = False) -> None:
    """End a cluster that `secateur start` has started here. Tables without a data directory are gone then.

    Without --name, it ends the only one that runs here; where several run, it asks which.

    For example:

        secateur stop

        secateur stop --name orders
    """
    cluster = located(name)
    if not cluster.name:
        raise CommandError(
            f"the cluster that {ADDRESS_VARIABLE} names, {cluster.address}, was not started here: pass --name to end"
            " one that was, or end it where it was started"
        )
    if cluster.pid is None:
        _end_detached(cluster)
    else:
        os.kill(cluster.pid, signal.SIGTERM)
        deadline_s = time.monotonic() + _DOWN_WITHIN_S
        while cluster.is_running:
            if time.monotonic() > deadline_s:
                raise CommandError(
                    f"cluster {cluster.name!r} has not ended within {_DOWN_WITHIN_S:.0f} s; its process is"
                    f" {cluster.pid}, and its log {clusters.log_of(cluster.name)}"
                )
            time.sleep(0.05)
    print_done(f"cluster {cluster.name} has ended", {"ended": cluster.name}, as_json=as_json)


def _end_detached(cluster: KnownCluster) -> None:
    try:
        secateur.attach(cluster.name, ray_address=cluster.ray_address).stop()
    except ProgrammingError as error:
        typer.echo(error.message, err=True)  # it was ended elsewhere, and is to be forgotten
    except OperationalError as error:
        known = clusters.record_of(cluster.name)
        raise CommandError(f"{error.message}; if that Ray is gone for good, so is the cluster: `rm {known}`") from error
    clusters.forget(cluster.name)


def _detached(name: str, ray_address: str, settings: dict[str, Any]) -> KnownCluster:
    runtime = settings.pop("runtime")
    if runtime != "ray":
        raise typer.BadParameter("--ray-address is for --runtime ray")
    tls, jwt = _tls(settings), _jwt(settings)
    with (
        clusters.locked(name),
        secateur.start(detached=True, name=name, ray_address=ray_address, tls=tls, jwt=jwt, **settings) as cluster,
    ):
        found = _known(name, cluster, tls, None, ray_address)
        clusters.remember(found)
        keep(found, settings["data_directory"])
        cluster.leave()
    return found


def _hold(name: str, settings: dict[str, Any], *, as_json: bool) -> None:
    """Be the process of the cluster."""
    ends = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ends.set())
    tls, jwt = _tls(settings), _jwt(settings)
    use_log_format(settings["log_format"])
    with clusters.locked(name), secateur.start(tls=tls, jwt=jwt, **settings) as cluster:
        for number in (signal.SIGTERM, signal.SIGINT):  # Ray installs handlers of its own
            signal.signal(number, lambda *_: ends.set())
        found = _known(name, cluster, tls, os.getpid())
        clusters.remember(found)
        keep(found, settings["data_directory"])
        try:
            _show(found, as_json=as_json)
            ends.wait()
        finally:
            clusters.forget(name, pid=os.getpid())


def _known(
    name: str, cluster: secateur.Cluster, tls: secateur.Tls | None, pid: int | None, ray_address: str | None = None
) -> KnownCluster:
    return KnownCluster(
        name,
        cluster.address,
        cluster.token or "",
        pid,
        ray_address,
        tls_ca=None if tls is None or tls.ca is None else str(tls.ca),
        tls_server_name=None if tls is None else tls.server_name,
        has_tls=tls is not None,
    )


def _tls(settings: dict[str, Any]) -> secateur.Tls | None:
    """Take the settings of TLS out of those of the command."""
    certificate, key, ca, server_name = (
        settings.pop(f"tls_{part}") for part in ("certificate", "key", "ca", "server_name")
    )
    return (
        None if certificate is None else secateur.Tls(certificate=certificate, key=key, ca=ca, server_name=server_name)
    )


def _jwt(settings: dict[str, Any]) -> secateur.Jwt | None:
    """Take the settings of JWTs out of those of the command."""
    given = {
        key: settings.pop(f"jwt_{key}") for key in ("keys", "issuer", "audience", "principal_claim", "roles_claim")
    }
    named = [claim.partition("=") for claim in settings.pop("jwt_claim")]
    if given["keys"] is None:
        return None
    return secateur.Jwt(**given, claims={name: claim or name for name, _, claim in named})


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _left_behind(name: str, settings: dict[str, Any]) -> KnownCluster:
    """Start a process that holds the cluster, and wait until it serves."""
    with clusters.locked(name):
        pass  # refused here, where somebody reads it
    log_untested()  # here, too
    log = clusters.log_of(name)
    options = [
        f"--{key.removesuffix('_s').replace('_', '-')}={value}"
        for key, given in settings.items()
        for value in (given if isinstance(given, list) else [given])
        if value is not None and key != "token"  # which every user of the machine could read there
    ]
    environment = dict(os.environ) if settings["token"] is None else {**os.environ, TOKEN_VARIABLE: settings["token"]}
    command = [sys.executable, "-m", "secateur.cli", "start", "--foreground", "--name", name, *options]
    with log.open("wb") as output, Path(os.devnull).open("rb") as nothing:
        # subprocess would warn of a process that is meant to outlive this one
        pid = os.posix_spawn(
            sys.executable,
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
                (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, output.fileno(), 2),
            ],
            setsid=True,
        )
    up_within_s = settings["start_timeout_s"] + _BEFORE_AND_BEHIND_S
    deadline_s = time.monotonic() + up_within_s
    if sys.stderr.isatty():
        typer.echo(f"starting {settings['members']} members ...", err=True)  # Ray takes some seconds
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        found = clusters.find(name)
        if found is not None and found.pid == pid:
            return found
        if time.monotonic() > deadline_s:
            os.kill(pid, signal.SIGTERM)
            raise CommandError(
                f"the cluster did not come up within {up_within_s:.0f} s; {log} ends with\n{_end_of(log)}"
            )
        time.sleep(0.05)
    raise CommandError(_end_of(log) or "the process of the cluster has ended without a word")


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])


def _show(cluster: KnownCluster, *, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(cluster).decode())
        return
    typer.echo(f"cluster {cluster.name} serves at {cluster.address}")
    typer.echo(f"other programs: export {ADDRESS_VARIABLE}={cluster.address} {TOKEN_VARIABLE}={cluster.token}")
    if cluster.tls_ca is not None:
        typer.echo(f"they trust its certificate by: export {TLS_CA_VARIABLE}={cluster.tls_ca}")
    held = f"its process is {cluster.pid}; " if cluster.pid is not None else ""
    typer.echo(f"{held}{typed('sql', cluster.name)} asks it, {typed('stop', cluster.name)} ends it")


def _bytes(text: str) -> int:
    """Read a size such as ``4GB``, in powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"--memory-limit {text!r}: a number of bytes, such as 4GB or 512MB")
    return int(float(found[1]) * _UNITS[found[2].upper()])


_MEMBERS = (
    "SELECT id, address, node, state, partitions_primary, partitions_backup, rows, bytes, memory_used, memory_limit,"
    " running_statements, waiting_statements, draining FROM secateur.members ORDER BY id"
)
_TABLES = (
    "SELECT t.table_name, t.partitioning, t.partitions, t.backups, t.rows, t.bytes,"
    " coalesce(sum(p.copies_missing), 0)::BIGINT AS copies_missing FROM secateur.tables t LEFT JOIN secateur.partitions"
    " p ON p.table_name = t.table_name WHERE t.table_type = 'BASE TABLE' GROUP BY ALL ORDER BY t.table_name"
)


def status(address: Address = None, name: ClusterName = None, token: Token = None, as_json: AsJson = False) -> None:
    """Show the members of a cluster, its tables, and the copies that are missing.

    The exit code is 1 if no cluster answers.

    For example:

        secateur status

        secateur status --json | jq '.members[].state'
    """
    with connected(name, address, token) as connection:
        if as_json:
            answers = {"members": connection.execute(_MEMBERS), "tables": connection.execute(_TABLES)}
            told = {name: cursor.fetch_arrow_table().to_pylist() for name, cursor in answers.items()}
            typer.echo(msgspec.json.encode({"address": connection.address, **told}).decode())
            return
        typer.echo(f"cluster {connection.address}")
        for sql in (_MEMBERS, _TABLES):
            with connection.execute(sql) as cursor:
                write_rows(cursor, OutputFormat.TABLE, into=sys.stdout)
