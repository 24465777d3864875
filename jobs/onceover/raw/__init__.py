"""Raw records in their store: where files lie, how they are appended to, listed and read."""
