"""Spans of the processes of a cluster as files of a folder, for tests that read them from all processes together."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

FOLDER = "SECATEUR_TEST_SPANS"


def configure() -> None:
    """What `secateur.start(tracing="span_files:configure")` calls in each process."""
    file = (Path(os.environ[FOLDER]) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8", buffering=1)
    provider = TracerProvider()
    provider.add_span_processor(
        SimpleSpanProcessor(ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n"))
    )
    trace.set_tracer_provider(provider)
