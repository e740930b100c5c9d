"""``secateur dashboard``: the cluster over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secateur import Tls
from secateur.cli.clusters import Address, AsJson, ClusterName, LogFormat, TlsKey, Token, located
from secateur.cli.rendering import CommandError, print_done
from secateur.structured_logs import use_log_format


def dashboard(
    address: Address = None,
    name: ClusterName = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    hostnames: Annotated[
        list[str] | None, typer.Option("--hostname", help="A name by which browsers reach it; may be given again.")
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Serve HTTPS with this certificate, a PEM file.")
    ] = None,
    tls_key: TlsKey = None,
    log_format: LogFormat = "text",
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Serve the dashboard and the job API over HTTP until Ctrl-C; operations are listed at /docs.

    Callers send the token of the cluster; a browser asks for it as a password, with any user name.

    For example:

        secateur dashboard

        secateur dashboard --host 0.0.0.0 --hostname grid.example.com --tls-certificate grid.pem
    """
    try:
        from secateur.server.http_server import HttpServer
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("secateur"):
            raise
        raise CommandError(f'serving HTTP needs {error.name}: pip install "secateur[server]"') from None
    use_log_format(log_format)
    cluster = located(name, address, token)
    if tls_certificate is None and tls_key is not None:
        raise typer.BadParameter("--tls-key needs --tls-certificate")
    https = None if tls_certificate is None else Tls(certificate=tls_certificate, key=tls_key)
    server = HttpServer(
        cluster.address,
        cluster.token,
        host=host,
        port=port,
        hosts=hostnames or (),
        tls=https,
        cluster_tls=cluster.tls,
    )
    print_done(
        f"{cluster.address} is served at {server.url}; Ctrl-C ends it\n"
        "a browser asks for a name and a password: any name, and the token of the cluster",
        {"address": cluster.address, "url": server.url},
        as_json=as_json,
    )
    server.run()
