"""The notifier of a task that has failed for good: named by configuration alone, as docs/operations.md shows it."""

from __future__ import annotations

import email
import json
import re
import socketserver
import threading
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseNotifier, Context

from onceover.errors import ConfigurationError
from onceover_airflow.notifier import on_failure

pytestmark = pytest.mark.airflow
OPERATIONS = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
SAID = "<b> is blocked; open https://x/onceover/flights/2013-01-05T14:00Z"


class MailServer(socketserver.ThreadingTCPServer):
    """A double of a mail server: it answers each command with yes, and keeps what was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.received: list[Message] = []


class _Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self.wfile.write(b"220 ready\r\n")
        while (command := self.rfile.readline().strip().upper()) and command != b"QUIT":
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.received.append(email.message_from_bytes(text))
            self.wfile.write(b"250 yes\r\n")
        self.wfile.write(b"221 bye\r\n")


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def read_example(notifier: str) -> dict[str, str]:
    """Return the variables of the example in docs/operations.md."""
    pattern = rf"(?s)ONCEOVER_NOTIFIER=(\S+{notifier})\n *ONCEOVER_NOTIFIER_OPTIONS='(.*?)'"
    (found,) = re.findall(pattern, OPERATIONS)
    return {"ONCEOVER_NOTIFIER": found[0], "ONCEOVER_NOTIFIER_OPTIONS": found[1]}


class Pager(BaseNotifier):
    """A custom Airflow notifier."""

    template_fields = ()

    def notify(self, context: Context) -> None:
        pass


def page(context: Any) -> None:
    pass


not_a_function = 5


def test_notifier_variable_names_a_class_or_a_function() -> None:
    assert on_failure({}) == []
    assert on_failure({"ONCEOVER_NOTIFIER": f"{__name__}:page"}) == [page]
    (made,) = on_failure({"ONCEOVER_NOTIFIER": f"{__name__}:Pager"})
    assert isinstance(made, Pager)


def test_email_example_sends_the_complaint_with_its_link(mail: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"disable_ssl": True, "disable_tls": True, "retry_limit": 1}
    known = {"conn_type": "smtp", "host": "127.0.0.1", "port": mail.server_address[1], "extra": plain}
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(known))
    (notify,) = on_failure(read_example("SmtpNotifier"))
    context: Any = {"exception": SAID, "ti": SimpleNamespace(task_id="check"), "dag": DAG("repair", schedule=None)}

    notify(context)

    (sent,) = mail.received
    assert (sent["To"], sent["From"], sent["Subject"]) == (
        "on-call@example.com", "airflow@example.com", "check of repair failed"
    )  # fmt: skip
    (body,) = (part.get_payload(decode=True) for part in sent.walk() if part.get_content_type() == "text/html")
    assert body == b"<p>&lt;b&gt; is blocked; open https://x/onceover/flights/2013-01-05T14:00Z</p>"


def test_slack_example_is_refused_until_its_provider_is_there() -> None:
    example = read_example("SlackWebhookNotifier")
    assert json.loads(example["ONCEOVER_NOTIFIER_OPTIONS"]).keys() == {"slack_webhook_conn_id", "text"}
    with pytest.raises(ConfigurationError, match=r"SlackWebhookNotifier cannot be loaded: No module named .*; install"):
        on_failure(example)


@pytest.mark.parametrize("options", ["{", "[]", '{"nosuch": 1}'])
def test_options_that_do_not_fit_are_reported(options: str) -> None:
    with pytest.raises(ConfigurationError, match="ONCEOVER_NOTIFIER_OPTIONS"):
        on_failure({"ONCEOVER_NOTIFIER": f"{__name__}:Pager", "ONCEOVER_NOTIFIER_OPTIONS": options})


@pytest.mark.parametrize("wrong", ["page", "os.system('x'):y", "no_such_module:page", "json:no_such_name"])
def test_missing_notifier_is_reported(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="ONCEOVER_NOTIFIER"):
        on_failure({"ONCEOVER_NOTIFIER": wrong})


def test_notifier_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot be called"):
        on_failure({"ONCEOVER_NOTIFIER": f"{__name__}:not_a_function"})
