# SPDX-License-Identifier: Apache-2.0
"""What a host object of Sublet may look like, read from the tables of translate/: the chart's second fence.

tables() gives the content of charts/sublet/files/fence.json, out of which templates/_fence.tpl makes the CEL expressions of
the ValidatingAdmissionPolicies. It must never know a field that translate/ does not send: a make function whose result
it cannot read is an error until HAND says what it builds.
"""
import glob
import json
import os
import re

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What functions build of parts that no table and no add_str() shows: keys, or a table.
HAND = {
    "translate_pod_resources_down": ["limits", "requests"],
    "container_resources_down": ["limits", "requests"],  # claims: templates/_fence.tpl, where they go down
    "selector_down": None,  # a map of labels
    "translate_pod_image_down": None,
    "field_ref_down": ["apiVersion", "fieldPath"],
}
# What the host's defaulting and its built-in admission plugins add before a policy sees the object.
HOST_ADDS = {
    "pod": ["serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "overhead"],
    "service": ["clusterIP", "clusterIPs", "healthCheckNodePort"],
    "service.ports[]": ["nodePort"],
    "claim": ["storageClassName", "volumeMode"],
    "claim.dataSource": ["apiGroup"],  # empty
    "claim.dataSourceRef": ["apiGroup"],
}
# Paths below these are fields of the kubelet alone, whatever a later version adds to them.
SKIPPED = re.compile(r"\.(exec|grpc|sleep|httpHeaders\[\]|exitCodes|resizePolicy\[\]|restartPolicyRules\[\]|items\[\]|"
                     r"fieldRef|resourceFieldRef|dnsConfig|hostAliases\[\]|affinity|topologySpreadConstraints\[\]|"
                     r"sessionAffinityConfig|os|readinessGates\[\])(\.|$)")


def sources():
    """File name -> its source without comments."""
    out = {}
    for path in sorted(glob.glob(os.path.join(TREE, "translate", "*.[ch]"))):
        with open(path, encoding="utf-8") as f:
            out[os.path.basename(path)] = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    for name in ("config_pool.h", "translate.h", "translate_alias.h"):
        with open(os.path.join(TREE, "include", "sublet", name), encoding="utf-8") as f:
            out[name] = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    with open(os.path.join(TREE, "kube", "pod_security_find.c"), encoding="utf-8") as f:
        out["kube/pod_security_find.c"] = f.read()
    for path in sorted(glob.glob(os.path.join(TREE, "syncer", "**", "*.c"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            out[os.path.relpath(path, TREE)] = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    return out


SOURCES = sources()


def one(pattern, what, file=None):
    """What the only match of all translate/, or of one file, holds."""
    texts = [SOURCES[file]] if file else [t for f, t in SOURCES.items() if "/" not in f]
    found = [m for text in texts for m in re.findall(pattern, text, re.S | re.M)]
    assert len(found) == 1, f"{file or 'translate/*'}: {what}: {len(found)} found; see charts/fence.py"
    return found[0]


def words(pattern, what, file=None):
    return re.findall(r'"([^"]*)"', one(pattern, what, file))


# --- tables of fields -------------------------------------------------------------------------------------

ROW = re.compile(r'\{\s*"(\w+)",\s*(FIELD_\w+)\s*([^{}]*)\}')
TABLE = r"(?:static )?const struct field {}\[\] = \{{(.*?)\}};"


def table_text(file, name):
    """The rows of a table of that file, else of the only file that has it for all."""
    for where in [file] + [f for f in SOURCES if f != file]:
        static = "" if where == file else r"(?<!static )"
        m = re.search(static + TABLE.format(name), SOURCES[where], re.S)
        if m:
            return where, m.group(1)
    raise AssertionError(f"translate/{file}: no table {name}")


def function_text(file, name):
    m = re.search(rf"\n(?:static )?cJSON \*{name}\([^)]*\)\n\{{\n(.*?)\n\}}\n", SOURCES[file], re.S)
    if m:
        return file, m.group(1)
    for where, text in SOURCES.items():
        m = re.search(rf"\ncJSON \*{name}\([^)]*\)\n\{{\n(.*?)\n\}}\n", text, re.S)
        if m:
            return where, m.group(1)
    raise AssertionError(f"translate/{file}: no function {name}")


def read_table(file, name):
    """{key: {"privileged", "name", "list", "fields"}}; fields is None where translate/ looks no deeper."""
    where, text = table_text(file, name)
    out = {}
    for key, how, rest in ROW.findall(text):
        inner = re.search(r"\.fields = (\w+)", rest)
        make = re.search(r"\.make = (\w+)", rest)
        node = {"privileged": ".privileged = true" in rest, "name": how == "FIELD_NAME",
                "list": how in ("FIELD_LIST", "FIELD_EACH"), "fields": None}
        if inner:
            node["fields"] = read_table(where, inner.group(1))
        elif make:
            node["fields"] = read_function(where, make.group(1))
        out[key] = node
    assert out or name.endswith("TERM"), f"translate/{where}: {name} has no rows: charts/fence.py cannot read it"
    return out


def leaf(**more):
    return {"privileged": False, "name": False, "list": False, "fields": None, **more}


def added_keys(text, to):
    """Keys that a function adds to the object of that name, or builds as a member of that name."""
    return re.findall(rf'\b(?:add_str|object_add|json_set\w*)\([^;()]*?\b{to},\s*(?:STR\()?"(\w+)"', text) + \
        re.findall(rf'JSON\("{to}",\s*json_object\(\w+,\s*JSON\("(\w+)"', text)


def read_function(file, name):
    if name in HAND:
        return HAND[name] and {key: leaf() for key in HAND[name]}
    if name == "translate_pod_volume_down":
        return read_volume()
    where, text = function_text(file, name)
    out = {}
    for inner in re.findall(r"shape_(?:copy|into)\(d,\s*(\w+),", text):
        out.update(read_table(where, inner))
    for key in added_keys(text, "ret"):
        out.setdefault(key, leaf())
    if name == "translate_pod_container_down":
        out["env"] = leaf(list=True, fields={"name": leaf(), "value": leaf(),
                                             "valueFrom": leaf(fields=read_table("pod_env.c", "VALUE_FROM_FIELDS"))})
    assert out, f"translate/{where}: what {name}() builds is unknown: HAND in charts/fence.py"
    return out


def read_volume():
    """Of SOURCES in pod_volumes.c; an ephemeral volume is a claim on the host."""
    file = "pod_volumes.c"
    rows = re.findall(r'\{"(\w+)", VOLUME_(\w+), (\w+)\}', one(r"\} SOURCES\[\] = \{(.*?)\n\};", "SOURCES", file))
    assert rows, "translate/pod_volumes.c: SOURCES"
    out = {"name": leaf()}
    for key, level, table in rows:
        node = leaf(privileged=level == "PRIVILEGED")
        if table != "NULL":
            node["fields"] = read_table(file, table)
        elif key == "ephemeral":
            continue
        else:
            assert key == "projected", f"translate/pod_volumes.c: {key} is made by hand: charts/fence.py"
            node["fields"] = {**read_table(file, "PROJECTED_FIELDS"), "sources": leaf(
                list=True, fields=read_table(file, "PROJECTION_FIELDS"))}
        out[key] = node
    return out


def pod_spec():
    fields = read_table("pod.c", "SPEC_FIELDS")
    for key in added_keys(SOURCES["pod.c"] + SOURCES["pod_dns.c"], "spec"):
        fields.setdefault(key, leaf())
    del fields["resourceClaims"]  # the same
    assert {"automountServiceAccountToken", "tolerations", "ephemeralContainers"} <= set(fields), sorted(fields)
    return fields


# --- expressions --------------------------------------------------------------------------------------------

def expression(base, steps, at_end, depth=0):
    """CEL: at_end(x) for everything the steps lead to from base."""
    if not steps:
        return at_end(base)
    (key, is_list), rest = steps[0], steps[1:]
    inner = f"{base}.{key}"
    if is_list:
        x = f"x{depth}"
        body = f"{inner}.all({x}, {expression(x, rest, at_end, depth + 1)})"
    else:
        body = expression(inner, rest, at_end, depth)
    return f"(!has({inner}) || {body})"


# Objects with nothing but a name or plain settings inside: only their names are rules.
SHALLOW = re.compile(r"\.(configMap|secret|configMapRef|secretRef|configMapKeyRef|secretKeyRef|fileKeyRef|emptyDir|image|"
                     r"downwardAPI|hostPath|nfs|nodePublishSecretRef|capabilities|volumeDevices\[\]|sysctls\[\]|"
                     r"imagePullSecrets\[\]|env\[\])$")


def walk(fields, base, path, steps, rules, names):
    """Fills rules (which keys an object may have) and names (what must be a name of ours)."""
    if SKIPPED.search(path):
        return
    if not SHALLOW.search(path):
        rules.append({"path": path, "cel": expression(base, steps, lambda x: f"dyn({x}).all(k, k in KEYS)"),
                      "keys": sorted({k for k, n in fields.items() if not n["privileged"]} | set(HOST_ADDS.get(path, []))),
                      "privileged": sorted(k for k, n in fields.items() if n["privileged"])})
    for key, node in fields.items():
        if node["name"]:
            names.append(expression(base, steps + [(key, False)], lambda x: f"OURS({x})"))
        if node["fields"]:
            walk(node["fields"], base, f"{path}.{key}" + ("[]" if node["list"] else ""), steps + [(key, node["list"])],
                 rules, names)


def rules_of(fields, base, path):
    rules, names = [], []
    walk(fields, base, path, [], rules, names)
    return {"rules": rules, "names": names}


# --- all of it ----------------------------------------------------------------------------------------------

def number(name):
    return int(one(rf"\b{name} = (\d+)", name))


def defined(prefix, of_the_kind):
    """sublet.dev/ keys that are defined under names of that prefix, hashed ones apart."""
    found = set()
    for text in SOURCES.values():
        found.update(re.findall(rf'#define {prefix}_\w+\s+"(sublet\.dev/[^"]+)"', text))
    assert of_the_kind in found, (prefix, found)
    return sorted(k for k in found if not k.endswith("-")), sorted(k for k in found if k.endswith("-"))


def metadata(prefix, file, own):
    listed = []
    if "LISTED[]" in SOURCES[file]:  # else only what the admin allows
        listed = words(r"\bLISTED\[\] = \{(.*?)\};", "LISTED", file)
    keys, hashed = defined(prefix, own)
    if prefix == "ANNOTATION":
        listed += re.findall(r'#define AUTOSCALER_\w+\s+"([^"]+)"', SOURCES["impl.h"])
    if file == "labels.c":
        listed += words(r"\bWRITTEN_BY_BOTH\[\] = \{(.*?)\};", "WRITTEN_BY_BOTH")
    return {"keys": sorted(keys + [k for k in listed if not k.endswith("/")]),
            "prefixes": sorted(k for k in listed if k.endswith("/")), "hashed": hashed}


def allowed_of(function):
    """The list at the head of one function that knows the Pod Security Standards."""
    return words(rf"^bool {function}\([^)]*\)\n\{{\n\s*static const [^;=]*\[\] = \{{(.*?)\}};", function,
                 "kube/pod_security_find.c")


def note_keys(form):
    """Annotations whose value has this form: the name of one object, or names or host names separated by commas."""
    defined = dict(re.findall(r'#define (\w+) +"([^"]*)"', SOURCES["kind_notes.c"]))
    rows = re.findall(rf'\{{(\w+ )?"([^"]*)",\s*{form}\b', SOURCES["kind_notes.c"])
    assert rows, f"kind_notes.c: no {form}; see charts/fence.py"
    return sorted((defined[prefix.strip()] if prefix else "") + key for prefix, key in rows)


def tables():
    spec = pod_spec()
    containers, volumes = spec["containers"]["fields"], spec["volumes"]["fields"]
    for key in ("containers", "initContainers", "ephemeralContainers", "volumes"):  # have rules of their own
        spec[key] = leaf(list=True)
    cut, hashed = number("NAME_CUT"), number("HASH_CHARS")
    tolerated = words(r"POOL_TOLERATED_KEYS\[\] = \{(.*?)\};", "POOL_TOLERATED_KEYS")
    return {
        "comment": "Written by charts/generate from the tables of translate/.",
        "name": f"^[a-z0-9]([-a-z0-9]{{0,{cut - 2}}}[a-z0-9])?-[a-z2-7]{{{hashed}}}$",
        "hash": f"[a-z2-7]{{{hashed}}}",
        "labels": metadata("LABEL", "labels.c", "sublet.dev/cluster"),
        "topologyKeys": words(r"\bWRITTEN_BY_BOTH\[\] = \{(.*?)\};", "WRITTEN_BY_BOTH"),
        "annotations": metadata("ANNOTATION", "metadata.c", "sublet.dev/name"),
        "noteHosts": note_keys("FORM_HOSTS"),
        "noteLists": note_keys("FORM_NAMES"),
        "noteNames": note_keys("FORM_NAME"),
        "pod": rules_of(spec, "object.spec", "pod"),
        "container": rules_of(containers, "c", "container"),
        "volume": rules_of(volumes, "v", "volume"),
        "service": rules_of(read_table("service.c", "SPEC_FIELDS"), "object.spec", "service"),
        "claim": rules_of(read_table("pvc.c", "SPEC_FIELDS"), "object.spec", "claim"),
        "sourceRanges": number("SOURCE_RANGES_MAX"),
        "secretTypes": words(r"struct str secret_type\([^)]*\)\n\{\n\s*static const char \*const kept\[\] = \{(.*?)\};", "kept"),
        "capabilities": {"baseline": allowed_of("security_find_capabilities"),
                         "restricted": allowed_of("security_find_added_capabilities")},
        "sysctls": allowed_of("security_find_sysctls"),
        "selinuxTypes": allowed_of("security_find_selinux"),
        "variables": re.findall(r'\{"(\w+_\w+)",\s*"', one(r"\} VENDORS\[\] = \{(.*?)\n\};", "VENDORS", "gpu_vendor.c")),
        "tolerated": {"keys": tolerated[:number("TOLERATED_DOWN")],
                      "seconds": number("NOT_READY_SECONDS_MAX")},
    }


def text():
    return json.dumps(tables(), indent=1) + "\n"
