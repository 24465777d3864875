"""The embedded deployment on one machine, for the demo, for tests and for trying things out."""
