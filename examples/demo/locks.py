"""Which of libapr's nameless functions takes the lock, and which gives it back, by disassembly.

Debian strips libapr, and the functions that call semop have no dynamic symbol. They hand it the address of a
``struct sembuf``: three 16-bit fields sem_num, sem_op, sem_flg. sem_op < 0 takes, sem_op > 0 gives back;
IPC_NOWAIT in sem_flg makes taking a try. The structs are filled at start by the exported function
``apr_proc_mutex_unix_setup_lock`` with constants, so following its moves gives their values without running it.
docs/finding-names.md does the same by hand.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import capstone
from capstone import x86
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

SETUP = "apr_proc_mutex_unix_setup_lock"
IPC_NOWAIT = 0o4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """One nameless function that calls semop."""

    offset: int
    """File offset of its first byte, as specmine shows it."""
    role: str
    evidence: str


def semop_callers(library: Path) -> list[Caller]:
    """Return the functions of the library that call semop, each with what it does to the semaphore."""
    with library.open("rb") as file:
        image = _Image(ELFFile(file))
        values = image.stored_by(SETUP)
        return [_described(image, start, values) for start in image.functions if image.calls_semop(start)]


def _described(image: _Image, start: int, values: dict[int, int]) -> Caller:
    for address in image.addresses_taken(start):
        # a byte that the setup function left alone is 0: the structs lie in .bss
        fields = bytes(values.get(address + i, 0) for i in range(6))
        _, operation, flags = struct.unpack("<HhH", fields)
        if address + 2 in values and operation:
            role = "unlock" if operation > 0 else "try to lock" if flags & IPC_NOWAIT else "lock"
            evidence = f"calls semop with sem_op = {operation:+d}, sem_flg = 0x{flags:x}, filled by {SETUP}"
            return Caller(offset=image.file_offset(start), role=role, evidence=evidence)
    return Caller(offset=image.file_offset(start), role="unknown", evidence="its struct sembuf was not found")


class _Image:
    """The parts of an x86-64 library that the search needs."""

    def __init__(self, elf: Any) -> None:
        self._elf = elf
        self._segments = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        self._decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._decoder.detail = True
        ranges = sorted(
            (entry.header["initial_location"], entry.header["address_range"])
            for entry in elf.get_dwarf_info().EH_CFI_entries()
            if "initial_location" in getattr(entry, "header", {})
        )
        self.functions = dict(ranges)
        """Start address -> length, from .eh_frame, which a stripped library still has."""
        self._starts = [start for start, _ in ranges]
        self._semop_stubs = set(self._stubs("semop"))

    def file_offset(self, address: int) -> int:
        segment = self._segment(address)
        return int(address - segment["p_vaddr"] + segment["p_offset"])

    def calls_semop(self, start: int) -> bool:
        return any(
            i.mnemonic == "call" and i.operands[0].type == x86.X86_OP_IMM and i.operands[0].imm in self._semop_stubs
            for i in self._instructions(start)
        )

    def addresses_taken(self, start: int) -> Iterator[int]:
        """Yield the targets of the function's lea instructions."""
        for i in self._instructions(start):
            if i.mnemonic == "lea" and _relative(i.operands[1]):
                yield i.address + i.size + i.operands[1].mem.disp

    def stored_by(self, name: str) -> dict[int, int]:
        """Follow a straight function's constant moves; return the bytes it stores by address."""
        registers: dict[int, int] = {}
        stored: dict[int, int] = {}
        symbol = self._elf.get_section_by_name(".dynsym").get_symbol_by_name(name)
        for i in self._instructions(symbol[0]["st_value"]) if symbol else ():
            if len(i.operands) != 2:
                continue
            to, source = i.operands
            value = self._value(i, source, registers)
            if i.mnemonic == "xor" and to.type == source.type == x86.X86_OP_REG and to.reg == source.reg:
                value = 0
            elif not i.mnemonic.startswith("mov"):
                value = None
            if to.type == x86.X86_OP_REG:
                registers.pop(_whole(to.reg), None)
                if value is not None:
                    registers[_whole(to.reg)] = value
            elif _relative(to) and value is not None:
                address = i.address + i.size + to.mem.disp
                for n, byte in enumerate((value & (1 << 8 * to.size) - 1).to_bytes(to.size, "little")):
                    stored[address + n] = byte
        return stored

    def _value(self, i: Any, source: Any, registers: dict[int, int]) -> int | None:
        if source.type == x86.X86_OP_IMM:
            return int(source.imm)
        if source.type == x86.X86_OP_REG:
            return registers.get(_whole(source.reg))
        if _relative(source):
            address = i.address + i.size + source.mem.disp
            data = self._read(address, source.size)
            return int.from_bytes(data, "little") if data else None
        return None

    def _instructions(self, start: int) -> Iterator[Any]:
        at = bisect_right(self._starts, start) - 1
        if at >= 0 and self._starts[at] == start:
            yield from self._decoder.disasm(self._read(start, self.functions[start]), start)

    def _stubs(self, name: str) -> Iterator[int]:
        """Yield the addresses of the PLT stubs that jump through the function's slot in the GOT."""
        slots = set()
        for section in self._elf.iter_sections():
            if isinstance(section, RelocationSection):
                symbols = self._elf.get_section(section["sh_link"])
                for r in section.iter_relocations():
                    if r["r_info_sym"] and symbols.get_symbol(r["r_info_sym"]).name == name:
                        slots.add(r["r_offset"])
        for section in self._elf.iter_sections():
            if not section.name.startswith(".plt"):
                continue
            base, data = section["sh_addr"], section.data()
            for offset in range(0, len(data), 16):
                for i in self._decoder.disasm(data[offset : offset + 16], base + offset):
                    if "jmp" in i.mnemonic and i.operands and _relative(i.operands[0]):
                        if i.address + i.size + i.operands[0].mem.disp in slots:
                            yield base + offset
                        break

    def _segment(self, address: int) -> Any:
        return next(s for s in self._segments if s["p_vaddr"] <= address < s["p_vaddr"] + s["p_memsz"])

    def _read(self, address: int, size: int) -> bytes:
        segment = self._segment(address)
        offset = address - segment["p_vaddr"]
        if offset + size > segment["p_filesz"]:
            return b""
        self._elf.stream.seek(segment["p_offset"] + offset)
        return bytes(self._elf.stream.read(size))


def _relative(operand: Any) -> bool:
    return bool(operand.type == x86.X86_OP_MEM and operand.mem.base == x86.X86_REG_RIP and not operand.mem.index)


_WHOLE = {
    getattr(x86, f"X86_REG_{part}"): letter
    for letter, parts in enumerate(
        ("RAX EAX AX AL", "RBX EBX BX BL", "RCX ECX CX CL", "RDX EDX DX DL", "RSI ESI SI SIL", "RDI EDI DI DIL")
    )
    for part in parts.split()
}


def _whole(register: int) -> int:
    """Return one number for all widths of a register; others stand for themselves."""
    return _WHOLE.get(register, register + 1000)


if __name__ == "__main__":
    for caller in semop_callers(Path(sys.argv[1])):
        print(f"0x{caller.offset:x}  {caller.role:12} {caller.evidence}")
