"""Statements, jobs and metrics of a cluster over HTTP: a client of the cluster, and an ASGI application."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "application": ["app"],
    "guard": ["Guard"],
    "http_server": ["HttpServer", "serve"],
    "limits": ["ServerLimits"],
    "state": ["IdempotencyKeys"],
}

__all__, __getattr__ = exports(__name__, _FILES)
