"""IDs from Leaf servers at the speed of memory, leased worker IDs, and a snowflake generator on them."""

from ._aio import AsyncLeafClient
from ._client import Issued, LeafClient, OrderedGenerator, TagGenerator
from ._errors import LeafError
from ._lease import IdParts, Layout, WorkerLease
from ._servers import Call
from ._snowflake import Snowflake
from ._stock import TagStats

__all__ = [
    "AsyncLeafClient",
    "Call",
    "IdParts",
    "Issued",
    "Layout",
    "LeafClient",
    "LeafError",
    "OrderedGenerator",
    "Snowflake",
    "TagGenerator",
    "TagStats",
    "WorkerLease",
]
