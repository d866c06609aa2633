/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Every synced kind but pods and nodes: ConfigMaps, Secrets, Services, claims, classes, Events; and
 * the addresses and kubeconfig that this process publishes. */
#pragma once

#include "core/run.h"

/* --- refs.c: which ConfigMaps, Secrets and claims pods need --- */
struct refs *refs_new(struct syncer *s);
struct refs *refs_free(struct refs *r);
/* pod NULL: it is deleted. Adds the keys that became referenced or unreferenced. */
void refs_pod(struct refs *r, struct str pod_key, const cJSON *pod);
bool refs_wanted(const struct refs *r, enum sync_id id, struct str ns, struct str name);
/* It exists on the host now: adds the pods that refer to it. */
void refs_wake(struct refs *r, enum sync_id id, struct str ns, struct str name);

/* --- relabel.c: labels whose host keys changed --- */
/* True: pods still lack the keys the Service is about to select by; its key is added again. */
bool relabel_service_waits(struct sync_run *run, const cJSON *object);
void relabel_service_changed(struct syncer *s, const struct host_object *now,
                             const struct host_object *before);
/* The patch without the removal of keys that a Service still selects by; NULL: it became empty. */
cJSON *relabel_pod_keep(struct sync_run *run, const cJSON *wanted, cJSON *patch);

/* --- claims.c --- */
/* Its class is not offered by the host, but the tenant has a StorageClass or volumes of it: the
 * claim is for a provisioner of the tenant's own, and never goes down. */
bool claim_is_own(struct syncer *s, struct arena *a, const cJSON *claim);

/* --- classes.c --- */
bool class_is_default(const cJSON *class); /* a StorageClass of the host */
/* The host's StorageClasses were listed, changed, or are not readable: finds the default. */
void classes_look(struct syncer *s);
void classes_priority_changed(struct syncer *s, const struct host_object *now,
                              const struct host_object *before);

/* --- events.c --- */
struct events_up *events_up_new(struct syncer *s);
struct events_up *events_up_free(struct events_up *e);
void events_changed(struct syncer *s, const struct host_object *now,
                    const struct host_object *before);
/* A pod, claim or Service changed (NULL: deleted): copies up the Events that arrived ahead of it.
 */
void events_object_known(struct syncer *s, const struct host_object *now);

/* --- services.c, admit_service.c --- */
bool service_wants_host(const cJSON *service);
bool service_is_headless(const cJSON *service);
/* May the host have one more Service? FORBIDDEN, worded like a quota's, beyond sync.maxServices. m:
 * the key's record; the caller writes it in the same turn of the loop, so the bound is exact. */
int service_check_room(struct syncer *s, const cJSON *service, const struct mapping *m,
                       struct err *err) MUST_CHECK;
/* Sets the Service's cluster IP in the host object, where the record proves that the host allocated
 * it. FORBIDDEN for any other. */
int service_keep_address(struct arena *a, const struct mapping *m, const cJSON *service,
                         cJSON *host_object, struct err *err) MUST_CHECK;
int service_before_store(struct syncer *s, struct arena *a, const cJSON *object, bool dry_run,
                         struct err *err) MUST_CHECK;
bool service_is_api(struct str ns, struct str name);
/* kube-system/kube-dns, unless it is the tenant's own. object NULL: it is deleted. */
bool service_is_dns(struct syncer *s, const cJSON *object, struct str ns, struct str name);
void service_publish_dns(struct syncer *s); /* once its address is known */
void service_admit(struct syncer *s, struct arena *a, cJSON *object, const cJSON *old, bool dry_run,
                   void (*done)(void *ctx, const struct err *err), void *ctx);
void service_admit_undo(struct syncer *s, const cJSON *object);
bool service_wants_admit(struct syncer *s, const cJSON *object, const cJSON *old);
bool service_in_admission(const struct syncer *s, struct str ns, struct str name);
void service_stored(struct syncer *s, const cJSON *object);
struct admits *admits_new(struct syncer *s);
struct admits *admits_free(struct admits *a);

/* --- runtime_classes.c: those of the pools, once at start --- */
void runtime_classes_publish(struct syncer *s);

/* --- address.c: the addresses at which pods reach this API and its DNS --- */
void address_find(struct syncer *s);

/* --- publish.c: the kubeconfig Secret on the host --- */
struct publisher *publisher_new(struct syncer *s);
void publisher_kick(struct publisher *p); /* the host answers again */
/* After host_stop(). Freed when its timer is closed. */
void publisher_close(struct publisher *p);
