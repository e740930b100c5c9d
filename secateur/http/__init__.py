"""A Python client of the HTTP server, and what both sides share: it needs no port of the cluster but the server's."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "http_client": ["HttpClient"],
    "http_job": ["HttpJob"],
    "http_statement": ["HttpResult", "HttpStatement", "StatementInfo"],
    "http_transport": ["HttpTransport"],
    "json_values": ["PARAMETER_TYPES", "json_parameters", "parameters_of"],
    "answers": ["StatementState"],
}

__all__, __getattr__ = exports(__name__, _FILES)
