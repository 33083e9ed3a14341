"""Functions that generated code calls for each row; arguments are not NULL unless stated."""
