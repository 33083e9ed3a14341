"""Random nested queries over random histories, against comprehensions over lists."""
