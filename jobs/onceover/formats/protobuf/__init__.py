"""Protobuf: schemas, what a reader's makes of a writer's, and values read one by one by Google's own library."""
