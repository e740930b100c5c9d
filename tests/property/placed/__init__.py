"""Random statements over several tables: a file for each kind of part.

Names are exact and orders are total, so that DuckDB takes most statements and each has one answer; :mod:`relational` is
about names. Values are small integers, texts, dates, decimals, doubles whose sums are exact, and lists, with NULLs and
duplicates outside of the keys; wide decimals and integers of up to 38 digits; and literals far outside of any column.

* :mod:`placed.tables`: the tables, and how the planner is made to prefer an exchange;
* :mod:`placed.parts`: what the makers hand to each other, and the state they share;
* :mod:`placed.literals`: constants and parameters;
* :mod:`placed.expressions`: columns, values, aggregates, predicates and subqueries in them;
* :mod:`placed.sources`: what stands in FROM; :mod:`placed.joins`: how it is joined;
* :mod:`placed.windows`: window functions and frames; :mod:`placed.selects`: the shapes of a SELECT;
* :mod:`placed.statements`: set operations, common table expressions, and whole statements; :mod:`placed.spelling`: how
  these are written;
* :mod:`placed.changes`: INSERT, UPDATE, DELETE and MERGE with such queries in them.
"""

from placed.changes import Changes
from placed.statements import Placeable
from placed.tables import EXCHANGES, exchange_model, placed_world

__all__ = ["EXCHANGES", "Changes", "Placeable", "exchange_model", "placed_world"]
