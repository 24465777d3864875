"""The lock holds what pyproject.toml and requirements/base.in ask for, in versions that they allow."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = [
    *PROJECT["dependencies"],
    *PROJECT["optional-dependencies"]["local"],
    *(line for line in (ROOT / "requirements" / "base.in").read_text().splitlines() if not line.startswith("#")),
]


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    lines = (ROOT / "requirements" / "base.txt").read_text().splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lines if line[:1].isalnum()]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


@pytest.mark.parametrize("declared", DECLARED)
def test_lock_holds_an_allowed_version(declared: str, locked: dict[str, str]) -> None:
    requirement = Requirement(declared)
    assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)])
