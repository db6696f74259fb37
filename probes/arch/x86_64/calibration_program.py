"""The calibration program, assembled here: empty functions under known stacks, some 600 bytes of machine code."""

from __future__ import annotations

import struct

from specmine.probes.arch.interface import DEPTH, INNER, CalibrationProgram

BASE, TEXT = 0x400000, 0x1000
EMULATED_AFTER = {"return": 3, "inner_return": 2, "outer_return": 3}
"""Length of the instruction after a call, which is not emulated; the jump after it is."""
_RSP_8, _RSP_16, _END = 1 | 1 << 13, 1 | 2 << 13, 6


def assemble(calls: int) -> CalibrationProgram:
    """Assemble the program for so many calls of the empty function, or of the outer one."""
    code = bytearray()
    places: dict[str, int] = {}
    rows = [(0, _RSP_8)]

    def put(text: str) -> None:
        code.extend(bytes.fromhex(text))

    def call(target: int) -> None:
        code.extend(b"\xe8" + struct.pack("<i", target - (len(code) + 5)))

    def loop(register: bytes, count: int, target: int, decrement: bytes) -> int:
        """Call a function so often; return the return address's place."""
        code.extend(register + struct.pack("<i", count))
        begin = len(code)
        call(target)
        back = len(code)
        code.extend(decrement + b"\x75" + struct.pack("<b", begin - (len(code) + len(decrement) + 2)))
        return back

    places["emulated"] = len(code)
    put("55 5d c3")  # push rbp; pop rbp; ret
    places["stepped"] = len(code)
    put("89 c0 c3")  # mov eax, eax; ret
    for name in ("emulated", "stepped"):
        places[f"outer_{name}"] = len(code)
        put("53")  # push rbx
        places[f"inner_return_{name}"] = loop(b"\xbb", INNER, places[name], b"\xff\xcb")  # dec ebx; jnz
        put("5b c3")
        for start, callee in ((f"deep_{name}", name), (f"wide_{name}", f"outer_{name}")):
            places[start] = begin = len(code)
            put("48 83 ec 08 85 ff 74 0c ff cf")  # sub rsp, 8; test edi, edi; jz +12; dec edi
            call(begin)
            put("48 83 c4 08 c3 90 90 90")  # add rsp, 8; ret
            code[begin + 7] = len(code) - (begin + 8)  # the jz lands here
            back = loop(b"\x41\xbc", calls, places[callee], b"\x41\xff\xcc")  # dec r12d; jnz
            places[f"return_{name}" if callee == name else f"outer_return_{name}"] = back
            put("48 83 c4 08 c3")
            rows += [(begin, _RSP_8), (begin + 4, _RSP_16)]
    first = len(code)
    for start, depth in (("deep", DEPTH - 2), ("wide", 0)):
        for name in ("emulated", "stepped"):
            places[f"start_{start}_{name}"] = len(code)
            put("31 c0 31 ff 48 8d 74 24 f0 ba 01 00 00 00 0f 05")  # read(0, rsp - 16, 1)
            code.extend(b"\xbf" + struct.pack("<i", depth))  # mov edi, depth
            call(places[f"{start}_{name}"])
            put("b8 3c 00 00 00 31 ff 0f 05")  # exit(0)
    rows.append((first, _END))
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    images = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, TEXT + len(code), TEXT + len(code), 0x1000)
    image = (head + images + segment).ljust(TEXT, b"\0") + bytes(code)
    return CalibrationProgram(
        image=image,
        base=BASE,
        places={name: at + TEXT for name, at in places.items()},
        rows=tuple((at + TEXT, rule) for at, rule in rows),
        emulated_after=EMULATED_AFTER,
    )
