from __future__ import annotations

from pathlib import Path

import pytest

from onceover.config.endpoints import find_spark_secret, read_secret
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


MASTER = "spark://127.0.0.1:7077"


@pytest.fixture
def embedded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The secret's file of an embedded cluster."""
    monkeypatch.setenv("ONCEOVER_LOCAL", str(tmp_path))
    (tmp_path / "endpoints.json").write_text(f'{{"spark": "{MASTER}"}}')
    (tmp_path / "secrets").mkdir()
    path = tmp_path / "secrets" / "spark"
    path.write_text("embedded")
    path.chmod(0o600)
    return path


def test_spark_secret_is_the_embedded_master_s_own(embedded: Path) -> None:
    assert find_spark_secret(MASTER, {}) == "embedded"
    assert find_spark_secret("spark://other:7077", {}) is None
    assert find_spark_secret("yarn", {"ONCEOVER_SPARK_SECRET": "given"}) is None, "YARN makes its own"
    embedded.unlink()
    assert find_spark_secret(MASTER, {}) is None


def test_spark_secret_of_the_environment_goes_first(embedded: Path, file: Path) -> None:
    assert find_spark_secret(MASTER, {"ONCEOVER_SPARK_SECRET": "given"}) == "given"
    assert find_spark_secret("spark://other:7077", {"ONCEOVER_SPARK_SECRET_FILE": str(file)}) == "s3cret"


def test_spark_secret_that_others_may_read_is_refused(embedded: Path) -> None:
    embedded.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        find_spark_secret(MASTER, {})
