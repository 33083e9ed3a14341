"""Random queries as text, with their expected rows: one generator for all tests that need some.

    values, rows    the contents of tables
    texts           callables, as text that the library can read, or cannot
    nodes, plans    trees of operators over tables; recursions and naming have files of their own
    telling         selection of the plans that are worth a test
    over_time       trees that read moments: windows, frames, as-of joins, look-ups of events
    moments         the rows of windows and frames, for the oracle
    written         a tree as text: a module of its callables and its query
    histories       commits of statements, and their effect on tables that are lists
    oracle          the rows of a tree; it shares nothing with the library
    drawn           a query and a history of a seed, with switches; most tests use this module

terms, programs are the programs of rules that the tests of recursion need besides: relations
defined by each other, one inside another, over a few small numbers, so that all of them terminate.
"""
