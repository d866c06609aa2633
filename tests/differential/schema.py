# SPDX-License-Identifier: Apache-2.0
"""The shape of built-in kinds, read from the OpenAPI documents of the real server.

It is what the generator knows of a kind: fields that an object lacks, and of which type a value is. Must not
know any kind by name.
"""
import json


class Shapes:
    """shapes.root(api_version, kind) -> schema; shapes.fields(schema) -> {name: schema}."""

    def __init__(self, api):
        self.api = api
        self.documents = {}
        self.index = api.get("/openapi/v3")["paths"]

    def _document(self, api_version):
        key = ("apis/" if "/" in api_version else "api/") + api_version
        if key not in self.documents:
            _, _, data = self.api.raw("GET", self.index[key]["serverRelativeURL"])
            self.documents[key] = json.loads(data)["components"]["schemas"]
        return self.documents[key]

    def root(self, api_version, kind):
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        schemas = self._document(api_version)
        for schema in schemas.values():
            if schema.get("x-kubernetes-group-version-kind") == [wanted]:
                return Shape(schemas, schema)
        raise AssertionError(f"{api_version} {kind} is not in the OpenAPI document")


class Shape:
    """One schema, its references followed."""

    def __init__(self, schemas, schema):
        while True:
            ref = schema.get("$ref") or next((s.get("$ref") for s in schema.get("allOf", [])), None)
            if not ref:
                break
            schema = schemas[ref.rsplit("/", 1)[1]]
        self.schemas, self.schema = schemas, schema

    @property
    def type(self):
        """object, map, array, string, quantity, time, bytes, int-or-string, integer, number, boolean, any."""
        s = self.schema
        if s.get("format") == "int-or-string":
            return "int-or-string"
        if "oneOf" in s:
            return "quantity"
        if s.get("format") in ("date-time", "byte"):
            return {"date-time": "time", "byte": "bytes"}[s["format"]]
        if s.get("type") == "object" and not s.get("properties"):
            return "map" if "additionalProperties" in s else "any"
        return s.get("type", "any")

    def fields(self):
        return {k: Shape(self.schemas, v) for k, v in self.schema.get("properties", {}).items()}

    def below(self, key):
        """The shape of a member, item or value; None when it is unknown."""
        s = self.schema
        if isinstance(key, int):
            return Shape(self.schemas, s["items"]) if "items" in s else None
        if key in s.get("properties", {}):
            return Shape(self.schemas, s["properties"][key])
        values = s.get("additionalProperties")
        return Shape(self.schemas, values) if isinstance(values, dict) else None
