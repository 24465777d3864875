"""The demo: a month of real flights through the whole loop, crashes included, held against an independent oracle."""
