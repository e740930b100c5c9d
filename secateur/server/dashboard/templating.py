"""The templates of the pages, and the files that belong to them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from secateur import __version__
from secateur.drawing.quantity import byte_text, duration_text
from secateur.partitioning.types.type_text import field_name
from secateur.server.dashboard.cluster_line import ClusterLine

_HERE: Final = Path(__file__).parent
_NOTHING: Final = "-"
_KINDS: Final = {".svg": "image/svg+xml", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

STATIC_FILES: Final[Mapping[str, tuple[str, bytes]]] = MappingProxyType(
    {
        path.name: (_KINDS[path.suffix], path.read_bytes())
        for path in sorted((_HERE / "static").iterdir())
        if path.suffix in _KINDS
    }
)
"""Type and content of the style sheet, the scripts and the icon."""
PAGE_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
            " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
    }
)
"""A page runs the scripts of this server and no other; nothing in it is inline, and nothing comes from outside."""
_KEPT_MAX: Final = 32
_LINE: Final = "<!-- the line of the cluster -->"
"""Its place in a kept text. No text of a user looks like it: a page escapes those."""

_Key = tuple[str, tuple[tuple[str, str], ...]]


def rendered(name: str, values: Mapping[str, Any]) -> str:
    """A template as text.

    Args:
        name: Its file.
        values: The names that it uses; each has to be there.
    """
    return _environment.get_template(name).render(values)


_WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "count": lambda value: f"{value:,.0f}",
        "decimal": lambda value: f"{value:,.2f}".removesuffix("00").removesuffix("."),
        "rate": lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.1f}",
        "bytes": lambda value: byte_text(int(value)),
        "ms": lambda value: duration_text(value / 1e3),
        "percent": lambda value: "< 0.1 %" if 0 < value < 0.001 else f"{100 * value:.1f} %",
        "time": lambda value: value.strftime("%Y-%m-%d %H:%M:%S"),
        "text": lambda value: ", ".join(value) or _NOTHING if isinstance(value, list) else value,
        "name": field_name,
    }
)
"""The filters of the templates; each writes None as a dash."""


def _or_dash(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: _NOTHING if value is None else write(value)


class _RowEnvironment(Environment):
    """Looks the names of a template up in rows, which are dictionaries, before their methods: most names are columns.

    A page of a hundred rows takes a quarter less time than with the exception that each miss of ``getattr`` raises.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def _made() -> Environment:
    made = _RowEnvironment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: _or_dash(write) for name, write in _WRITERS.items()}
    digest = hashlib.sha256(b"".join(content for _, content in STATIC_FILES.values())).hexdigest()[:12]
    made.globals |= {"static_version": digest, "version": __version__}
    return made


_environment: Final = _made()


class PageTexts:
    """Writes pages, each again only when what it shows has changed, and keeps the newest. Thread-safe.

    An open page is asked for every 1.4 seconds, and most of the time nothing in it is new but the line at its top:
    writing a page of 271 partitions takes ten milliseconds, comparing what it shows with what it has shown a tenth of
    one.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, tuple[Mapping[str, Any], str]] = OrderedDict()
        self._lock = threading.Lock()

    def text(self, template: str, query: Mapping[str, str], values: Mapping[str, Any], line: ClusterLine) -> str:
        """A page.

        Args:
            template: Its template.
            query: What it was asked for.
            values: What it shows, and all that the text depends on.
            line: The line of the cluster.
        """
        key = template, tuple(sorted(query.items()))
        with self._lock:
            before = self._kept.get(key)
        if before is not None and before[0] == values:
            text = before[1]
        else:
            text = rendered(template, {**values, "line": Markup(_LINE)})
            with self._lock:
                self._kept[key] = values, text
                self._kept.move_to_end(key)
                while len(self._kept) > _KEPT_MAX:
                    self._kept.popitem(last=False)
        return text.replace(_LINE, rendered("line.html", {"line": line}), 1)
