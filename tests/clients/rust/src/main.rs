// SPDX-License-Identifier: Apache-2.0
//! The scenario in the idiom of kube-rs: derived kinds, typed errors, watcher and store, a Controller with a finalizer, a lease.

mod objects;
mod operator;
mod pods;
mod script;
mod users;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy, WatchEvent, WatchParams};
use kube::runtime::{reflector, wait::await_condition, wait::conditions, watcher, WatchStreamExt};
use kube::{Client, CustomResourceExt, ResourceExt};
use objects::{config_map, deployment, names, refused, Gadget};
use script::{eventually, namespace, Outcome, Script};
use serde_json::json;

async fn discovery(client: &Client) -> Outcome {
    let version = client.apiserver_version().await?;
    let groups: Vec<_> = client.list_api_groups().await?.groups.into_iter().map(|g| (g.name, g.versions.into_iter().map(|v| v.version).collect::<Vec<_>>())).collect();
    let found = kube::discovery::Discovery::new(client.clone()).filter(&["apps", "policy"]).run().await?;
    let mut kinds: Vec<_> = found.groups().flat_map(|g| g.recommended_resources()).map(|(r, c)| (r.kind, r.plural, format!("{:?}", c.scope), c.operations)).collect();
    kinds.sort();
    Ok(json!([[version.major, version.minor, version.platform], groups, kinds]))
}

async fn prepared(client: &Client) -> Outcome {
    let api: Api<Namespace> = Api::all(client.clone());
    let body = serde_json::from_value(json!({"metadata": {"name": namespace()}}))?;
    let made = api.create(&PostParams::default(), &body).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace());
    await_condition(accounts, "default", conditions::is_created()).await?;
    Ok(json!(made.status))
}

async fn create(api: &Api<ConfigMap>) -> Outcome {
    let body = config_map("one", json!({"a": "1"}), json!({"n": "1"}));
    let made = api.create(&PostParams::default(), &body).await?;
    Ok(json!([made, refused(api.create(&PostParams::default(), &body).await), api.get("one").await?, api.get_metadata("one").await?,
        refused(api.get("none").await), api.get_opt("none").await?]))
}

async fn lists(api: &Api<ConfigMap>) -> Outcome {
    for i in 0..7 {
        api.create(&PostParams::default(), &config_map(&format!("page-{i}"), json!({}), json!({"page": (i % 2).to_string()}))).await?;
    }
    let mut pages = vec![];
    let mut params = ListParams::default().labels("page").limit(3);
    loop {
        let answer = api.list(&params).await?;
        pages.push(json!([names(&answer.items), answer.metadata.remaining_item_count]));
        match answer.metadata.continue_.filter(|c| !c.is_empty()) {
            Some(more) => params = params.continue_token(&more),
            None => break,
        }
    }
    let by = |p: ListParams| async move { api.list(&p).await.map(|l| names(&l.items)) };
    Ok(json!([pages, by(ListParams::default().labels("page in (1)")).await?, by(ListParams::default().fields("metadata.name=page-3")).await?,
        by(ListParams::default().match_any().labels("!page,n")).await?, refused(by(ListParams::default().fields("data.a=1")).await),
        refused(by(ListParams::default().continue_token("nonsense")).await)]))
}

async fn dry_run(api: &Api<ConfigMap>) -> Outcome {
    let made = api.create(&PostParams { dry_run: true, ..Default::default() }, &config_map("dry", json!({"a": "b"}), json!({}))).await?;
    Ok(json!([made.data, refused(api.get("dry").await)]))
}

async fn watches(api: &Api<ConfigMap>) -> Outcome {
    let begin = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    let mut made = api.create(&PostParams::default(), &config_map("seen", json!({"a": "1"}), json!({}))).await?;
    made.data.as_mut().expect("data").insert("a".into(), "2".into());
    api.replace("seen", &PostParams::default(), &made).await?;
    api.delete("seen", &DeleteParams::default()).await?;
    let mut seen = vec![];
    let params = WatchParams::default().timeout(20);
    let events: Vec<_> = api.watch(&params, &begin).await?.take(3).try_collect().await?;
    for e in events {
        seen.push(match e {
            WatchEvent::Added(o) => json!(["added", o.name_any(), o.data]),
            WatchEvent::Modified(o) => json!(["modified", o.name_any(), o.data]),
            WatchEvent::Deleted(o) => json!(["deleted", o.name_any(), o.data]),
            WatchEvent::Bookmark(b) => json!(["bookmark", b.metadata.annotations]),
            WatchEvent::Error(e) => json!(["error", e]),
        });
    }
    let old = match api.watch(&params, "1").await?.boxed().try_next().await? {
        Some(WatchEvent::Error(e)) => json!(["error", e]),
        other => json!(format!("{other:?}")),
    };
    Ok(json!([seen, old]))
}

