# SPDX-License-Identifier: Apache-2.0
"""CustomResourceDefinitions out of the schema of the configuration: GPUPool and GPUBinding hold what an item of `pools:` and
`bindings:` holds. A structural schema says the same with other words than JSON Schema draft 7 (no $ref, no closed objects, no
list of types), and a real host keeps what anyone may write there, so that every string, list, map and number gets a bound.

Source: charts/schema.yaml, `definitions` and `customResources`. It must never know a field itself, nor emit a string, list or
map without a bound."""
import yaml


class Dumper(yaml.SafeDumper):
    """Writes what occurs twice twice."""

    def ignore_aliases(self, data):
        return True


COPIED = ("description", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
          "minProperties", "maxProperties", "required")


def structural(node, definitions, bounds):
    """The structural schema of a node of charts/schema.yaml."""
    if "$ref" in node:
        return structural(definitions[node["$ref"].rpartition("/")[2]], definitions, bounds)
    kind = node.get("type")
    if set(node) == {"anyOf"}:  # an object, or an empty list in its place: YAML habits that an API has not
        shapes = [one for one in node["anyOf"] if one.get("maxItems") != 0]
        assert len(shapes) == 1, node
        return structural(shapes[0], definitions, bounds)
    copied = {key: node[key] for key in COPIED if key in node}
    if isinstance(kind, list):
        assert sorted(kind) == ["number", "string"], node
        return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}],
                "maximum": bounds["integer"], "maxLength": bounds["quantity"], **copied}
    assert kind or "enum" in node, node
    out = {"type": kind or "string", **copied}
    if kind == "object":
        return {**out, **members(node, definitions, bounds)}
    if kind == "array":
        return {"maxItems": bounds["items"], **out, "items": structural(node["items"], definitions, bounds)}
    if kind == "integer":
        return {"maximum": bounds["integer"], "format": "int64", **out}
    if out["type"] == "string" and "enum" not in out:
        return {"maxLength": bounds["string"], **out}
    return out


def members(node, definitions, bounds):
    more = node.get("additionalProperties")
    out = {}
    if "properties" in node:
        assert more is False, node
        if "anyOf" in node:  # one of several keys
            keys = [key for one in node["anyOf"] for key in one["required"]]
            out["x-kubernetes-validations"] = [{"rule": " || ".join(f"has(self.{key})" for key in keys),
                                                "message": " or ".join(keys) + " is needed"}]
        out["properties"] = {key: structural(one, definitions, bounds) for key, one in node["properties"].items()}
    elif more:
        rule = {"rule": f"self.all(key, size(key) <= {bounds['key']})",
                "message": f"a key has at most {bounds['key']} characters"}
        out = {"maxProperties": bounds["properties"], **out, "x-kubernetes-validations": [rule],
               "additionalProperties": structural(more, definitions, bounds)}
    else:  # of another program
        out["x-kubernetes-preserve-unknown-fields"] = True
    return out


def definition(one, hand):
    resources = hand["customResources"]
    definitions, bounds = {**hand["definitions"], **resources["definitions"]}, resources["bounds"]
    spec = structural(definitions[one["definition"]], definitions, bounds)
    for key in one.get("without", []):
        del spec["properties"][key]
        spec["required"] = [x for x in spec["required"] if x != key]
    for key, more in one.get("with", {}).items():  # of sublet fleet alone
        spec["properties"][key] = structural(more, definitions, bounds)
    spec["x-kubernetes-validations"] = spec.get("x-kubernetes-validations", []) + one["rules"]
    status = structural({"type": "object", "additionalProperties": False, "properties": one["status"]}, definitions, bounds)
    status["properties"]["conditions"].update({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
    schema = {"type": "object", "description": one["description"], "required": ["spec"],
              "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                             "spec": spec, "status": status}}
    if "named" in one:
        schema["x-kubernetes-validations"] = one["named"]
    plural = one["kind"].lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.sublet.dev", "annotations": {"helm.sh/resource-policy": "keep"}},
        "spec": {
            "group": "sublet.dev", "scope": one["scope"],
            "names": {"kind": one["kind"], "listKind": one["kind"] + "List", "plural": plural,
                      "singular": one["kind"].lower(), "shortNames": one["shortNames"], "categories": ["sublet"]},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}},
                          "additionalPrinterColumns": [
                              {"name": name, "type": "date" if name == "Age" else "string", "jsonPath": path,
                               **({"priority": 1} if wide else {})} for name, path, wide in one["columns"]],
                          "schema": {"openAPIV3Schema": schema}}]}}


def text(one, hand):
    """A template of the chart. Uninstalling it keeps the definition: with it the host would delete every object of it."""
    whole = yaml.dump(definition(one, hand), Dumper=Dumper, sort_keys=False, width=120)
    assert "{{" not in whole
    return ("{{- /* SPDX-License-Identifier: Apache-2.0\nWritten by charts/generate from charts/schema.yaml. */ -}}\n"
            "{{- if .Values.crds.install }}\n" + whole + "{{- end }}\n")
