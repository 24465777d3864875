"""The Spark of `warm`: `python -m onceover_demo.warm_server` builds one session, then reads a line of JSON a process:
script, arguments, environment and log. The server forks and prints the child's pid; the child runs the script's `main`
up to its end or its SIGKILL.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from onceover.config.endpoints import home
from onceover.errors import OnceoverError, TransientError
from onceover.spark.session import build


def serve() -> None:
    """Build the session, then fork for each line on standard input; return when standard input is closed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = build("kills")
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "reap" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["reap"], 0)[1])
        else:
            answer = os.fork() or _run_child(request, type(session))
        print(answer, file=answers, flush=True)
    session.stop()


def _run_child(request: Mapping[str, Any], session: Any) -> int:
    """Run the script in a process group of its own, without stopping the shared session at its end. Never returns."""
    os.setsid()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(request["environment"])
    session.stop = lambda self: None
    code = 1
    try:
        _load_main(request["script"])(request["arguments"])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except OnceoverError as error:
        sys.stderr.write(f"{request['script'].removesuffix('.py')}: {error}\n")
        code = error.exit_code
    finally:
        sys.stdout.flush()
        os._exit(code)


def _load_main(script: str) -> Callable[[list[str]], None]:
    spec = importlib.util.spec_from_file_location(script.removesuffix(".py"), home() / "jobs" / script)
    if spec is None or spec.loader is None:
        raise TransientError(f"there is no jobs/{script}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main  # type: ignore[no-any-return]


if __name__ == "__main__":
    serve()
