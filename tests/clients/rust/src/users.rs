// SPDX-License-Identifier: Apache-2.0
//! Who a user is and what it may; Events and a lease.

use crate::objects::refused;
use crate::script::{eventually, namespace, Outcome};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, ListParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Config, Resource};
use kube_leader_election::{LeaseLock, LeaseLockParams};
use serde_json::{from_value, json};
use std::time::Duration;

async fn who(client: &Client) -> Outcome {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    Ok(json!(api.create(&PostParams::default(), &SelfSubjectReview::default()).await?.status.and_then(|s| s.user_info)))
}

async fn may(client: &Client, verb: &str) -> Outcome {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let body = from_value(json!({"spec": {"resourceAttributes": {"namespace": namespace(), "verb": verb, "resource": "configmaps"}}}))?;
    Ok(json!(api.create(&PostParams::default(), &body).await?.status))
}

/// A client with a token of a service account, and what it may.
pub async fn token(client: &Client) -> Outcome {
    let params = PostParams::default();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace());
    accounts.create(&params, &from_value(json!({"metadata": {"name": "reader"}}))?).await?;
    let request: TokenRequest = from_value(json!({"spec": {"audiences": [], "expirationSeconds": 3600}, "metadata": {}}))?;
    let answer = accounts.create_token_request("reader", &params, &request).await?;
    let mut config = Config::infer().await?;
    config.auth_info = kube::config::AuthInfo::default();
    config.auth_info.token = answer.status.and_then(|s| s.token).map(Into::into);
    let reader = Client::try_from(config)?;
    let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), &namespace());
    let before = refused(maps.list(&ListParams::default()).await);
    let roles: Api<Role> = Api::namespaced(client.clone(), &namespace());
    roles.create(&params, &from_value(json!({"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]}))?).await?;
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), &namespace());
    bindings.create(&params, &from_value(json!({"metadata": {"name": "reader"}, "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace()}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}}))?).await?;
    eventually("the role", || async { maps.list(&ListParams::default()).await.ok() }).await?;
    let secrets: Api<Secret> = Api::namespaced(reader.clone(), &namespace());
    let mut user = who(&reader).await?;
    user["extra"] = json!(user["extra"].as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()));
    Ok(json!([before, refused(secrets.list(&ListParams::default()).await), user, may(&reader, "get").await?, may(&reader, "delete").await?]))
}

pub async fn impersonation() -> Outcome {
    let mut config = Config::infer().await?;
    config.auth_info.impersonate = Some("jane".into());
    config.auth_info.impersonate_groups = Some(vec!["readers".into()]);
    let jane = Client::try_from(config)?;
    let maps: Api<ConfigMap> = Api::namespaced(jane.clone(), &namespace());
    Ok(json!([who(&jane).await?, refused(maps.list(&ListParams::default()).await)]))
}

pub async fn events(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace());
    let one = maps.get("one").await?.object_ref(&());
    let recorder = Recorder::new(client.clone(), Reporter { controller: "example.com/rust".into(), instance: Some("rust-1".into()) });
    let event = Event { type_: EventType::Normal, reason: "Seen".into(), note: Some("a look".into()), action: "Look".into(), secondary: None };
    recorder.publish(&event, &one).await?;
    recorder.publish(&event, &one).await?; // a series, by a patch of the first
    let api: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client.clone(), &namespace());
    let found = api.list(&ListParams::default().fields("reason=Seen")).await?.items;
    Ok(json!(found.iter().map(|e| json!([e.note, e.action, e.type_, e.reporting_controller, e.reporting_instance, e.regarding.as_ref().map(|r| r.name.clone()),
        e.series.as_ref().map(|s| s.count)])).collect::<Vec<_>>()))
}

pub async fn lease(client: &Client) -> Outcome {
    let lock = |id: &str| {
        let params = LeaseLockParams { holder_id: id.into(), lease_name: "leader".into(), lease_ttl: Duration::from_secs(15) };
        LeaseLock::new(client.clone(), &namespace(), params)
    };
    let (first, second) = (lock("first"), lock("second"));
    let held = |r| matches!(r, kube_leader_election::LeaseLockResult::Acquired(_));
    let mut seen = vec![held(first.try_acquire_or_renew().await?), held(second.try_acquire_or_renew().await?), held(first.try_acquire_or_renew().await?)];
    first.step_down().await?;
    seen.push(held(second.try_acquire_or_renew().await?));
    let api: Api<Lease> = Api::namespaced(client.clone(), &namespace());
    Ok(json!([seen, api.get("leader").await?.spec]))
}
