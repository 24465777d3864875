"""The ticket for which a person takes windows, in a form that can be stored and shown."""

from __future__ import annotations

from typing import Final

from onceover.errors import UsageError

TICKET_LENGTH: Final = 100


def clean_ticket(text: str) -> str:
    """Return the text on one line. Raise UsageError if it is blank, too long or not printable."""
    ticket = " ".join(text.split())
    if not ticket:
        raise UsageError(
            "a ticket is missing, by which others find what you do about the windows; give it, like INC-42"
        )
    if len(ticket) > TICKET_LENGTH:
        raise UsageError(f"the ticket has {len(ticket)} characters, the limit is {TICKET_LENGTH}; give its number")
    if not ticket.isprintable():
        raise UsageError("the ticket holds characters that cannot be shown; write plain text")
    return ticket


def format_holder(who: str, ticket: str) -> str:
    """Return a person who has taken windows, and the ticket, as lists show them on the page and in a terminal."""
    return f"{who}, {ticket}"
