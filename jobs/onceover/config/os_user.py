"""The operating system's user of this process, who may have no entry in passwd: a container's, started by a number."""

from __future__ import annotations

import getpass
import os
import pwd

from onceover.errors import ConfigurationError


def name_user() -> str:
    """Return the user's name, as HDFS is given it: HADOOP_USER_NAME, else that of the environment or of passwd, else
    one of the number."""
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (KeyError, OSError):  # of Python 3.13 on
        return f"uid{os.getuid()}"


def require_passwd_entry() -> None:
    """Raise ConfigurationError for a user without an entry in passwd: Java's login fails without, and Spark with it."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise ConfigurationError(
            f"user {os.getuid()} has no entry in passwd, and Spark's login needs one; start the container by its "
            "entrypoint, add the user, or preload libnss_wrapper.so as deploy/entrypoint.sh does"
        ) from None
