"""The demo: a month of real flights through the whole loop, crashes included, compared with an independent oracle."""
