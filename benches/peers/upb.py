"""A peer: the table of functions in Python, with protobuf messages (upb) and dictionaries.

`upb.py BASE NEW` prints the ten functions that changed most, as JSON: [[name, delta of flat, delta of cum], ...].
"""

import gzip
import json
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import api_implementation

# The fields of pprof's messages that a table of functions needs: name, number, type. * marks repeated fields.
MESSAGES = {
    "Profile": "sample=2:Sample* location=4:Location* function=5:Function* string_table=6:string*",
    "Sample": "location_id=1:uint64* value=2:int64*",
    "Location": "id=1:uint64 line=4:Line*",
    "Line": "function_id=1:uint64",
    "Function": "id=1:uint64 name=2:int64",
}


def profile_class() -> type:
    """Builds the message class Profile."""
    file = descriptor_pb2.FileDescriptorProto(name="profile", package="bench", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            label, _, kind = field.partition(":")
            field_name, _, number = label.partition("=")
            made = message.field.add(name=field_name, number=int(number))
            made.label = made.LABEL_REPEATED if kind.endswith("*") else made.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            if kind in MESSAGES:
                made.type, made.type_name = made.TYPE_MESSAGE, f".bench.{kind}"
            else:
                made.type = getattr(made, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Profile"))


def main() -> None:
    """Prints the first rows of the table."""
    if api_implementation.Type() != "upb":
        sys.exit("protobuf's fast implementation is missing")
    message = profile_class()
    flat: dict[str, int] = {}
    cum: dict[str, int] = {}
    for sign, path in zip((-1, 1), sys.argv[1:], strict=True):
        profile = message.FromString(gzip.decompress(Path(path).read_bytes()))
        strings = list(profile.string_table)
        functions = {f.id: strings[f.name] for f in profile.function}
        locations = {loc.id: [functions[line.function_id] for line in loc.line] for loc in profile.location}
        for sample in profile.sample:
            value = sign * sample.value[-1]
            stack = [name for id in sample.location_id for name in locations[id]]
            flat[stack[0]] = flat.get(stack[0], 0) + value
            for name in set(stack):
                cum[name] = cum.get(name, 0) + value
    rows = sorted(((name, flat.get(name, 0), cum[name]) for name in cum), key=lambda row: (-abs(row[1]), row[0]))
    print(json.dumps(rows[:10]))


main()
