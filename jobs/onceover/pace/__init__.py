"""How much a batch may read, decided when it is submitted: from how the batches before it went."""
