// SPDX-License-Identifier: Apache-2.0
//! A scenario as steps: each prints one line, `NAME: what the client saw` in JSON, and none ends the program.

use serde_json::Value;
use std::future::Future;
use std::time::{Duration, Instant};

pub type Outcome = Result<Value, Box<dyn std::error::Error + Send + Sync>>;

pub fn namespace() -> String {
    std::env::var("CLIENT_NAMESPACE").expect("CLIENT_NAMESPACE")
}

pub fn patience() -> Duration {
    Duration::from_secs_f64(std::env::var("CLIENT_WAIT").expect("CLIENT_WAIT").parse().expect("seconds"))
}

#[derive(Default)]
pub struct Script {
    steps: usize,
}

impl Script {
    pub async fn step(&mut self, name: &str, outcome: impl Future<Output = Outcome>) {
        self.steps += 1;
        match outcome.await {
            Ok(seen) => println!("{name}: {seen}"),
            Err(e) => println!("{name}: UNEXPECTED {}", format!("{e:?}").replace('\n', " ")),
        }
    }

    pub fn end(&self) {
        println!("end: {} steps", self.steps);
    }
}

/// Calls `attempt` until it gives something, and gives that.
pub async fn eventually<T, F, R>(what: &str, mut attempt: F) -> Result<T, Box<dyn std::error::Error + Send + Sync>>
where
    F: FnMut() -> R,
    R: Future<Output = Option<T>>,
{
    let begin = Instant::now();
    loop {
        if let Some(value) = attempt().await {
            return Ok(value);
        }
        if begin.elapsed() > patience() {
            return Err(format!("waited for {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
