"""The meaning of type annotations, read once for all borders.

Lives here: the fields of classes of records, and the tree of kinds that an annotation stands for.
Comes in:   classes and annotations.
Goes out:   names of fields, and kinds; each border (JSON, text, Arrow, Postgres, SQL, Spark) is an
            adapter of these.
May import: nothing of the library.
"""
