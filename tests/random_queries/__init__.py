"""Random queries as text, and what they should give: one generator for all tests that need some.

values, rows    what is in tables
texts           callables, as text that the library can read, or cannot
nodes, plans    trees of operators over tables; recursions and naming have files of their own
telling         which of them are worth a test
written         a tree as text: a module of its callables and its query
histories       commits of statements, and what these mean for tables that are lists
oracle          what the rows of a tree are; it shares nothing with the library
drawn           a query and a history of a seed, with switches; what most tests ask for

terms, programs are the programs of rules that the tests of recursion need beside: relations defined
by each other, one inside another, over a few small numbers, so that all of them come to an end.
"""
