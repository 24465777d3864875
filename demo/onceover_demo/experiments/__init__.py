"""Experiments on the real broker that show what each way to commit offsets loses and repeats."""
