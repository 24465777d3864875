"""What can go wrong, and whether trying again can help: the one error tree.

A message says what happened, where, and what to do next; it is one line, so that it can be shown as it is.
"""

from __future__ import annotations


class OnceoverError(Exception):
    """Root of every error this product raises on purpose. `exit_code` is what a command ends with."""

    exit_code = 1


class TransientError(OnceoverError):
    """The same call may succeed later: a part is down, busy, or was asked too early."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: a supervisor may start again


class TerminalError(OnceoverError):
    """The same call will fail again until somebody changes something."""


class SparkLostError(OnceoverError):
    """The Spark driver's JVM is gone; only a new process can go on."""

    exit_code = 75


class UnreachableError(TransientError):
    """A broker, NameNode or database does not answer, or refuses to work (safe mode)."""


class BusyError(TransientError):
    """Somebody else holds what was asked for: a driver's epoch, a window's claim."""


class UsageError(TerminalError):
    """What was typed cannot be meant: a window not aligned, a reversed range, an unknown pipeline."""

    exit_code = 2


class ConfigurationError(TerminalError):
    """A pipeline's TOML is wrong; names file, key and remedy."""

    exit_code = 78  # EX_CONFIG of sysexits.h


class ContractChangedError(TerminalError):
    """The TOML's contract differs from the ledger's current version."""


class FencedError(TerminalError):
    """This driver's epoch or this repairer's token is no longer the current one; it must change nothing more."""


class UnknownOutcomeError(TransientError):
    """An append was sent and nobody can say whether it arrived. The attempt fails; the replay follows."""


class LandingMismatchError(TransientError):
    """What was landed is not what the reader delivered; the batch is refused before it counts."""


class OffsetRangeError(TerminalError):
    """A range of offsets that the broker does not have, or no longer under the same topic ID."""
