from __future__ import annotations

import re
import urllib.parse
from typing import List, Optional, Sequence, Tuple, Union

from ._errors import invalid

_SCHEMES = {"http": "http", "https": "https", "leaf": "http", "leafs": "https"}


def parse_servers(servers: Union[str, Sequence[str]]) -> Tuple[List[str], Optional[str]]:
    """Returns the servers of a URL such as http://TOKEN@h1:8080,h2:8080, or of several URLs, and the
    token. No error message holds the token."""
    if not isinstance(servers, str):
        parts = [parse_servers(s) for s in servers]
        tokens = {token for _, token in parts if token is not None}
        if not parts or len(tokens) > 1:
            raise invalid("several tokens in the URLs of the servers" if parts else "no server")
        return [s for urls, _ in parts for s in urls], tokens.pop() if tokens else None
    found = re.fullmatch(r"([a-zA-Z]+)://(?:(.*)@)?([^@]*)", servers)
    scheme = _SCHEMES.get(found[1].lower()) if found else None
    if not found or not scheme:
        raise invalid("the URL of the servers does not begin with http:// or https://")
    if "://" in found[3]:
        raise invalid("the URL of several servers has one scheme, as in http://h1:8080,h2:8080")
    token = None if found[2] is None else urllib.parse.unquote(found[2])
    if token is not None and ":" in token:
        raise invalid("malformed token before the @ in the URL of the servers")
    rest = found[3][:-1] if found[3].endswith("/") else found[3]
    return [f"{scheme}://{_check(host)}" for host in rest.split(",")], token


def _check(host: str) -> str:
    try:
        url = urllib.parse.urlsplit("//" + host)
        if url.hostname and url.netloc == host and (url.port is None or url.port > 0):
            return host
    except ValueError:
        pass  # the same answer
    raise invalid("a server is http://host:port or https://host:port")
