"""The texts of the pages, which are written again only when what they show has changed.

An open page is asked for every 1.4 seconds, and most of the time nothing in it is new but the line at its top: writing
a page of 271 partitions takes ten milliseconds, comparing what it shows with what it has shown a tenth of one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from secateur.server.dashboard.cluster_line import ClusterLine
from secateur.server.dashboard.templating import rendered

_KEPT_MAX: Final = 32
_LINE: Final = "<!-- the line of the cluster -->"
"""Its place in a kept text. No text of a user looks like it: a page escapes those."""

Key = tuple[str, tuple[tuple[str, str], ...]]


class PageTexts:
    """Writes pages and keeps the newest. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, tuple[Mapping[str, Any], str]] = OrderedDict()
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
