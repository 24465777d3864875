"""What a Spark error says, in one line."""

from __future__ import annotations

import re

# Python exceptions of executors arrive as a traceback inside the JVM's text; their last line is the reason.
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?(?:\w*(?:Error|Exception)): (.+)$")


def one_line(error: Exception, width: int = 400) -> str:
    """The innermost reason that the error's text names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    python = [match.group(0) for line in lines if (match := _PYTHON.match(line))]
    found = (python or causes[-1:] or lines[:1] or [type(error).__name__])[-1]
    return found if len(found) <= width else found[: width - 3] + "..."
