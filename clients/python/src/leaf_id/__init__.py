"""Leased worker IDs from a Leaf server, and a snowflake generator on them."""

from ._lease import LeafError, Layout, WorkerLease
from ._snowflake import Snowflake

__all__ = ["LeafError", "Layout", "Snowflake", "WorkerLease"]
