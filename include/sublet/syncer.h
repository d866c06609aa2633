/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * The bridge to the host cluster: translates what must really run down, brings status back, keeps
 * the GPU ledger, and gives the API its host-first services and verdicts (struct vapi_hooks). It
 * survives a host that is away for any time, and a kill at any instant. */
#pragma once

#include <sublet/vapi.h>

struct store_predecessor;
struct syncer;

/* Reads the host's kubeconfig (config.host_kubeconfig; empty: in-cluster credentials), fixes the
 * cluster uid, recomputes the ledger and registers the hooks. Before vapi_start(). Does not talk to
 * the host yet. */
int syncer_new(struct vapi *api, const struct config *config, struct syncer **ret,
               struct err *err) MUST_CHECK;
/* The cluster uid is damaged in both of its rows: syncer_new() would fail. */
bool syncer_uid_is_lost(struct store *s);
/* After vapi_start(): watches open, work begins. */
void syncer_start(struct syncer *s);
void syncer_close(struct syncer *s, void (*closed)(void *ctx), void *ctx);
/* Before syncer_start(). config.lease_force, and another process leads with data that is not older:
 * wanted() comes at most once, when the store is to be opened again with store_options.after. The
 * caller closes all; nothing goes to the host any more. */
void syncer_on_new_life(struct syncer *s,
                        void (*wanted)(void *ctx, const struct store_predecessor *after),
                        void *ctx);
/* What becomes of a virtual object (a Pod, a workload with a pod template, a Service, a claim, a
 * ConfigMap, a Secret): it is sent through the API as a dry run, translated as it was admitted, and
 * the result sent to the host as a dry run. json: one object with its
 * namespace.
 * done() exactly once, not before returning; its answer is
 *   {host: {...}, changes: [{op, path, from, to, reason}], refusal, verdict,
 *    pool: {name, binding, requested, used, limit, most}}
 * refusal is why the virtual cluster refuses it, verdict why the host does; absent: it does not.
 * pool: of a pod with devices; binding: the GPUBinding that grants it, absent: the file does.
 * host is absent where there is none. err: the object cannot be explained at all. */
typedef void (*syncer_answer_cb)(void *ctx, struct str json, const struct err *err);
void syncer_explain(struct syncer *s, struct str json, syncer_answer_cb done, void *ctx);
/* Lists what the host has of every kind and compares it with the virtual objects:
 *   {findings: [{state, resource, namespace, name, host, why, action}], checked, found, repaired}
 * state: missing, drifted, extra, foreign, quarantined, damaged; at most 1000 are listed. repair:
 * what is proven is created or written again, by the steps that reconciling takes; the others stay.
 * What is under way at the moment may be listed. done() as above; err: the host could not be read.
 */
void syncer_compare_host(struct syncer *s, bool repair, syncer_answer_cb done, void *ctx);
/* Keeps Secret `<name>-kubeconfig` (key `value`) on the host; retried until it is there. more: the
 * same of config.kubeconfigs[i]; with a service account, tokens of it are appended to it, renewed
 * before they expire (struct pki_kubeconfig, bearer). */
void syncer_publish_kubeconfig(struct syncer *s, struct str kubeconfig);
void syncer_publish_kubeconfig_more(struct syncer *s, size_t i, struct str kubeconfig);
