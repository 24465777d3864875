"""The secrets of docker-compose.yml: each is made by its recipe, and none is committed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
_PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(each)


def test_variables_are_required_and_all_in_the_recipe() -> None:
    used = [found for text in texts(COMPOSE) for found in re.findall(r"(?<!\$)\$\{?([A-Z_]+)(:\?)?", text)]
    assert used
    assert {name for name, must in used if not must} == set()
    recipe = re.search(r"^# {3}\(umask.*?\)'\)$", TEXT, re.MULTILINE | re.DOTALL)
    assert recipe is not None
    script = re.sub(r"^# {3}", "", recipe[0], flags=re.MULTILINE).replace(">.env", "")
    made = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True).stdout
    values = dict(line.split("=", 1) for line in made.splitlines())
    assert values.keys() == {name for name, _ in used}
    assert len(set(values.values())) == len(values)
    assert all(len(b64decode(value, b"-_")) == 32 for value in values.values())  # a Fernet key is that long


def test_secrets_are_neither_committed_nor_in_the_image() -> None:
    for name, value in ((n, v) for s in SERVICES.values() for n, v in s.get("environment", {}).items()):
        if re.search(r"PASSWORD$|SECRET|FERNET|SQL_ALCHEMY_CONN", name):
            assert "${" in str(value), name
    assert subprocess.run(["git", "check-ignore", "-q", ".env"], cwd=ROOT, check=False).returncode == 0
    assert ".env" in (ROOT / ".dockerignore").read_text().split()


def test_compose_passwords_file_holds_any_password(tmp_path: Path) -> None:
    script = str(SERVICES["airflow-migrate"]["command"][-1]).replace("$$", "$")
    script = script.replace("/var/lib/airflow", str(tmp_path)).replace("airflow db migrate", "")
    passwords = {"admin": 'a"b', "oncall": "e'f", "viewer": "c\\d%s"}
    given = {f"AIRFLOW_{user.upper()}_PASSWORD": password for user, password in passwords.items()}
    subprocess.run(["bash", "-ec", script], env={"PATH": _PATH, **given}, check=True)
    assert json.loads((tmp_path / "passwords.json").read_text()) == passwords
    assert (tmp_path / "passwords.json").stat().st_mode & 0o077 == 0
