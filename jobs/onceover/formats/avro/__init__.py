"""Avro: schemas, what a reader's makes of a writer's, and values read by the batch."""
