"""Two kernels that answer a fragment of a statement over Arrow tables, with the same answer.

``arrow`` where it can answer exactly, in microseconds; ``duckdb`` for the whole dialect, in about a millisecond.
``fragment.run`` picks.
"""
