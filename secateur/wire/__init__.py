"""Frames between clients, members and the controller: tables as bytes, the server, and its callers.

What runs in an event loop is loaded at its first use: clients and the tasks of Spark, which only call, do without
asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secateur.exports import exports
from secateur.protocol.arrow_ipc import decode_batches, decode_schema, decode_table, decode_tables, encode_table

if TYPE_CHECKING:
    from secateur.wire.buffers import FrameReceiver
    from secateur.wire.channel import SILENCE_S, Channel, SilenceRule
    from secateur.wire.connection import FrameService
    from secateur.wire.frames import FRAME_PREFIX, Frame, FrameDecoder, FrameKind, Limits, Payload, encode_frame
    from secateur.wire.handshake import ClusterIdentity, TokenBook, hello
    from secateur.wire.messages import Answer, Handled, Handler, PeerInfo, Reply, Request
    from secateur.wire.peer import Peer
    from secateur.wire.server import ALIVE_S, FrameServer
    from secateur.wire.short_table import (
        SHORT_CHARACTERS_MAX,
        SHORT_ROWS_MAX,
        ShortTable,
        decode_rows,
        encode_rows,
        has_few_rows,
        is_short,
        short_check,
        shorten,
        travels_short,
    )
    from secateur.wire.signed_tokens import Jwt, signed_token_verifier
    from secateur.wire.tls import Tls, client_context
    from secateur.wire.waits import BLOCKING, TIMEOUTS, CallControl, Waits, wait_at_most

__all__ = [
    "ALIVE_S",
    "BLOCKING",
    "FRAME_PREFIX",
    "SHORT_CHARACTERS_MAX",
    "SHORT_ROWS_MAX",
    "SILENCE_S",
    "TIMEOUTS",
    "Answer",
    "CallControl",
    "Channel",
    "ClusterIdentity",
    "Frame",
    "FrameDecoder",
    "FrameKind",
    "FrameReceiver",
    "FrameServer",
    "FrameService",
    "Handled",
    "Handler",
    "Jwt",
    "Limits",
    "Payload",
    "Peer",
    "PeerInfo",
    "Reply",
    "Request",
    "ShortTable",
    "SilenceRule",
    "Tls",
    "TokenBook",
    "Waits",
    "client_context",
    "decode_batches",
    "decode_rows",
    "decode_schema",
    "decode_table",
    "decode_tables",
    "encode_frame",
    "encode_rows",
    "encode_table",
    "has_few_rows",
    "hello",
    "is_short",
    "short_check",
    "shorten",
    "signed_token_verifier",
    "travels_short",
    "wait_at_most",
]

_FILES = {
    "channel": ["SILENCE_S", "Channel", "SilenceRule"],
    "connection": ["FrameService"],
    "buffers": ["FrameReceiver"],
    "frames": ["FRAME_PREFIX", "Frame", "FrameDecoder", "FrameKind", "Limits", "Payload", "encode_frame"],
    "handshake": ["ClusterIdentity", "TokenBook", "hello"],
    "messages": ["Answer", "Handled", "Handler", "PeerInfo", "Reply", "Request"],
    "peer": ["Peer"],
    "server": ["ALIVE_S", "FrameServer"],
    "short_table": [
        "SHORT_CHARACTERS_MAX",
        "SHORT_ROWS_MAX",
        "ShortTable",
        "decode_rows",
        "encode_rows",
        "has_few_rows",
        "is_short",
        "short_check",
        "shorten",
        "travels_short",
    ],
    "signed_tokens": ["Jwt", "signed_token_verifier"],
    "tls": ["Tls", "client_context"],
    "waits": ["BLOCKING", "TIMEOUTS", "CallControl", "Waits", "wait_at_most"],
}

_, __getattr__ = exports(__name__, _FILES)
