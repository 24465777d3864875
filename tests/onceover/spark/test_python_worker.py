"""A worker's modules are taken out of garbage collection, again when there are more, and not otherwise."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from onceover.spark.python_worker import freeze_modules
frozen = []
for step in ("", "import decimal, fractions", ""):
    exec(step)
    freeze_modules()
    frozen.append(gc.get_freeze_count())
assert 0 < frozen[0] < frozen[1] and abs(frozen[2] - frozen[1]) < 10, frozen
"""


def test_modules_are_frozen_again_when_there_are_more() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
