"""The glossary as values: what windows, offsets, batches, findings and contracts are, without any I/O."""
