"""The commands of `onceover`, one module a noun: each parses, calls one room and prints."""
