"""What an offset store decides: the experiments that tell the ways to commit apart, on the real broker."""
