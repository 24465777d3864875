"""The commands of `onceover`, one module each: a command parses, calls one package and prints."""
