// SPDX-License-Identifier: Apache-2.0
//! What the scenario creates, and how it shows what came back.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

#[derive(CustomResource, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[kube(group = "clients.example.com", version = "v1", kind = "Gadget", namespaced, status = "GadgetStatus")]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"))]
#[kube(printcolumn(name = "Size", json_path = ".spec.size", type_ = "integer"))]
pub struct GadgetSpec {
    #[schemars(range(min = 1))]
    pub size: i32,
    #[serde(default)]
    pub replicas: i32,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct GadgetStatus {
    pub phase: Option<String>,
    pub replicas: Option<i32>,
}

pub fn config_map(name: &str, data: Value, labels: Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "data": data})).expect("a ConfigMap")
}

pub fn deployment(name: &str, replicas: i32) -> Deployment {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()}}})).expect("a Deployment")
}

pub fn pod_spec() -> Value {
    json!({"containers": [{"name": "main", "image": "example.com/x:1"}]})
}

pub fn names<K: ResourceExt>(items: &[K]) -> Vec<String> {
    items.iter().map(|o| o.name_any()).collect()
}

/// What the client raises, with the Status in it.
pub fn refused<T>(result: Result<T, kube::Error>) -> Value {
    match result {
        Ok(_) => json!("succeeded"),
        Err(kube::Error::Api(status)) => json!({"type": "Api", "status": status}),
        Err(e) => json!({"type": "UNEXPECTED", "error": e.to_string()}),
    }
}
