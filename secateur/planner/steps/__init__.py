"""Queries in steps: subqueries that run first, and whose values prune the rest.

Source: "Materialization" of IEP-24 (Ignite).
"""
