"""Frames between clients, members and the controller: values and tables as bytes, the server, and its callers."""

from __future__ import annotations

from secateur.wire.arrow_ipc import decode_schema, decode_table, decode_tables, encode_table
from secateur.wire.call_control import CallControl
from secateur.wire.channel import Channel
from secateur.wire.connection import Handler
from secateur.wire.frame_receiver import FrameReceiver
from secateur.wire.frames import PROTOCOL_VERSION, Frame, FrameDecoder, FrameKind, Payload, encode_frame
from secateur.wire.handshake import ClusterIdentity, Hello
from secateur.wire.limits import Limits
from secateur.wire.messages import Answer, PeerInfo, Reply, Request, Role
from secateur.wire.peer import Peer
from secateur.wire.server import FrameServer
from secateur.wire.short_table import ShortTable, is_short, shorten, travels_short
from secateur.wire.values import pack, unpack

__all__ = [
    "PROTOCOL_VERSION",
    "Answer",
    "CallControl",
    "Channel",
    "ClusterIdentity",
    "Frame",
    "FrameDecoder",
    "FrameKind",
    "FrameReceiver",
    "FrameServer",
    "Handler",
    "Hello",
    "Limits",
    "Payload",
    "Peer",
    "PeerInfo",
    "Reply",
    "Request",
    "Role",
    "ShortTable",
    "decode_schema",
    "decode_table",
    "decode_tables",
    "encode_frame",
    "encode_table",
    "is_short",
    "pack",
    "shorten",
    "travels_short",
    "unpack",
]
