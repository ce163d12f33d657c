import pytest

from app.context.block_fields import Fault
from app.context.json_schema import schema_fault


@pytest.mark.parametrize(
    ("schema", "place", "words"),
    [
        (3, "$", "a schema is an object"),
        ({"type": "text"}, "$", "type is one of"),
        ({"type": []}, "$", "type is one of"),
        ({"type": ["string", "string"]}, "$", "type is one of"),
        ({"type": [["string"]]}, "$", "type is one of"),
        ({"properties": []}, "$", "properties is an object of schemas"),
        ({"properties": {"a": "string"}}, "$.properties.a", "a schema is an object"),
        ({"properties": {"a": {"items": {"type": 1}}}}, "$.properties.a.items", "type is one of"),
        ({"properties": {"a": {"anyOf": [{}, {"enum": []}]}}}, "$.properties.a.anyOf.1", "enum is a list"),
        ({"anyOf": []}, "$", "anyOf is a list of schemas"),
        ({"required": "a"}, "$", "required is a list of names"),
        ({"required": ["a", "a"]}, "$", "required is a list of names"),
        ({"$defs": {"n": {"minimum": "0"}}}, "$.$defs.n", "minimum is a number"),
        ({"maxLength": -1}, "$", "maxLength is a whole number"),
        ({"description": None}, "$", "description is a string"),
        ({"additionalProperties": "no"}, "$.additionalProperties", "a schema is an object"),
    ],
)
def test_what_has_not_the_shape_of_a_schema_is_told_with_its_place(schema, place, words):
    fault = schema_fault(schema)
    assert isinstance(fault, Fault)
    assert fault.place == place
    assert words in fault.rule


def test_a_schema_with_all_that_tools_use_is_one():
    schema = {
        "type": "object",
        "properties": {
            "kind": {"type": ["string", "null"], "enum": ["a", None], "default": "a", "examples": [1]},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1, "uniqueItems": True},
            "any": True,
            "type": {"oneOf": [{"const": 1}, {"type": "number", "multipleOf": 0.5}]},
        },
        "required": ["kind"],
        "additionalProperties": False,
        "$defs": {"item": {"type": "object", "patternProperties": {"^x": {}}}},
        "x-own": {"type": 3},
    }
    assert schema_fault(schema) is None
