"""Checks building permits against a JSON schema whose parts refer to each other, a fixed number of times.

The library is jsonschema: 4.17.3 on side a, 4.23.0, which resolves references with the library referencing, on side b.
Usage: permits.py FOLDER_OF_THE_LIBRARY [ROUNDS]
"""

import sys

sys.path.insert(0, sys.argv[1])

from jsonschema import Draft202012Validator

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["number", "plot", "floors", "owner"],
    "properties": {
        "number": {"type": "integer", "minimum": 1},
        "plot": {"$ref": "#/$defs/plot"},
        "owner": {"$ref": "#/$defs/person"},
        "floors": {"type": "array", "items": {"$ref": "#/$defs/floor"}, "minItems": 1},
    },
    "$defs": {
        "length": {"type": "number", "exclusiveMinimum": 0, "maximum": 400},
        "person": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}}},
        "plot": {
            "type": "object",
            "properties": {"width": {"$ref": "#/$defs/length"}, "depth": {"$ref": "#/$defs/length"}},
            "additionalProperties": False,
        },
        "floor": {
            "type": "object",
            "properties": {
                "height": {"$ref": "#/$defs/length"},
                "rooms": {"type": "array", "items": {"$ref": "#/$defs/room"}},
                "use": {"enum": ["flat", "shop", "store"]},
            },
        },
        "room": {
            "anyOf": [
                {"type": "object", "required": ["windows"], "properties": {"windows": {"type": "integer"}}},
                {"type": "object", "required": ["vent"], "properties": {"vent": {"$ref": "#/$defs/length"}}},
            ]
        },
    },
}


def permit(number):
    """Makes up a permit; one of seven has a mistake."""
    rooms = [{"windows": i % 3} if i % 2 else {"vent": i + 0.5} for i in range(4)]
    floors = [{"height": 2.5 + i, "rooms": rooms, "use": ("flat", "shop", "store")[i % 3]} for i in range(1 + number % 4)]
    return {
        "number": number + 1,
        "plot": {"width": 20, "depth": -1 if number % 7 == 0 else 31},
        "owner": {"name": f"Owner {number}"},
        "floors": floors,
    }


def check(validator, permits):
    """Returns the number of mistakes."""
    return sum(len(list(validator.iter_errors(p))) for p in permits)


def volume(permits):
    """Computes the total volume in cubic metres: the program's own work."""
    total = 0.0
    for p in permits:
        ground = p["plot"]["width"] * abs(p["plot"]["depth"])
        for floor in p["floors"]:
            for share in range(120):
                total += ground * floor["height"] / (share + 1)
    return total


def main():
    """Does the work."""
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 130
    validator = Draft202012Validator(SCHEMA)
    permits = [permit(number) for number in range(60)]
    mistakes, built = 0, 0.0
    for _ in range(rounds):
        mistakes += check(validator, permits)
        built += volume(permits)
    print(mistakes, "mistakes,", int(built), "cubic metres")


main()
