"""What clients ask other services before SMB: tickets (Kerberos), the directory (LDAP), names (LLMNR, IPv6 addresses).

Owns: the layout of these few messages, and exchanges by UDP in a scene. Not: when a case has them.
"""

import struct

import wire

TICKET, DIRECTORY, LLMNR = 88, 389, 5355
SKEW = 37  # KRB_AP_ERR_SKEW, RFC 4120 section 7.5.9


def der(tag, *parts):
    body = b"".join(parts)
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    return bytes([tag, 0x82]) + struct.pack(">H", len(body)) + body


def field(number, content):
    return der(0xA0 + number, content)


def integer(value):
    return der(2, value.to_bytes(max(1, (value.bit_length() + 8) // 8), "big"))


def principal(*parts):
    names = der(0x30, *(der(0x1B, part.encode()) for part in parts))
    return der(0x30, field(0, integer(2)), field(1, names))


def as_request(user="maria", realm="LAB.EXAMPLE"):
    """A request for a ticket, RFC 4120 section 5.4.1."""
    body = der(0x30, field(0, der(3, bytes(5))), field(1, principal(user)), field(2, der(0x1B, realm.encode())),
               field(3, principal("krbtgt", realm)), field(5, der(0x18, b"20370913024805Z")),
               field(7, integer(0x5A17)), field(8, der(0x30, integer(18))))
    return der(0x6A, der(0x30, field(1, integer(5)), field(2, integer(10)), field(4, body)))


def kerberos_error(code, realm="LAB.EXAMPLE"):
    """KRB-ERROR, RFC 4120 section 5.9.1."""
    return der(0x7E, der(0x30, field(0, integer(5)), field(1, integer(30)), field(4, der(0x18, b"20261129120000Z")),
                         field(5, integer(1)), field(6, integer(code)), field(9, der(0x1B, realm.encode())),
                         field(10, principal("krbtgt", realm))))


def netlogon_search():
    """The question of clients for the controller of their site, MS-ADTS section 6.3.3."""
    return der(0x30, integer(1), der(0x63, der(4), der(0x0A, b"\0"), der(0x0A, b"\0"), integer(0), integer(0),
                                     der(1, b"\0"), der(0x87, b"DnsDomain"), der(0x30, der(4, b"Netlogon"))))


def llmnr(number, name):
    return struct.pack(">HHHHHH", number, 0, 1, 0, 0, 0) + wire.dns_name(name) + struct.pack(">HH", 1, 1)


def ask(scene, time, client, server, ports, question, answer=None, after=0.0008):
    """A question by UDP and, unless nothing comes, its answer."""
    scene.raw(time, wire.udp(client, server, ports, question))
    if answer is not None:
        scene.raw(time + after, wire.udp(server, client, ports[::-1], answer))


def look_up(scene, time, client, server, name, address=None, after=0.0009, code=0, port=53111):
    """A name by DNS, with an address, an error code or no answer."""
    number = scene.random.randrange(1 << 16)
    answer = wire.dns(number, name, address, code) if address or code else None
    ask(scene, time, client, server, (port, 53), wire.dns(number, name), answer, after)


def attempts(scene, client, server, times, port=445, number=None, reset=False):
    """SYNs of one connection at these times, unanswered, or each answered with a reset."""
    ends = wire.address(client), wire.address(server)
    number, seq = number or scene.port(), scene.random.randrange(1 << 32)
    for time in times:
        scene.raw(time, wire.tcp(*ends, (number, port), seq, 0, wire.SYN, mss=1460))
        if reset:
            scene.raw(time + 0.0004, wire.tcp(*ends[::-1], (port, number), 0, seq + 1, wire.RST | wire.ACK))
