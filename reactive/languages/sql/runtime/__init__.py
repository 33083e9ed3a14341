"""What is done with each row: plain functions of values that are not NULL, unless they say so."""
