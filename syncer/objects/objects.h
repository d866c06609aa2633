/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Objects besides pods and nodes: what goes down for pods, Services, claims, classes, Events. */
#pragma once

#include "core/run.h"

/* --- refs.c: which ConfigMaps, Secrets and claims pods need --- */
struct refs *refs_new(struct syncer *s);
struct refs *refs_free(struct refs *r);
/* pod NULL: it is gone. Adds the keys of what is wanted, or no longer, to their controllers. */
void refs_pod(struct refs *r, struct str pod_key, const cJSON *pod);
bool refs_wanted(const struct refs *r, enum sync_id id, struct str ns, struct str name);
/* It is on the host now: the pods that may wait for it come again. */
void refs_wake(struct refs *r, enum sync_id id, struct str ns, struct str name);

/* --- relabel.c: labels that go down under other keys than before --- */
/* True: pods still lack the keys the Service is about to select by; its key comes again. */
bool relabel_service_waits(struct sync_run *run, const cJSON *object);
void relabel_service_changed(struct syncer *s, const struct host_object *now,
                             const struct host_object *before);
/* The patch without the removal of keys that a Service still selects by; NULL: nothing is left. */
cJSON *relabel_pod_keep(struct sync_run *run, const cJSON *wanted, cJSON *patch);

/* --- claims.c --- */
/* Of a class that is not offered, but that the tenant has a StorageClass or volumes of: the claim
 * is for a provisioner of its own, and never goes down. */
bool claim_is_own(struct syncer *s, struct arena *a, const cJSON *claim);

/* --- classes.c --- */
bool class_is_default(const cJSON *class); /* a StorageClass of the host */
/* The host's StorageClasses were read, changed, or may not be read: which is the default? */
void classes_look(struct syncer *s);
void classes_priority_changed(struct syncer *s, const struct host_object *now,
                              const struct host_object *before);

/* --- events.c --- */
struct events_up *events_up_new(struct syncer *s);
struct events_up *events_up_free(struct events_up *e);
void events_changed(struct syncer *s, const struct host_object *now,
                    const struct host_object *before);
/* A pod, claim or service as it is now (NULL: gone): events that came ahead of it are told. */
void events_object_known(struct syncer *s, const struct host_object *now);

/* --- services.c, admit_service.c --- */
bool service_wants_host(const cJSON *service);
bool service_is_headless(const cJSON *service);
/* One more of them on the host, of this key: FORBIDDEN in a quota's words beyond sync.maxServices.
 * m: the key's record; the caller puts it in the same turn of the loop, so the bound is exact. */
int service_check_room(struct syncer *s, const cJSON *service, const struct mapping *m,
                       struct err *err) MUST_CHECK;
/* The address this Service has goes into the host object made for it again, when the record says
 * that the host gave it. FORBIDDEN for any other. */
int service_keep_address(struct arena *a, const struct mapping *m, const cJSON *service,
                         cJSON *host_object, struct err *err) MUST_CHECK;
int service_before_store(struct syncer *s, struct arena *a, const cJSON *object, bool dry_run,
                         struct err *err) MUST_CHECK;
bool service_is_api(struct str ns, struct str name);
/* kube-system/kube-dns, unless it is the tenant's own. object NULL: it is gone. */
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

/* --- address.c: under which addresses pods find this API and its DNS --- */
void address_find(struct syncer *s);

/* --- publish.c --- */
struct publisher *publisher_new(struct syncer *s);
void publisher_kick(struct publisher *p); /* the host is back */
/* After host_stop(). Its memory goes with its timer. */
void publisher_close(struct publisher *p);
