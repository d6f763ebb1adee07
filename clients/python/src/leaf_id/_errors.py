from __future__ import annotations

from typing import Optional


class LeafError(Exception):
    """A call failed. reason is for programs, the message is for people.

    Reasons of the clients are EXHAUSTED (no ID in memory, and no server has delivered in time), UNAVAILABLE
    (no usable answer), FOREIGN_STORE (a server of another store: its IDs may be in use), CLOSED,
    INVALID_ARGUMENT and NO_WORKER_ID (no lease at present). The others are those of the server, such as
    UNKNOWN_TAG, UNAUTHENTICATED, FORBIDDEN and LEASE_LOST. status is that of the server's answer, or 0.
    """

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


def invalid(message: str) -> LeafError:
    return LeafError(message, reason="INVALID_ARGUMENT")


def wrapped(error: Exception) -> LeafError:
    """Returns the error, or a LeafError that reports it."""
    if isinstance(error, LeafError):
        return error
    wrapper = LeafError(f"{type(error).__name__}: {error}", reason="UNAVAILABLE")
    wrapper.__cause__ = error
    return wrapper


def again(error: LeafError, message: Optional[str] = None, reason: Optional[str] = None) -> LeafError:
    """Returns the error for another caller."""
    copy = LeafError(message or str(error), error.status, reason or error.reason)
    copy.__cause__ = error
    return copy
