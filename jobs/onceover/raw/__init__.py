"""Raw records in their store: the layout of files, append, list and read."""
