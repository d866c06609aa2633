/* SPDX-License-Identifier: Apache-2.0
 * room: embedded
 *
 * The embedded host: what turns our own API server into a host cluster with simulated machines, so
 * that everything can be tried without a cluster. It drives the API through the in-process client
 * alone: nodes from a file, a scheduler, a kubelet whose containers do not exist, a provisioner of
 * volumes, and the addresses and ports of Services. A virtual cluster meets it as any other host.
 *
 * What upstream's programs do can be left to them: pods to kube-scheduler, nodes and claims to
 * kube-controller-manager. The machines then do what kubelets and a provisioner do, no more. */
#pragma once

#include <sublet/vapi.h>

struct embedded;

struct embedded_options {
    struct str nodes;          /* YAML of a nodes file; empty: the built-in set */
    bool external_scheduler;   /* another scheduler binds pods */
    bool external_controllers; /* another controller manager judges nodes, evicts, binds claims */
};

/* The YAML of a nodes file (docs in embedded/README.md); empty: the built-in set of GPU and CPU
 * machines. Errors are BAD_REQUEST and name the place:
 * `nodes: nodes[0].gpu.model: unknown value "x": want one of a100|h100|l4|t4`. */
int embedded_check_nodes(struct str text, struct err *err) MUST_CHECK;

/* Before vapi_start(): reads the nodes, takes the addresses that stored Services hold, registers
 * its hooks. */
int embedded_new(struct vapi *api, const struct embedded_options *options, struct embedded **ret,
                 struct err *err) MUST_CHECK;
/* When the API is ready: nodes, storage classes and the controllers. */
void embedded_start(struct embedded *e);
/* Before vapi_close(). Requests that wait for a hook are answered; frees e, then calls closed(). */
void embedded_close(struct embedded *e, void (*closed)(void *ctx), void *ctx);

/* For tests, which own the clock; as controllers_next_due() and controllers_wake(). */
int64_t embedded_next_due(const struct embedded *e);
void embedded_wake(struct embedded *e);
