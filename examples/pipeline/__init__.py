"""A pipeline on Spark: folders of files in, live queries, tables out."""
