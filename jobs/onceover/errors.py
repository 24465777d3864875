"""The error tree: each failure, and whether a retry can help.

A message says what happened, where, and what to do next, in one line that can be shown unchanged.
"""

from __future__ import annotations


class OnceoverError(Exception):
    """Root of every error that Onceover raises on purpose. A command exits with `exit_code`."""

    exit_code = 1


class TransientError(OnceoverError):
    """A failure that a retry may overcome: a part is down or busy, or the call came too early."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: a supervisor may start again


class TerminalError(OnceoverError):
    """A failure that a retry repeats until an operator changes something."""


class UnknownWindowError(TerminalError):
    """A window that the ledger has nothing of: no record with an event time in it was ever read."""


class SparkLostError(OnceoverError):
    """The loss of the Spark driver's JVM; only a new process can continue."""

    exit_code = 75


class HungSparkError(SparkLostError):
    """The end of a Spark that evaluated a batch for too long, and that nothing else could stop."""


class UnreachableError(TransientError):
    """A broker, NameNode or database that does not answer, or refuses to work (safe mode)."""


class RegistryAwayError(UnreachableError):
    """A schema registry that does not answer, or refuses to, and that a record waits for."""


class BusyError(TransientError):
    """A driver's epoch, a window's claim or a file that another process holds."""


class AccessDeniedError(TerminalError):
    """A right to raw that this process's user lacks; the message begins with DENIED, and names user, path and right."""


DENIED = "access denied"


def is_denied(message: str) -> bool:
    """Return whether that message, which a task reported, is an AccessDeniedError's."""
    return message.startswith(DENIED)


class UsageError(TerminalError):
    """An argument that cannot be meant: a window not aligned, a reversed range, an unknown pipeline."""

    exit_code = 2


class ConfigurationError(TerminalError):
    """A wrong setting, in a pipeline's TOML or the environment; the message names file, key and remedy."""

    exit_code = 78  # EX_CONFIG of sysexits.h


class ChangedPlanError(TerminalError):
    """A repair whose plan is no longer the one that a person looked at."""


class TakenError(TerminalError):
    """Windows that another person has taken."""


class ContractChangedError(TerminalError):
    """A contract in the TOML that differs from the ledger's current version."""


class MissingTopicError(TerminalError):
    """A topic that does not exist, by the word of a broker that answers."""


class FencedError(TerminalError):
    """A driver's epoch or a repair's token that is no longer current; its process must change nothing more."""


class UnknownOutcomeError(TransientError):
    """An append that was sent and may or may not have arrived. The attempt fails; the replay follows."""


class BatchTooLargeError(TransientError):
    """A batch of more windows or aggregated rows than its tasks may have. Nothing was appended; read fewer records."""


class PoisonRecordError(TransientError):
    """A batch that fails by an error of Spark's JVM itself: one record is to blame, and each attempt fails by it."""


class UnreadableRecordError(TransientError):
    """A record that no read of its Kafka partition gets past: a damaged batch, or one too large for a reader. `offset`
    is None where only the reader's process knew it; `batch` is the first offset of its batch of Kafka's, None where
    that is unknown, or another record of that batch can be read."""

    def __init__(self, message: str, offset: int | None = None, batch: int | None = None) -> None:
        super().__init__(message)
        self.offset, self.batch = offset, batch


class LandingMismatchError(TransientError):
    """Landings that differ from what the reader delivered; the batch is refused before it counts."""


class OffsetRangeError(TerminalError):
    """A range of offsets that the broker does not have, or no longer has under the same topic ID."""
