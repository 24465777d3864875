"""`onceover pipelines`: the list of pipelines, drafts and checks of their TOMLs, and the change of a contract."""

from __future__ import annotations

from onceover.cli.lazy import make_group

app = make_group(
    "pipelines",
    __name__,
    "Run",
    ("list", "init", "check", "migrate"),
    "List pipelines, draft and check their TOMLs, change a contract.",
)
