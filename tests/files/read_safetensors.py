"""Reads a safetensors file with the standard library alone and prints it as JSON."""
import json
import struct
import sys

FORMATS = {"F32": "f", "F64": "d", "I64": "q", "U8": "B"}


def read(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length).decode("utf-8"))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = list(struct.iter_unpack("<" + FORMATS[entry["dtype"]], data[begin:end]))
        tensors[name] = [entry["dtype"], entry["shape"], [value[0] for value in values]]
    return {"length": length, "metadata": metadata, "tensors": tensors}


print(json.dumps(read(sys.argv[1])))
