from __future__ import annotations

from pathlib import Path

import pytest

from onceover.config.endpoints import read_secret
from onceover.errors import ConfigurationError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("s3cret\n")
    path.chmod(0o600)
    return path


def test_a_secret_is_a_variables_value_or_what_a_file_holds(file: Path) -> None:
    assert read_secret("PASSWORD", {"PASSWORD": "plain"}) == "plain"
    assert read_secret("PASSWORD", {"PASSWORD_FILE": str(file)}) == "s3cret"
    assert read_secret("PASSWORD", {"PASSWORD_FILE": "", "PASSWORD": ""}) is None
    file.chmod(0o400)
    assert read_secret("PASSWORD", {"PASSWORD_FILE": str(file)}) == "s3cret"
    file.chmod(0o600)
    file.write_text("-----BEGIN KEY-----\nabc\x0bdef\n-----END KEY-----\n")
    assert read_secret("KEY", {"KEY_FILE": str(file)}) == "-----BEGIN KEY-----\nabc\x0bdef\n-----END KEY-----"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_file_that_others_may_read_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600") as refused:
        read_secret("PASSWORD", {"PASSWORD_FILE": str(file)})
    assert "s3cret" not in str(refused.value)


def test_variable_without_a_readable_secret_is_reported(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="both set"):
        read_secret("PASSWORD", {"PASSWORD_FILE": str(file), "PASSWORD": "x"})
    with pytest.raises(ConfigurationError, match="No such file"):
        read_secret("PASSWORD", {"PASSWORD_FILE": f"{file}.gone"})
    file.write_text("\n")
    with pytest.raises(ConfigurationError, match="is empty"):
        read_secret("PASSWORD", {"PASSWORD_FILE": str(file)})
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_secret("PASSWORD", {"PASSWORD_FILE": str(file)})
