"""What texts are put together of: types, values, columns, names, dialects and errors."""
