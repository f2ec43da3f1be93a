"""Which addresses belong to the public internet, and the host that a URL names: for every guard.

Here: judging an address, also by the IPv4 address it may carry. Not here: names, resolving, connecting.
"""

import ipaddress
from urllib.parse import urlsplit

_METADATA = frozenset(
    map(ipaddress.ip_address, ("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254"))
)
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_REFUSED_V6 = tuple(map(ipaddress.ip_network, ("::/96", "::ffff:0:0/96", "2001::/32", "fec0::/10")))

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(address: str) -> bool:
    """Whether `address` is global unicast, judged also by the IPv4 address it may carry.

    Example:
        >>> is_public("93.184.216.34"), is_public("::ffff:93.184.216.34"), is_public("10.0.0.1")
        (True, False, False)
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if "%" in address:
        return False  # a zone: link-local by nature
    if isinstance(ip, ipaddress.IPv6Address):
        if any(ip in network for network in _REFUSED_V6):
            return False
        carried = _carried(ip)
        if carried is not None:
            return _is_global(carried)
    return _is_global(ip)


def _carried(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a 6to4 or NAT64 address leads to."""
    if ip.sixtofour is not None:
        return ip.sixtofour
    if any(ip in network for network in _NAT64):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def _is_global(ip: Address) -> bool:
    return (
        ip.is_global
        and not ip.is_multicast
        and not ip.is_reserved
        and not ip.is_unspecified
        and not ip.is_loopback
        and not ip.is_link_local
        and ip not in _METADATA
    )


def host_and_port(url: str) -> tuple[str, int]:
    """Return the host of a URL in lower case without a final dot, "" for none, and its port.

    Example:
        >>> host_and_port("https://Docs.Example./x"), host_and_port("http://[::1]:8080/"), host_and_port("x")
        (('docs.example', 443), ('::1', 8080), ('', 0))
    """
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "", 0
    return host, port if port is not None else {"http": 80, "https": 443}.get(parts.scheme, 0)
