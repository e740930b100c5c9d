"""What the cluster tells of itself in SQL: system tables, the views of ``information_schema`` over them, SHOW, DESCRIBE
and SUMMARIZE.
"""
