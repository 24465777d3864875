"""The whole embedded stack: its start, the undoing of a failed start, and its stop without loss."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from onceover.config import endpoints
from onceover.errors import TransientError, UsageError
from onceover_local.stack.files import write_whole
from onceover_local.stack.kerberos import Kdc
from onceover_local.stack.part import Part, PartStatus, State
from onceover_local.stack.place import Place, Say, remove_elsewhere
from onceover_local.stack.ports import Ports, is_listening
from onceover_local.stack.process import Process, ServerError, wait_for
from onceover_local.stack.waves import GROUPS, make_waves, order_stops

_TRIES: Final = 3
_R = TypeVar("_R")


class Stack:
    """One embedded stack, with processes, data, logs and addresses in the folder `local`.

    Any number of callers and processes may use the same folder: a change holds its lock. Every call may be repeated,
    and be killed at any time: the next call continues from the actual state.

    A `cluster` has three DataNodes, which keep each block twice, and standalone Spark with two workers, which runs
    Airflow's and all other jobs. With `kerberos`, HDFS asks for tickets, and a process that changes the stack or lists
    its parts has the environment that gives it one from then on. A folder that was either once remains so.
    """

    def __init__(self, local: Path | None = None, *, cluster: bool = False, kerberos: bool = False) -> None:
        self.local = (local or endpoints.local_folder()).resolve()  # one stack, by whatever name
        self._mark = self.local / "cluster"
        self._is_cluster = cluster or self._mark.exists()
        place = Place(self.local, endpoints.home(), Ports(self.local / "ports.json"))
        self._ports = place.ports
        is_secured = kerberos or (self.local / "kerberos").exists()
        self.kdc = Kdc(place) if is_secured else None
        self._waves = make_waves(place, is_cluster=self._is_cluster, kdc=self.kdc)
        self._stopping = threading.Event()
        self._lock: int | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that start by default."""
        return (*GROUPS, "spark") if self._is_cluster else GROUPS

    def up(self, groups: Collection[str] = GROUPS, say: Say = lambda part, what: None) -> list[str]:
        """Start the parts of these groups that do not run, wait until all are ready; return the names of those started.

        Groups are those of `groups`, endpoints.BY_NAME and yarn; airflow also starts postgres, and spark on a cluster;
        hbase and yarn also start hdfs. No group starts nothing. Raises UsageError for an unknown group, TransientError,
        with the part's last output, for a part that does not start; then, and on Ctrl-C, the parts that this call has
        started are stopped.
        """
        self._require_known(groups)
        if self.kdc is not None and "hbase" in groups:
            raise UsageError("HBase does not start on an HDFS with Kerberos here; start it without, in another folder")
        under_airflow: list[str] = [group for group in ("postgres", "spark", "airflow") if group in self._waves]
        on_hdfs = ["hdfs", "hbase", "yarn"]
        chosen = set(groups) | (set(under_airflow) if "airflow" in groups else set())
        chosen |= {"hdfs"} if {"hbase", "yarn"} & set(groups) else set()
        alone = [[group] for group in self._waves if group not in (*under_airflow, *on_hdfs)]
        chains = [chain for chain in [*alone, on_hdfs, under_airflow] if chosen & set(chain)]
        with self._hold_lock(say):
            if self._is_cluster:
                self._mark.touch()
            if self.kdc is not None and self.kdc.process.find_pid() is None:
                self._ports.settle(self.kdc.ports)
                self.kdc.configure(say)
            return self._start(
                lambda started: self._run_side_by_side(
                    [partial(self._climb, [g for g in chain if g in chosen], started, say) for chain in chains]
                ),
                say,
            )

    def down(self, say: Say = lambda part, what: None, groups: Collection[str] = ()) -> list[str]:
        """Stop every process that was started in this folder, or those of these groups, whose addresses stay; return
        the names. Data stays. Raises UsageError for an unknown group."""
        self._require_known(groups)
        with self._hold_lock(say):
            if groups:
                return self._stop([part.name for group, part in self._list_by_group() if group in groups], say)
            endpoints.endpoints_file(self.local).unlink(missing_ok=True)
            return self._stop([file.stem for file in (self.local / "pid").glob("*.json")], say)

    def remove(self) -> None:
        """Stop every process, and delete the folder with all data, and its parts' folders elsewhere."""
        self.down()
        remove_elsewhere(self.local)
        shutil.rmtree(self.local, ignore_errors=True)

    def list_statuses(self) -> list[PartStatus]:
        """Return every part's status, in the order in which they start; of those by name, only started ones."""
        if self.kdc is not None:
            self.kdc.log_in()
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda pair: self._read_status(*pair), self._list_by_group()))
        return [each for each in statuses if each.group in self.groups or each.state != "down"]

    def find_taken_ports(self) -> dict[str, int]:
        """Return kept ports of parts that do not run where another program listens. The next start takes others."""
        kept = self._ports.read_all()
        idle = (part for part in self._list_parts() if part.process.find_pid() is None)
        return {name: kept[name] for part in idle for name in part.ports if name in kept and is_listening(kept[name])}

    def find_pid(self, name: str) -> int:
        """Return the part's pid. Raises TransientError if it does not run."""
        pid = self._find_part(name).process.find_pid()
        if pid is None:
            raise TransientError(f"{name} is not running; start it with `onceover stack up`")
        return pid

    def stop_part(self, name: str) -> bool:
        """Stop one process cleanly and return whether it ran; its address stays in endpoints.json."""
        part = self._find_part(name)
        with self._hold_lock():
            return part.process.stop(part.stop_s)

    def kill_part(self, name: str) -> None:
        """Kill the process with SIGKILL, like a machine's failure. Nothing is cleaned up."""
        process = self._find_part(name).process
        os.kill(self.find_pid(name), signal.SIGKILL)
        wait_for(lambda: process.find_pid() is None, 10, f"{name} to be gone after SIGKILL")

    def start_part(self, name: str, say: Say = lambda part, what: None) -> bool:
        """Start one process, on its kept port if that is free, and wait for it; return whether it was down."""
        part = self._find_part(name)
        with self._hold_lock(say):
            return bool(self._start(lambda started: self._raise((part,), started, say), say))

    def _start(self, act: Callable[[list[str]], object], say: Say) -> list[str]:
        """Call `act`, which starts parts and lists their names, and return the names. Stop the parts if it fails."""
        started: list[str] = []
        try:
            act(started)
        except BaseException as error:
            for line in error.log_end if isinstance(error, ServerError) else ():
                say("", line)
            if started:
                say("stack", f"the start failed; stops the parts that it started: {', '.join(started)}")
            self._stop(started, say)
            raise
        finally:
            self._write_endpoints()
        return started

    def _stop(self, names: Collection[str], say: Say) -> list[str]:
        parts = {part.name: part for part in self._list_parts()}
        stopped: list[str] = []
        for wave in order_stops(sorted(names)):
            ran = self._run_side_by_side([partial(self._end, parts.get(name), name, say) for name in wave])
            stopped += [name for name, did_run in zip(wave, ran, strict=True) if did_run]
        return stopped

    def _climb(self, groups: list[str], started: list[str], say: Say) -> None:
        for group in groups:
            for wave in self._waves[group]:
                self._raise(wave, started, say)

    def _raise(self, wave: tuple[Part, ...], started: list[str], say: Say) -> None:
        """Start the parts of the wave that do not run as configured, add their names; wait until all are ready."""
        begun = time.monotonic()
        for part in wave:
            if part.process.find_pid() is None:
                part.process.stop(part.stop_s)  # leftovers in a dead one's session may still hold its ports
                self._ports.settle(part.ports)
        for part in wave:
            self._require_wanted()
            command = part.prepare(say)
            self._require_wanted()
            if not part.process.runs_as(command):
                say(part.name, "starts")
                part.process.stop(part.stop_s)
                started.append(part.name)
                part.process.start(command, self._lock)
            elif not part.is_ready():
                say(part.name, f"runs, and does not answer; waits up to {part.start_s:.0f} s")
        self._wait_until_ready(wave, started, say)
        for part in wave:
            if not part.process.is_finished():  # one that ran already may have lost its starter before this
                part.finish(say)
                part.process.set_finished()
            say(part.name, f"is up ({time.monotonic() - begun:.1f} s)" if part.name in started else "is up already")

    def _wait_until_ready(self, wave: tuple[Part, ...], started: list[str], say: Say) -> None:
        begun = time.monotonic()
        ends: Counter[str] = Counter()
        waiting = list(wave)
        while waiting := [part for part in waiting if not part.is_ready()]:
            self._require_wanted()
            for part in waiting:
                if part.process.find_pid() is None:
                    ends[part.name] += 1
                    if ends[part.name] == _TRIES:
                        raise part.process.make_error("ended while it was starting")
                    # Another program may have taken its port meanwhile, or its own leftovers had not ended yet.
                    say(part.name, "ended at once; starts again")
                    time.sleep(1)
                    self._ports.settle(part.ports)
                    if part.name not in started:
                        started.append(part.name)
                    part.process.start(part.prepare(say), self._lock)
                elif (paused := part.process.is_paused()) or time.monotonic() >= begun + part.start_s:
                    how = "is paused by a signal" if paused else f"runs but was not ready after {part.start_s:.0f} s"
                    remedy = "" if part.name in started else "; end it with `onceover stack down`, then start it again"
                    raise part.process.make_error(how + remedy)
            time.sleep(0.1)

    def _require_known(self, groups: Collection[str]) -> None:
        if unknown := sorted(set(groups) - set(self._waves)):
            more = "" if self._is_cluster else ", and spark on a cluster (`onceover stack up --cluster`)"
            what = f"the stack has no part {', '.join(unknown)}; its parts are"
            raise UsageError(f"{what} {', '.join(self._waves)}{more}")

    def _require_wanted(self) -> None:
        if self._stopping.is_set():
            raise TransientError("another part did not start; see its error")

    def _end(self, part: Part | None, name: str, say: Say) -> bool:
        process = part.process if part else Process(name, self.local)
        did_run = process.stop(part.stop_s if part else 20)
        if did_run:
            say(name, "is down")
        return did_run

    def _run_side_by_side(self, tasks: list[Callable[[], _R]]) -> list[_R]:
        """Run the tasks in threads and return their results; the first error, or Ctrl-C, ends all their waiting."""
        if not tasks:
            return []
        with ThreadPoolExecutor(len(tasks)) as pool:
            waiting = [pool.submit(task) for task in tasks]
            try:
                for each in wait(waiting, return_when=FIRST_EXCEPTION).done:
                    each.result()
                return [each.result() for each in waiting]
            except BaseException:
                self._stopping.set()
                raise

    def _read_status(self, group: str, part: Part) -> PartStatus:
        pid = part.process.find_pid()
        state: State
        if pid is None:
            state = "down" if part.process.read_record() is None else "dead"
        else:
            state = "up" if part.is_ready() else "unready"
        settled = set(part.ports) <= self._ports.read_all().keys()
        address = part.get_address() if settled and part.ports else ""
        return PartStatus(part.name, group, state, pid, address, part.process.log)

    def _write_endpoints(self) -> None:
        """Write the addresses of started parts; a part that died keeps its address, where it will start again."""
        addresses: dict[str, str] = {}
        for part in self._list_parts():
            if part.process.read_record() is not None:
                addresses |= part.list_endpoints()
        write_whole(endpoints.endpoints_file(self.local), json.dumps(addresses, indent=2) + "\n")

    def _list_by_group(self) -> Iterator[tuple[str, Part]]:
        return ((group, part) for group, waves in self._waves.items() for wave in waves for part in wave)

    def _list_parts(self) -> Iterator[Part]:
        return (part for _, part in self._list_by_group())

    def _find_part(self, name: str) -> Part:
        parts = {part.name: part for part in self._list_parts()}
        if name not in parts:
            raise UsageError(f"the stack has no part {name}; its parts are {', '.join(parts)}")
        return parts[name]

    @contextmanager
    def _hold_lock(self, say: Say = lambda part, what: None) -> Iterator[None]:
        self.local.mkdir(parents=True, exist_ok=True)
        if self.kdc is not None:
            self.kdc.log_in()
        with (self.local / "stack.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("stack", "waits for another command that is changing it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._stopping.clear()
            self._lock = lock.fileno()
            yield
