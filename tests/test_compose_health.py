"""The start of docker-compose.yml's services: no health test asks what waits for it, no killed first start is kept."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.test_compose import SERVICES


def find_all_waits(name: str) -> set[str]:
    """Return the services that this one waits for, at any distance."""
    others = set(SERVICES[name].get("depends_on", {}))
    return others.union(*map(find_all_waits, others))


def test_compose_health_tests_ask_no_part_that_waits_for_them() -> None:
    tested = {name: " ".join(each["healthcheck"]["test"]) for name, each in SERVICES.items() if "healthcheck" in each}
    assert len(tested) > 5
    for name, test in tested.items():
        asked = set(re.findall(r"[\w-]+", test)) & SERVICES.keys()
        assert asked <= {name} | find_all_waits(name), name
        if "hdfs" in test:  # which asks the NameNode, without naming it
            assert name == "namenode" or "namenode" in find_all_waits(name)


def test_compose_namenode_formats_again_after_a_killed_format(tmp_path: Path) -> None:
    hdfs = tmp_path / "hdfs"
    formats = 'case "$*" in *-format*) mkdir -p "${3#*=file://}/current";; *) echo started;; esac\n'
    shell, options, script = SERVICES["namenode"]["command"]
    start = [shell, options, script.replace("/data/", f"{tmp_path}/data/")]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for killed, said in ((True, ""), (False, "started\n"), (False, "started\n")):
        hdfs.write_text(f"#!/bin/sh\n{formats}{'kill -9 $PPID' if killed else ''}\n")
        hdfs.chmod(0o755)
        done = subprocess.run(start, env=path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0, done.stdout) == (not killed, said)
        assert (tmp_path / "data" / "names" / "current").is_dir() is not killed
    assert not (tmp_path / "data" / "format").exists()
