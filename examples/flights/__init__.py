"""A year of flights from New York: Spark cleans them, three Ray members keep them, SQL statements read them back.

Run it with ``make demo``. Read it in this order: ``__main__`` (the story), ``pipeline`` (Spark), ``tables`` (the DDL),
``questions`` (the SQL), ``answer`` (asking, timing and checking), ``dataset`` and ``screen`` (where the files come from
and how it prints).
"""
