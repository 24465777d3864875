"""Lands each batch: reads it from Kafka, appends it to window files, counts it, commits its offsets."""
