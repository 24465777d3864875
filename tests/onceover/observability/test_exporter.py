"""The metrics, scraped over loopback: of a real ledger, an unreachable one, and one that is back."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NoReturn

import pytest
from bench.large_ledger import pipeline
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from onceover.config.endpoints import address
from onceover.errors import TransientError
from onceover.ledger.catalog import register_pipeline
from onceover.ledger.database import Connection
from onceover.model.contract import Column, Columns
from onceover.observability import exporter
from onceover.observability.exporter import LedgerCollector, serve_metrics
from onceover.observability.metrics import METRICS, UP

HOUR = timedelta(hours=1)


def scrape(url: str) -> dict[str, Metric]:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        return {each.name: each for each in text_string_to_metric_families(answer.read().decode())}


UNREACHABLE = "postgresql://me:secret@127.0.0.1:1/onceover"


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEOVER_POSTGRES", UNREACHABLE)


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture
def url(problems: list[str]) -> Iterator[str]:
    with serve_metrics(LedgerCollector(HOUR, problems.append), port=0) as served:
        yield served


def run_twice_at_once(act: Callable[[], object]) -> None:
    threads = [threading.Thread(target=act) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


@pytest.mark.stack
def test_scrape_has_every_metric_of_every_pipeline(connection: Connection, url: str, problems: list[str]) -> None:
    register_pipeline(
        connection, pipeline("scraped"), Columns((Column("kind", "text"),), (Column("n", "bigint", "count"),))
    )

    metrics = scrape(url)

    declared = {each.name.removesuffix("_total"): "counter" if each.is_counter else "gauge" for each in METRICS}
    assert {name: each.type for name, each in metrics.items()} == {UP: "gauge", **declared}
    assert [s.value for s in metrics[UP].samples] == [1]
    assert "scraped" in {s.labels["pipeline"] for s in metrics["onceover_windows"].samples}
    assert problems == []


@pytest.mark.stack
def test_scrapes_at_once_both_get_an_answer(connection: Connection, url: str) -> None:
    scrapes: list[dict[str, Metric]] = []
    run_twice_at_once(lambda: scrapes.append(scrape(url)))
    assert [each[UP].samples[0].value for each in scrapes] == [1, 1]


def test_unreachable_ledger_is_up_0_and_logged_once(unreachable: None, url: str, problems: list[str]) -> None:
    for _ in range(3):
        metrics = scrape(url)
        assert {name: [s.value for s in each.samples] for name, each in metrics.items()} == {UP: [0]}
    (line,) = problems
    assert "does not answer" in line
    assert "secret" not in line


@pytest.mark.stack
def test_ledger_that_is_back_is_scraped_again(
    connection: Connection, url: str, problems: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = address("postgres")
    for server, up in ((ledger, 1), (UNREACHABLE, 0), (ledger, 1)):
        monkeypatch.setenv("ONCEOVER_POSTGRES", server)
        assert scrape(url)[UP].samples[0].value == up
    assert len(problems) == 1


@pytest.mark.stack
def test_ledger_of_another_version_is_up_0(
    connection: Connection, url: str, problems: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onceover.ledger.database.SCHEMA_VERSION", "9999")
    assert scrape(url)[UP].samples[0].value == 0
    assert "no migration leads from there to 9999" in problems[0]


def test_exporter_listens_on_loopback_only(unreachable: None, url: str) -> None:
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with socket.create_server(("127.0.0.2", port)):
        pass  # a server on every interface would have taken this address


def test_taken_port_is_reported_with_its_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(TransientError, match=f"port {port} on 127.0.0.1 is not available .*--port"),
            serve_metrics(LedgerCollector(HOUR, print), port),
        ):
            pass


def test_scrapes_at_once_take_one_connection_of_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    met: list[bool] = []

    def open_ledger(purpose: str) -> NoReturn:
        try:
            both.wait(0.5)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        raise TransientError("no ledger")

    monkeypatch.setattr(exporter, "open_ledger", open_ledger)
    collector = LedgerCollector(HOUR, lambda problem: None)
    run_twice_at_once(lambda: list(collector.collect()))
    assert met == [False, False], "one waits for the other"
