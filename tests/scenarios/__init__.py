"""Every operator in the situations that such systems have been seen to get wrong."""
