"""The check of several NameNodes of one HDFS: which of them is active, and whether another would take over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onceover.cli.doctor.datanodes import read_bean
from onceover.cli.doctor.outcome import Outcome


def read_states(addresses: str) -> dict[str, str]:
    """Return the state of each NameNode at these addresses, separated by `;`: active, standby, or away if it does not
    report one. A single one is active, and gets no request."""
    if ";" not in addresses:
        return {addresses: "active"}
    return {each: _read_state(each) for each in addresses.split(";")}


def find_active(states: Mapping[str, str]) -> str:
    """Return the address of the active NameNode; the first one's if none reports that it is."""
    return next((each for each, state in states.items() if state == "active"), next(iter(states)))


def check_failover(states: Mapping[str, str]) -> Iterator[Outcome]:
    """Name the active NameNode of several, and check that another would take over. Yield nothing of a single one."""
    active = find_active(states)
    others = {each: state for each, state in states.items() if each != active}
    if states[active] != "active" or not others:
        return
    ready = [each for each, state in others.items() if state == "standby"]
    if ready:
        yield Outcome("HDFS", "fine", f"{active} is the active NameNode; {', '.join(ready)} would take over")
        return
    what = ", ".join(f"{each} is {state}" for each, state in others.items())
    yield Outcome("HDFS", "wrong", f"{active} is the active NameNode, and none would take over: {what}; start it")


def _read_state(namenode: str) -> str:
    try:
        return str(read_bean(namenode, "NameNodeStatus")["State"])
    except (OSError, ValueError, LookupError, TypeError):
        return "away"
