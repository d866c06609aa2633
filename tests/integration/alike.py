# SPDX-License-Identifier: Apache-2.0
"""The same request to Sublet and to a kube-apiserver, at the same time: code, errors and warnings must be the same."""
import json
import threading

from testenv.api import ApiError


def answer(api, method, path, body, shown=(), **query):
    """(code, the error or what `shown` looks at, warnings), without what two servers cannot share."""
    patch = {"content_type": "application/strategic-merge-patch+json"} if method == "PATCH" else {}
    code, headers, data = api.raw(method, path, body, query=query, **patch)
    told = sorted(x.split('"', 1)[1].rsplit('"', 1)[0] for x in headers.get_all("Warning") or [])
    status = json.loads(data)
    if code < 400:
        return code, [look(status, p) for p in shown], told
    details = status.get("details") or {}
    causes = sorted({(c.get("reason"), (c.get("message") or "").split("\n@@")[0].strip(), c.get("field")) for c in details.get("causes") or []}, key=str)
    message = "" if code == 422 else status["message"]  # upstream reports some causes twice
    return code, (status.get("reason"), message, details.get("name"), details.get("kind"), causes), told


def look(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
    return value


def both(pair, *request, **query):
    got = [None, None]

    def ask(i):
        got[i] = answer(pair[i], *request, **query)

    other = threading.Thread(target=ask, args=(1,))
    other.start()
    ask(0)
    other.join()
    return got


def alike(pair, what, *request, **query):
    here, there = both(pair, *request, **query)
    assert here == there, f"{what}: {json.dumps(request)}\n  ours  {here}\n  real  {there}"
    return here


def namespace(pair, name, labels=None):
    """A namespace with its service account on both; its path."""
    for api in pair:
        code, _, _ = api.raw("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})
        try:
            api.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        except ApiError as e:
            assert e.code == 409, e
        if labels and code == 409:
            api.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": labels}})
    return f"/api/v1/namespaces/{name}"
