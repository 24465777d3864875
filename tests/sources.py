"""Where the Python lies that is no test and no benchmark."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = tuple(ROOT / folder for folder in ("jobs", "plugins", "dags", "local", "demo"))
