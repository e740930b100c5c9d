"""TLS on one connection: what both sides are told when the other one does not do as they do."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from wire_operations import Echo, Later, Wait, Who

from secateur.errors import AuthenticationError, MemberLostError, ProgrammingError, ProtocolError, UnreachableError
from secateur.wire import Channel, FrameServer, Limits, Peer, Tls, client_context, hello

Serve = Callable[..., FrameServer]


def trusting(tls: Tls, **options: Any) -> Tls:
    """What a client has: no certificate."""
    return Tls(ca=tls.ca, **options)


def has_hung_up(connected: socket.socket) -> bool:
    """Whether nothing comes any more; a peer that has not read everything resets the connection."""
    with suppress(ConnectionResetError):
        return connected.recv(1) == b""
    return True


def test_requests_are_answered_over_tls(serve: Serve, echo: Any, loop: Any, tls: Tls) -> None:
    server = serve(echo, token="t", tls=tls)
    large = bytes(range(256)) * 40_000
    with closing(Channel(server.host, server.port, hello("t"), tls=trusting(tls), timeout_s=20)) as channel:
        assert channel.request(Echo({"x": 1}), b"pay").message.args == {"x": 1}
        assert bytes(channel.request(Echo(), large).payload) == large
        assert channel.request(Who()).message.args["authenticated"]
    peer = Peer(server.host, server.port, hello("t"), tls=trusting(tls))
    assert loop.run(peer.request(Later({"y": 2}))).message.args == {"late": True, "y": 2}
    assert bytes(loop.run(peer.request(Echo(), large)).payload) == large
    loop.run(peer.close())


def test_nothing_of_a_request_can_be_read_on_the_way(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(1 << 16):
            seen.append(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    def relay() -> None:
        near, _ = listener.accept()
        with near, socket.create_connection((server.host, server.port)) as far:
            back = threading.Thread(target=pass_on, args=(far, near))
            back.start()
            pass_on(near, far)
            back.join()

    thread = threading.Thread(target=relay)
    thread.start()
    with closing(Channel("127.0.0.1", listener.getsockname()[1], tls=trusting(tls), timeout_s=20)) as channel:
        assert channel.request(Echo({"x": "in the clear"}), b"a secret payload").message.args == {"x": "in the clear"}
    thread.join(20)
    listener.close()
    assert seen
    assert b"in the clear" not in b"".join(seen)
    assert b"a secret payload" not in b"".join(seen)


def test_a_plain_client_is_told_to_use_tls(serve: Serve, echo: Any, loop: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    with (
        closing(Channel(server.host, server.port, timeout_s=20)) as channel,
        pytest.raises(AuthenticationError, match=r"speaks TLS alone.*pass tls=Tls\(ca=\.\.\.\) to connect"),
    ):
        channel.request(Echo())
    peer = Peer(server.host, server.port)
    with pytest.raises(AuthenticationError, match="speaks TLS alone"):
        loop.run(peer.request(Echo()))
    loop.run(peer.close())


def test_a_tls_client_is_told_that_the_server_has_none(serve: Serve, echo: Any, loop: Any, tls: Tls) -> None:
    server = serve(echo)
    with (
        closing(Channel(server.host, server.port, tls=trusting(tls), timeout_s=20)) as channel,
        pytest.raises(ProtocolError, match=r"does not speak TLS as this side does.*leave tls= out here"),
    ):
        channel.connect()
    peer = Peer(server.host, server.port, tls=trusting(tls))
    with pytest.raises(ProtocolError, match="leave tls= out here"):
        loop.run(peer.request(Echo()))
    loop.run(peer.close())


@pytest.mark.parametrize(
    ("host", "other_authority", "options", "reason"),
    [
        pytest.param("127.0.0.1", True, {}, "unable to get local issuer certificate", id="another authority"),
        pytest.param("127.0.0.1", False, {"server_name": "db.example"}, "Hostname mismatch", id="another name"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_named(
    serve: Serve,
    echo: Any,
    loop: Any,
    tls: Tls,
    tmp_path: Path,
    host: str,
    other_authority: bool,
    options: dict[str, Any],
    reason: str,
) -> None:
    server = serve(echo, tls=tls)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    client = Tls(ca=tmp_path / "other.pem" if other_authority else tls.ca, **options)
    with (
        closing(Channel(host, server.port, tls=client, timeout_s=20)) as channel,
        pytest.raises(AuthenticationError, match=rf"is not accepted \(.*{reason}.*Tls\(ca="),
    ):
        channel.connect()
    peer = Peer(host, server.port, tls=client)
    with pytest.raises(AuthenticationError, match=reason):
        loop.run(peer.request(Echo()))
    loop.run(peer.close())


def test_a_check_that_is_switched_off_lets_any_certificate_pass(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    with closing(Channel(server.host, server.port, tls=Tls(verify=False), timeout_s=20)) as channel:
        assert channel.request(Echo({"x": 1})).message.args == {"x": 1}


def test_a_name_of_the_certificate_may_stand_for_the_host(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    client = trusting(tls, server_name="localhost")
    with closing(Channel(server.host, server.port, tls=client, timeout_s=20)) as channel:
        assert channel.request(Echo({"x": 1})).message.args == {"x": 1}


def test_handshakes_that_do_not_end_are_dropped_and_others_are_served(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls, limits=Limits(unproven_max=4, hello_timeout_s=20.0))
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_connection((server.host, server.port), 20)) for _ in range(8)]
        for number, stalled in enumerate(sockets):
            stalled.sendall(b"" if number % 2 else b"\x16\x03\x01")
        with closing(Channel(server.host, server.port, tls=trusting(tls), timeout_s=20)) as channel:
            assert channel.request(Echo({"x": 1})).message.args == {"x": 1}
        assert has_hung_up(sockets[0]), "the oldest has made room"


def test_a_handshake_that_does_not_end_is_dropped_in_time(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls, limits=Limits(hello_timeout_s=0.2))
    with socket.create_connection((server.host, server.port), 20) as stalled:
        stalled.sendall(b"\x16\x03\x01")
        assert has_hung_up(stalled)
    with socket.create_connection((server.host, server.port), 20) as silent:
        assert has_hung_up(silent)


def test_a_request_that_waits_ends_when_its_channel_is_aborted(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    with closing(Channel(server.host, server.port, tls=trusting(tls), timeout_s=20)) as channel:
        channel.connect()
        ending = threading.Timer(0.2, channel.abort)
        ending.start()
        with pytest.raises(MemberLostError):
            channel.request(Wait())
        ending.join()


def test_a_server_that_is_gone_is_unreachable(tls: Tls) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        closing(Channel("127.0.0.1", port, tls=trusting(tls))) as channel,
        pytest.raises(UnreachableError, match="no process answers"),
    ):
        channel.connect()


def test_old_versions_of_tls_are_refused(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    old = ssl.create_default_context(cafile=tls.ca)
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection((server.host, server.port), 20) as plain, pytest.raises(OSError, match=r"."):
        old.wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({}, "needs a certificate and its key", id="none"),
        pytest.param({"certificate": "missing.pem"}, "missing.pem.*cannot be used.*No such file", id="no such file"),
        pytest.param({"certificate": __file__}, "cannot be used", id="no certificate"),
    ],
)
def test_files_that_a_server_cannot_use_are_named(
    serve: Serve, echo: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProgrammingError, match=message):
        serve(echo, tls=Tls(**options))


def test_authorities_that_cannot_be_read_are_named(serve: Serve, echo: Any, tls: Tls) -> None:
    server = serve(echo, tls=tls)
    with (
        closing(Channel(server.host, server.port, tls=Tls(ca="missing.pem"))) as channel,
        pytest.raises(ProgrammingError, match=r"authorities in .*missing\.pem.*cannot be used"),
    ):
        channel.connect()


def test_a_key_needs_its_certificate() -> None:
    with pytest.raises(ProgrammingError, match="name the certificate of the key"):
        Tls(key="server.key")


@pytest.mark.parametrize("rounds", range(8))
@pytest.mark.sampled(one_in=4)
def test_a_connection_that_comes_while_the_server_stops_is_closed(
    serve: Serve, echo: Any, loop: Any, tls: Tls, rounds: int
) -> None:
    server = serve(echo, tls=tls)

    async def stop_after(rounds: int) -> None:
        """The loop takes the connection in one of its rounds; the server stops before, in, or behind that one."""
        for _ in range(rounds):
            await asyncio.sleep(0)
        await server.stop()

    with socket.create_connection((server.host, server.port)) as client:
        loop.run(stop_after(rounds))
        client.settimeout(20)
        assert has_hung_up(client)
    gc.collect()  # a socket that was lost is reported here


def test_a_forked_process_has_contexts_of_its_own(tls: Tls) -> None:
    context = client_context(trusting(tls))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are threads
        child = os.fork()
    if not child:
        code = 2
        try:
            code = int(client_context(trusting(tls)) is context)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client_context(trusting(tls)) is context
