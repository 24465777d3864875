"""The glossary as values: windows, offsets, batches, findings and contracts, without any I/O."""
