# SPDX-License-Identifier: Apache-2.0
"""Helm 4 on a virtual cluster. It installs by server-side apply, waits for what it made, and runs hooks."""
import json

import pytest
import yaml

from testenv import eventually
from testenv.helm import Helm

CHART = {"apiVersion": "v2", "name": "hooked", "version": "1.0.0"}
TEMPLATES = {
    "config.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: "{{ .Values.color }}"}
""",
    "deployment.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {color: "{{ .Values.color }}"}}
    spec:
      containers:
      - {name: web, image: nginx, ports: [{containerPort: 80}], resources: {limits: {cpu: 100m}}}
""",
    "service.yaml": """
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, name: http}{{ if .Values.second }}, {port: 81, name: more}{{ end }}]
""",
    "hooks.yaml": """
{{- range $hook := list "pre-install" "post-install" "pre-upgrade" "post-rollback" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: hook-{{ $hook }}
  annotations: {helm.sh/hook: {{ $hook }}, helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ $.Release.Revision }}"}
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: m, image: busybox, command: ["true"]}]
""",
}


@pytest.fixture
def chart(tmp_path):
    (tmp_path / "hooked" / "templates").mkdir(parents=True)
    (tmp_path / "hooked" / "Chart.yaml").write_text(yaml.safe_dump(CHART))
    (tmp_path / "hooked" / "values.yaml").write_text(yaml.safe_dump({"color": "red", "replicas": 1, "second": False}))
    for name, text in TEMPLATES.items():
        (tmp_path / "hooked" / "templates" / name).write_text(text)
    return str(tmp_path / "hooked")


def managers(o):
    return sorted((e["manager"], e["operation"]) for e in o["metadata"]["managedFields"])


def test_install_upgrade_rollback(tenant, pools, chart, tmp_path):
    vc = tenant("helm", pools)
    helm = Helm(tmp_path, vc.kubeconfig)
    namespace = "/api/v1/namespaces/default"
    deployment = "/apis/apps/v1/namespaces/default/deployments/web"

    helm("install", "web", chart, "--wait", "--timeout=180s")
    made = vc.api.get(deployment)
    assert made["status"]["availableReplicas"] == 1
    assert ("helm", "Apply") in managers(made)
    assert vc.api.get(f"{namespace}/configmaps/hook-post-install")["data"] == {"revision": "1"}
    assert vc.api.get("/apis/batch/v1/namespaces/default/jobs/migrate")["status"]["succeeded"] == 1

    helm("upgrade", "web", chart, "--wait", "--timeout=180s", "--set", "color=blue,replicas=2,second=true")
    made = vc.api.get(deployment)
    assert made["status"]["updatedReplicas"] == 2 and made["spec"]["template"]["metadata"]["annotations"]["color"] == "blue"
    assert [p["port"] for p in vc.api.get(f"{namespace}/services/web")["spec"]["ports"]] == [80, 81]
    assert vc.api.get(f"{namespace}/configmaps/hook-pre-upgrade")["data"] == {"revision": "2"}

    helm("rollback", "web", "1", "--wait", "--timeout=180s")
    assert vc.api.get(deployment)["spec"]["replicas"] == 1
    assert [p["port"] for p in vc.api.get(f"{namespace}/services/web")["spec"]["ports"]] == [80]
    assert vc.api.get(f"{namespace}/configmaps/settings")["data"] == {"color": "red"}
    assert vc.api.get(f"{namespace}/configmaps/hook-post-rollback")["data"] == {"revision": "1"}

    history = json.loads(helm("history", "web", "-o", "json"))
    assert [h["status"] for h in history] == ["superseded", "superseded", "deployed"]
    helm("uninstall", "web", "--wait", "--timeout=180s")
    eventually(lambda: not vc.api.get("/apis/apps/v1/namespaces/default/deployments")["items"], 30, "web to be gone")