/// A store that a watcher keeps, by list and watch or by one streamed list.
async fn store(api: &Api<ConfigMap>, config: watcher::Config, tag: &str) -> Outcome {
    let labels = json!({"cached": tag});
    let [first, second] = [format!("{tag}-0"), format!("{tag}-1")];
    let (reader, writer) = reflector::store();
    let stream = reflector(writer, watcher(api.clone(), config.labels(&format!("cached={tag}")))).default_backoff().touched_objects();
    let following = tokio::spawn(stream.for_each(|_| futures::future::ready(())));
    api.create(&PostParams::default(), &config_map(&first, json!({"v": "1"}), labels.clone())).await?;
    reader.wait_until_ready().await?;
    api.create(&PostParams::default(), &config_map(&second, json!({"v": "1"}), labels)).await?;
    eventually("both objects", || async { (reader.len() == 2).then_some(()) }).await?;
    api.patch(&second, &PatchParams::default(), &Patch::Merge(json!({"data": {"v": "2"}}))).await?;
    let key = reflector::ObjectRef::new(&second).within(&namespace());
    eventually("the change", || async { reader.get(&key).filter(|o| o.data.as_ref().is_some_and(|d| d["v"] == "2")) }).await?;
    api.delete(&first, &DeleteParams::default()).await?;
    eventually("the deletion", || async { (reader.len() == 1).then_some(()) }).await?;
    following.abort();
    Ok(json!(reader.state().iter().map(|o| (o.name_any(), o.data.clone())).collect::<Vec<_>>()))
}

async fn replace(api: &Api<ConfigMap>) -> Outcome {
    let mut read = api.get("one").await?;
    read.data = Some([("a".to_string(), "2".to_string())].into());
    let params = PostParams { field_manager: Some("replacer".into()), ..Default::default() };
    Ok(json!([api.replace("one", &params, &read).await?, refused(api.replace("one", &params, &read).await)]))
}

async fn patches(api: &Api<ConfigMap>) -> Outcome {
    let params = PatchParams { field_manager: Some("patcher".into()), ..Default::default() };
    let json_patch = |v| -> Patch<()> { Patch::Json(serde_json::from_value(v).expect("a JSON patch")) };
    let test = json_patch(json!([{"op": "test", "path": "/data/a", "value": "2"}, {"op": "add", "path": "/data/b", "value": "x"}]));
    let wrong = json_patch(json!([{"op": "test", "path": "/data/a", "value": "9"}]));
    let strict = PatchParams { field_validation: Some(kube::api::ValidationDirective::Strict), ..Default::default() };
    Ok(json!([api.patch("one", &params, &test).await?, refused(api.patch("one", &params, &wrong).await),
        api.patch("one", &params, &Patch::Merge(json!({"data": {"b": null, "c": "y"}}))).await?,
        api.patch("one", &params, &Patch::Strategic(json!({"metadata": {"labels": {"n": null, "m": "2"}}}))).await?,
        refused(api.patch("one", &strict, &Patch::Merge(json!({"surplus": 1}))).await)]))
}

async fn apply(api: &Api<ConfigMap>) -> Outcome {
    let body = |data| Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data}));
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    Ok(json!([api.patch("applied", &first, &body(json!({"a": "1", "b": "1"}))).await?,
        refused(api.patch("applied", &second, &body(json!({"a": "2"}))).await),
        api.patch("applied", &second.force(), &body(json!({"a": "2"}))).await?,
        api.patch("applied", &first, &body(json!({"b": "1"}))).await?]))
}

