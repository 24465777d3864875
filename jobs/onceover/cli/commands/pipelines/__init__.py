"""`onceover pipelines`: the list of pipelines, the check of their TOMLs, and the change of a contract."""

from __future__ import annotations

from onceover.cli.lazy import make_group

app = make_group(
    "pipelines", __name__, "Run", ("list", "check", "migrate"), "List pipelines, check their TOMLs, change a contract."
)
