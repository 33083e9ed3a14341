"""Tables of Postgres as a source: a snapshot, then each of its transactions as a commit.

    snapshot of the slot  -->  rows in batches
    logical replication   -->  feed.py  -->  stream.py  -->  one batch per transaction

Its users take `PostgresSource` and `NotifySource`; `python -m reactive.sources.postgres` writes
classes of rows to a file. The driver is psycopg2, which alone among the
kept ones speaks the replication protocol; it is imported where it is used.
"""
