// SPDX-License-Identifier: Apache-2.0
//! A Controller: owns a ConfigMap per gadget, writes the status, and has a finalizer.

use crate::objects::{Gadget, GadgetSpec};
use crate::script::{eventually, namespace, Outcome};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{finalizer::finalizer, finalizer::Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FINALIZER: &str = "clients.example.com/rust";

struct Context {
    client: Client,
    cleaned: Mutex<Vec<String>>,
}

type Failure = kube::runtime::finalizer::Error<kube::Error>;

async fn reconcile(gadget: Arc<Gadget>, context: Arc<Context>) -> Result<Action, Failure> {
    let api: Api<Gadget> = Api::namespaced(context.client.clone(), &namespace());
    finalizer(&api, FINALIZER, gadget, |event| async {
        match event {
            Event::Apply(g) => applied(&g, &context).await,
            Event::Cleanup(g) => {
                context.cleaned.lock().expect("not poisoned").push(g.name_any());
                Ok(Action::await_change())
            }
        }
    })
    .await
}

async fn applied(gadget: &Gadget, context: &Context) -> Result<Action, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace());
    let name = format!("of-{}", gadget.name_any());
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [gadget.controller_owner_ref(&())]},
        "data": {"size": gadget.spec.size.to_string()}});
    maps.patch(&name, &PatchParams::apply("controller").force(), &Patch::Apply(child)).await?;
    let api: Api<Gadget> = Api::namespaced(context.client.clone(), &namespace());
    let status = json!({"apiVersion": "clients.example.com/v1", "kind": "Gadget", "status": {"phase": format!("Size{}", gadget.spec.size)}});
    api.patch_status(&gadget.name_any(), &PatchParams::apply("controller").force(), &Patch::Apply(status)).await?;
    Ok(Action::await_change())
}

pub async fn run(client: &Client) -> Outcome {
    let gadgets: Api<Gadget> = Api::namespaced(client.clone(), &namespace());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace());
    let context = Arc::new(Context { client: client.clone(), cleaned: Mutex::default() });
    let controller = Controller::new(gadgets.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), context.clone());
    let running = tokio::spawn(controller.for_each(|_| futures::future::ready(())));

    gadgets.create(&PostParams::default(), &Gadget::new("owner", GadgetSpec { size: 1, ..Default::default() })).await?;
    let phase = |want: &'static str| {
        let gadgets = gadgets.clone();
        async move {
            eventually(want, || async { gadgets.get("owner").await.ok().filter(|g| g.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some(want))) }).await
        }
    };
    let first = phase("Size1").await?;
    gadgets.patch("owner", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 2}}))).await?;
    let second = phase("Size2").await?;
    maps.delete("of-owner", &DeleteParams::default()).await?; // and the controller makes it again
    let uid = second.uid();
    let child = eventually("the child", || async {
        maps.get("of-owner").await.ok().filter(|c| c.metadata.deletion_timestamp.is_none())
    }).await?;
    gadgets.delete("owner", &DeleteParams::default()).await?;
    eventually("the gadget to be gone", || async { gadgets.get_opt("owner").await.ok()?.is_none().then_some(()) }).await?;
    eventually("the child to be gone", || async { maps.get_opt("of-owner").await.ok()?.is_none().then_some(()) }).await?;
    running.abort();
    let owners: Vec<_> = child.owner_references().iter().map(|o| (o.kind.clone(), o.controller, Some(o.uid.clone()) == uid)).collect();
    let cleaned = context.cleaned.lock().expect("not poisoned").clone();
    Ok(json!([first.metadata.finalizers, first.metadata.generation, second.metadata.generation, child.data, owners, cleaned]))
}
