"""Certificates that are replaced while servers run."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from wire_operations import Echo

from secateur.errors import AuthenticationError
from secateur.wire import Channel, FrameServer, Tls

Serve = Callable[..., FrameServer]


def put(folder: Path, issued: trustme.LeafCert) -> None:
    """Replace certificate and key as a tool for renewal does: each by a rename."""
    write_certificate(folder, issued)
    write_key(folder, issued)


def write_certificate(folder: Path, issued: trustme.LeafCert) -> None:
    (folder / "new").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    (folder / "new").replace(folder / "server.pem")


def write_key(folder: Path, issued: trustme.LeafCert) -> None:
    issued.private_key_pem.write_to_path(str(folder / "new"))
    (folder / "new").replace(folder / "server.key")


def shown(server: FrameServer, authority: trustme.CA) -> bytes:
    """The certificate that a new connection gets."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with (
        socket.create_connection((server.host, server.port), 20) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return found


def der(issued: trustme.LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


def test_new_connections_get_the_new_certificate_and_old_ones_go_on(
    serve: Serve, echo: Any, authority: trustme.CA, tmp_path: Path
) -> None:
    first, second = (authority.issue_cert("127.0.0.1") for _ in range(2))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    put(tmp_path, first)
    server = serve(echo, tls=Tls(certificate=tmp_path / "server.pem", key=tmp_path / "server.key"))
    with closing(Channel(server.host, server.port, tls=Tls(ca=tmp_path / "ca.pem"), timeout_s=20)) as channel:
        assert channel.request(Echo({"x": 1})).message.args == {"x": 1}
        assert shown(server, authority) == der(first)
        put(tmp_path, second)
        assert shown(server, authority) == der(second)
        assert channel.request(Echo({"x": 2})).message.args == {"x": 2}


def test_a_certificate_without_its_key_waits_for_it(
    serve: Serve, echo: Any, authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (authority.issue_cert("127.0.0.1") for _ in range(2))
    put(tmp_path, first)
    server = serve(echo, tls=Tls(certificate=tmp_path / "server.pem", key=tmp_path / "server.key"))
    write_certificate(tmp_path, second)
    with caplog.at_level(logging.WARNING, "secateur.wire"):
        assert shown(server, authority) == der(first)
        assert shown(server, authority) == der(first)
    assert caplog.text.count("connections get the one before it") == 1
    write_key(tmp_path, second)
    assert shown(server, authority) == der(second)


def test_files_that_are_gone_leave_what_there_was(
    serve: Serve, echo: Any, authority: trustme.CA, tmp_path: Path
) -> None:
    issued = authority.issue_cert("127.0.0.1")
    put(tmp_path, issued)
    server = serve(echo, tls=Tls(certificate=tmp_path / "server.pem", key=tmp_path / "server.key"))
    (tmp_path / "server.pem").unlink()
    assert shown(server, authority) == der(issued)


def test_a_client_trusts_an_authority_that_was_added(serve: Serve, echo: Any, tls: Tls, tmp_path: Path) -> None:
    assert tls.ca is not None
    server = serve(echo, tls=tls)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trusting = Tls(ca=tmp_path / "ca.pem")
    with (
        closing(Channel(server.host, server.port, tls=trusting, timeout_s=20)) as channel,
        pytest.raises(AuthenticationError, match="is not accepted"),
    ):
        channel.connect()
    shutil.copy(tls.ca, tmp_path / "ca.pem")
    with closing(Channel(server.host, server.port, tls=trusting, timeout_s=20)) as channel:
        assert channel.request(Echo({"x": 1})).message.args == {"x": 1}
