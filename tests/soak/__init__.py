"""Random plans through random histories, against an oracle of plain Python over lists.

cases           all that a history is made of; queries and commits are `tests.random_queries`
side            a database that is played in
hearing         the ways in which subscribers are told, elsewhere too: threads, and an event loop
mirror          a copy of a view, made of nothing but what subscribers are told
play            a history in several databases at once, compared after each commit
shrink          the same difference by a smaller history

python -m tests.soak --seconds 60       ends with status 1 if anything differs
python -m tests.soak --one 4711         one history again
"""
