"""Random plans through random histories, against an oracle of plain Python over lists.

values, rows    what is in tables
texts           callables, as text that the library can read, or cannot
nodes, plans    trees of operators over tables; recursion and naming have files of their own
telling         which of them are played
histories       commits: statements, transactions that fail, interrupts
oracle          what the rows of a plan are; it shares nothing with the library
build, side     the same plan in the library, and a database that is played in
hearing         the ways in which subscribers are told, elsewhere too: threads, and an event loop
mirror          a copy of a view, made of nothing but what subscribers are told
play            a history in several databases at once, compared after each commit
shrink          the same difference by a smaller history

python -m tests.soak --seconds 60       ends with status 1 if anything differs
python -m tests.soak --one 4711         one history again
"""
