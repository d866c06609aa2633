# SPDX-License-Identifier: Apache-2.0
"""What the Python scenarios create, as dictionaries."""
CRD_GROUP = "clients.example.com"


def deployment(name, replicas):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}}}


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "example.com/x:1"}]}}


def crd(kind):
    """A kind with status and scale, defaults, bounds and a printed column."""
    plural = kind.lower() + "s"
    spec = {"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "enum": ["slow", "fast"], "default": "slow"},
        "replicas": {"type": "integer", "default": 1}}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}},
              "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{CRD_GROUP}"},
            "spec": {"group": CRD_GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                                   "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                                            "statusReplicasPath": ".status.replicas"}},
                                   "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}]}}
