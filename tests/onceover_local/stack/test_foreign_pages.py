"""A page of another site in a browser of this machine cannot change raw; Onceover's client and Hadoop's own can."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from onceover.config import endpoints
from onceover.raw.hdfs import connect_hdfs
from onceover_local.stack import Stack
from onceover_local.stack.jars import fetch_class_path
from onceover_local.stack.part import find_java

pytestmark = pytest.mark.stack

PATH = "/foreign/pages"
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Origin": "http://elsewhere.example"}


@pytest.fixture
def file(stack: Stack) -> Iterator[str]:
    """A file on HDFS of six bytes; yields the URL of it on the NameNode."""
    client = connect_hdfs(endpoints.address("webhdfs"))
    client.write(PATH, data=b"whole\n", overwrite=True)
    yield f"{endpoints.address('webhdfs')}/webhdfs/v1{PATH}"
    client.delete(PATH)


@pytest.mark.parametrize(
    ("method", "operation"),
    [
        ("POST", "op=TRUNCATE&newlength=0"),
        ("POST", "op=APPEND"),
        ("PUT", "op=CREATE&overwrite=true"),
        ("PUT", "op=RENAME&destination=/x"),
        ("DELETE", "op=DELETE"),
    ],
)
def test_namenode_refuses_a_change_by_a_foreign_page(file: str, method: str, operation: str) -> None:
    answer = requests.request(method, f"{file}?{operation}", headers=BROWSER, allow_redirects=False, timeout=30)
    assert (answer.status_code, "Location" in answer.headers) == (400, False)
    assert requests.get(f"{file}?op=OPEN", timeout=30).content == b"whole\n"


@pytest.mark.parametrize(("method", "operation"), [("POST", "APPEND"), ("PUT", "CREATE&overwrite=true")])
def test_datanode_refuses_a_change_by_a_foreign_page(file: str, method: str, operation: str) -> None:
    redirect = requests.request(method, f"{file}?op={operation}&user.name=root", allow_redirects=False, timeout=30)
    datanode = redirect.headers["Location"]
    assert requests.request(method, datanode, headers=BROWSER, data=b"spoilt", timeout=30).status_code == 400
    assert requests.get(f"{file}?op=OPEN", timeout=30).content == b"whole\n"
    assert requests.request(method, datanode, data=b"ours\n", timeout=30).ok, "a client that is no browser"


@pytest.mark.parametrize("part", ["hdfs", "webhdfs"])
def test_hadoop_shell_reads_and_writes_as_before(file: str, part: endpoints.PartName, tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")  # the shell wants one
    root = endpoints.address(part).replace("http://", "webhdfs://")
    java = [*find_java(), "-Xmx128m", "-cp", f"{tmp_path}:{fetch_class_path('hdfs', lambda *_: None)}"]
    shell = [*java, "org.apache.hadoop.fs.FsShell"]
    read = subprocess.run([*shell, "-cat", f"{root}{PATH}"], capture_output=True, check=False)
    assert (read.returncode, read.stdout) == (0, b"whole\n"), read.stderr.decode()
    append = [*shell, "-appendToFile", "-", f"{root}{PATH}"]
    wrote = subprocess.run(append, input=b"more\n", capture_output=True, check=False)
    assert wrote.returncode == 0, wrote.stderr.decode()
    assert requests.get(f"{endpoints.address('webhdfs')}/webhdfs/v1{PATH}?op=OPEN", timeout=30).content == (
        b"whole\nmore\n"
    )
