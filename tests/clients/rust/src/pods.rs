// SPDX-License-Identifier: Apache-2.0
//! A pod that runs, and its streams over WebSockets.

use crate::objects::pod_spec;
use crate::script::{eventually, namespace, Outcome};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, EvictParams, LogParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::Client;
use serde_json::{from_value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn api(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), &namespace())
}

pub async fn runs(client: &Client) -> Outcome {
    let pods = api(client);
    pods.create(&PostParams::default(), &from_value(json!({"metadata": {"name": "runs"}, "spec": pod_spec()}))?).await?;
    let pod = await_condition(pods, "runs", conditions::is_pod_running()).await?.ok_or("no pod")?;
    let (spec, status) = (pod.spec.ok_or("no spec")?, pod.status.ok_or("no status")?);
    Ok(json!([status.phase, status.qos_class, spec.tolerations, spec.restart_policy]))
}

pub async fn logs(client: &Client) -> Outcome {
    let all = LogParams { container: Some("main".into()), ..Default::default() };
    let last = LogParams { tail_lines: Some(1), ..all.clone() };
    Ok(json!([api(client).logs("runs", &all).await?, api(client).logs("runs", &last).await?]))
}

pub async fn exec(client: &Client) -> Outcome {
    let mut seen = vec![];
    for command in [vec!["/bin/echo", "hello"], vec!["/bin/sh", "-c", "echo no >&2; exit 3"]] {
        let mut process = api(client).exec("runs", command, &AttachParams::default().container("main").stderr(true)).await?;
        let (mut out, mut err) = (String::new(), String::new());
        let (mut stdout, mut stderr) = (process.stdout().ok_or("no stdout")?, process.stderr().ok_or("no stderr")?);
        let status = process.take_status().ok_or("no status")?;
        tokio::try_join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err))?;
        seen.push(json!([out, err, status.await]));
    }
    Ok(json!(seen))
}

pub async fn port_forward(client: &Client) -> Outcome {
    let sent = "0123456789".repeat(5000).into_bytes();
    let mut forwarder = api(client).portforward("runs", &[8080]).await?;
    let (mut from, mut to) = tokio::io::split(forwarder.take_stream(8080).ok_or("no stream")?);
    let mut got = vec![0; sent.len()];
    tokio::try_join!(to.write_all(&sent), from.read_exact(&mut got))?;
    forwarder.abort();
    Ok(json!(got == sent))
}

pub async fn eviction(client: &Client) -> Outcome {
    let answer = api(client).evict("runs", &EvictParams::default()).await?;
    eventually("the pod to be gone", || async { api(client).get_opt("runs").await.ok()?.is_none().then_some(()) }).await?;
    Ok(json!(answer))
}
