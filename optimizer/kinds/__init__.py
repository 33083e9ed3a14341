"""The kinds of values of type annotations, read once for all borders.

Lives here: the fields of classes of records, and the kind of an annotation, as a tree.
Comes in:   classes and annotations.
Goes out:   names of fields, and kinds; each border (JSON, text, Arrow, Postgres, SQL, Spark) is an
            adapter of these.
May import: nothing of the library.
"""
