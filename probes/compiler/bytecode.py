"""From C to bytecode: by bcc, or from the cache of its results."""
import base64
import ctypes
import hashlib
import json
import os
import struct

from .btf import KFUNC

HERE = os.path.dirname(os.path.abspath(__file__))


def compile_object(sources, include, flags):
    """Return {"maps": [...], "programs": {name: base64 code}}; map references in the code are map numbers."""
    os.environ["BCC_KERNEL_SOURCE"] = include
    from bcc import BPF, lib

    text = []
    for path in sources:
        with open(path) as file:
            text.append('#line 1 "%s"\n%s' % (os.path.basename(path), file.read()))
    program = BPF(text="\n".join(text), cflags=flags)
    module = program.module
    maps = []  # type: list[dict[str, object]]
    number_of = {}
    for i in range(lib.bpf_num_tables(module)):
        number_of[lib.bpf_table_fd_id(module, i)] = len(maps)
        maps.append(
            {
                "name": (ctypes.cast(lib.bpf_table_name(module, i), ctypes.c_char_p).value or b"").decode(),
                "type": lib.bpf_table_type_id(module, i),
                "key": lib.bpf_table_key_size_id(module, i),
                "value": lib.bpf_table_leaf_size_id(module, i),
                "max": lib.bpf_table_max_entries_id(module, i),
                "flags": lib.bpf_table_flags_id(module, i),
            }
        )
    programs = {}
    for i in range(lib.bpf_num_functions(module)):
        name = lib.bpf_function_name(module, i)
        start, size = lib.bpf_function_start(module, name), lib.bpf_function_size(module, name)
        code = bytearray(ctypes.string_at(start, size))
        for at in range(0, len(code), 8):
            value = struct.unpack_from("<i", code, at + 4)[0]
            if code[at] == 0x18 and code[at + 1] >> 4 == 1:  # a map's fd
                struct.pack_into("<i", code, at + 4, number_of[value])
            elif code[at] == 0x85 and value > KFUNC:
                code[at + 1] |= 2 << 4
                struct.pack_into("<i", code, at + 4, value - KFUNC)
        programs[name.decode()] = base64.b64encode(bytes(code)).decode()
    return {"maps": maps, "programs": programs}


def cached_object(request, flags):
    """Compile, or return the result of an earlier run with these sources on this kernel."""
    digest = hashlib.sha256()
    ours = [os.path.join(HERE, name) for name in sorted(os.listdir(HERE)) if name.endswith(".py")]
    for path in ours + request["sources"]:
        with open(path, "rb") as file:
            digest.update(file.read())
    digest.update(" ".join(flags).encode() + os.uname().release.encode())
    cache = request.get("cache")
    path = os.path.join(cache, digest.hexdigest()[:32] + ".json") if cache else None
    if path:
        try:
            with open(path) as file:
                return json.load(file)
        except (OSError, ValueError):
            pass
    compiled = compile_object(request["sources"], request["include"], flags)
    if path:
        try:
            temporary = "%s.%d" % (path, os.getpid())
            with open(temporary, "w") as file:
                json.dump(compiled, file)
            os.replace(temporary, path)
        except OSError:
            pass
    return compiled