async fn scale(client: &Client) -> Outcome {
    let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace());
    api.create(&PostParams::default(), &deployment("web", 1)).await?;
    await_condition(api.clone(), "web", conditions::is_deployment_completed()).await?;
    let scaled = api.patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 2}}))).await?;
    let full = eventually("the second replica", || async {
        let d = api.get_status("web").await.ok()?;
        (d.status.as_ref()?.available_replicas == Some(2)).then_some(d)
    }).await?;
    let restarted = { api.restart("web").await?; api.get("web").await?.metadata.generation };
    api.delete("web", &DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..Default::default() }).await?;
    eventually("the deployment to be gone", || async { api.get_opt("web").await.ok()?.is_none().then_some(()) }).await?;
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), &namespace());
    eventually("the replica sets to be gone", || async { sets.list(&ListParams::default()).await.ok()?.items.is_empty().then_some(()) }).await?;
    Ok(json!([scaled.spec, full.status.map(|s| (s.replicas, s.available_replicas)), restarted,
        refused(api.create(&PostParams::default(), &deployment("bad", -1)).await)]))
}

async fn deletion(api: &Api<ConfigMap>) -> Outcome {
    let made = api.create(&PostParams::default(), &config_map("guarded", json!({}), json!({}))).await?;
    let when = |uid: &str| DeleteParams::default().preconditions(Preconditions { uid: Some(uid.into()), resource_version: None });
    let wrong = refused(api.delete("guarded", &when("00000000-0000-0000-0000-000000000000")).await);
    let right = api.delete("guarded", &when(&made.uid().unwrap_or_default())).await?.right();
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("page=1")).await?;
    Ok(json!([wrong, right, refused(api.delete("guarded", &DeleteParams::default()).await), names(&api.list(&ListParams::default().labels("page")).await?.items)]))
}

async fn custom_objects(client: &Client) -> Outcome {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let made = crds.patch(&Gadget::crd().name_any(), &PatchParams::apply("rust"), &Patch::Apply(Gadget::crd())).await?;
    await_condition(crds, &made.name_any(), conditions::is_crd_established()).await?;
    let api: Api<Gadget> = Api::namespaced(client.clone(), &namespace());
    let body = Gadget::new("g", objects::GadgetSpec { size: 3, ..Default::default() });
    let first = eventually("the kind to be served", || async { api.create(&PostParams::default(), &body).await.ok() }).await?;
    let status = api.patch_status("g", &PatchParams::default(), &Patch::Merge(json!({"status": {"phase": "Ready"}, "spec": {"size": 9}}))).await?;
    let small = Gadget::new("bad", objects::GadgetSpec { size: 0, ..Default::default() });
    let scaled = api.patch_scale("g", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 4}}))).await?;
    let seen = json!([made.spec, first, status, scaled.spec, refused(api.create(&PostParams::default(), &small).await), names(&api.list(&ListParams::default()).await?.items)]);
    api.delete("g", &DeleteParams::default()).await?;
    Ok(seen)
}

async fn end(client: &Client) -> Outcome {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.delete(&Gadget::crd().name_any(), &DeleteParams::default()).await?;
    let api: Api<Namespace> = Api::all(client.clone());
    let uid = api.delete(&namespace(), &DeleteParams::default()).await?.left().and_then(|n| n.uid()).unwrap_or_default();
    await_condition(api.clone(), &namespace(), conditions::is_deleted(&uid)).await?;
    Ok(refused(api.get(&namespace()).await))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace());
    let mut script = Script::default();
    script.step("discovery", discovery(&client)).await;
    script.step("prepared", prepared(&client)).await;
    script.step("create", create(&maps)).await;
    script.step("lists", lists(&maps)).await;
    script.step("dry-run", dry_run(&maps)).await;
    script.step("watches", watches(&maps)).await;
    script.step("store", store(&maps, watcher::Config::default(), "listed")).await;
    script.step("store-by-streamed-list", store(&maps, watcher::Config::default().streaming_lists(), "streamed")).await;
    script.step("replace", replace(&maps)).await;
    script.step("patches", patches(&maps)).await;
    script.step("apply", apply(&maps)).await;
    script.step("scale", scale(&client)).await;
    script.step("deletion", deletion(&maps)).await;
    script.step("custom-objects", custom_objects(&client)).await;
    script.step("controller", operator::run(&client)).await;
    script.step("token", users::token(&client)).await;
    script.step("impersonation", users::impersonation()).await;
    script.step("events", users::events(&client)).await;
    script.step("lease", users::lease(&client)).await;
    script.step("pod", pods::runs(&client)).await;
    script.step("logs", pods::logs(&client)).await;
    script.step("exec", pods::exec(&client)).await;
    script.step("port-forward", pods::port_forward(&client)).await;
    script.step("eviction", pods::eviction(&client)).await;
    script.step("end", end(&client)).await;
    script.end();
    std::process::exit(0)
}
