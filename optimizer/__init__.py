"""Queries as data: expressions and logical plans, and what can be said of them without any rows.

Symbols only: nothing here sees data or calls a user's code. Imports point
`spark_backend -> reactive -> optimizer -> standard library`. Four modules are no room's: `plan`,
`expr` and `traverse`, of which rules of one's own are written, and `errors`.
"""
