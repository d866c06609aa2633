/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Every synced kind but pods and nodes: ConfigMaps, Secrets, Services, claims, classes, Events; and
 * the addresses and kubeconfig that this process publishes. */
#pragma once

#include "core/run.h"

/* --- refs.c: which ConfigMaps, Secrets, claims and ServiceAccounts other objects need --- */
struct refs *sync_refs_new(struct syncer *s);
struct refs *sync_refs_free(struct refs *r);
/* key: "ns/name"; object NULL: it needs none any more. Adds the keys that became referenced or
 * unreferenced. */
void sync_refs_object(struct refs *r, enum sync_id id, struct str key, const cJSON *object);
/* A ConfigMap or Secret refers to itself: it goes down, whatever else refers to it. */
void sync_refs_self(struct refs *r, enum sync_id id, struct str key, bool wanted);
bool sync_refs_wanted(const struct refs *r, enum sync_id id, struct str ns, struct str name);
/* Is every object known that may refer to one in this namespace? If not, that none is known to
 * proves nothing. */
bool sync_refs_are_whole(const struct refs *r, struct str ns);
/* What is known of the copy on the host of a referenced object; all zero at first. */
struct ref_copy {
    uint64_t revision;    /* of the host object when its content was ours */
    int64_t written_back; /* monotonic ms; after another client changed it */
};
struct ref_copy *sync_refs_copy(const struct refs *r, enum sync_id id, struct str ns,
                                struct str name); /* NULL: nothing refers to it */
/* It exists on the host now: adds what refers to it, but not itself. */
void sync_refs_wake(struct refs *r, enum sync_id id, struct str ns, struct str name);

/* --- data.c: handlers of ConfigMaps and Secrets for the comparison of both sides --- */
bool sync_data_is_wanted(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object);
cJSON *sync_data_difference(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                            const cJSON *host);

/* --- relabel.c: labels whose host keys changed --- */
/* True: pods still lack the keys the Service is about to select by; its key is added again. */
bool sync_relabel_service_waits(struct sync_run *run, const cJSON *object);
void sync_relabel_service_changed(struct syncer *s, const struct host_object *now,
                                  const struct host_object *before);
/* The patch without the removal of keys that a Service still selects by; NULL: it became empty. */
cJSON *sync_relabel_pod_keep(struct sync_run *run, const cJSON *wanted, cJSON *patch);

/* --- claims.c --- */
/* Its class is not offered by the host, but the tenant has a StorageClass or volumes of it: the
 * claim is for a provisioner of the tenant's own, and never goes down. */
bool sync_claim_is_own(struct syncer *s, struct arena *a, const cJSON *claim);

/* --- classes.c --- */
bool sync_class_is_default(const cJSON *class); /* a StorageClass of the host */
/* The host's StorageClasses were listed, changed, or are not readable: finds the default. */
void sync_classes_look(struct syncer *s);
/* translate_tenant.host_priority; ctx: the syncer. */
bool sync_classes_host_priority(void *ctx, struct str class, int64_t *ret);
void sync_classes_priority_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                                   const struct host_object *before);

/* --- events.c --- */
struct events_up *sync_events_up_new(struct syncer *s);
struct events_up *sync_events_up_free(struct events_up *e);
void sync_events_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                         const struct host_object *before);
/* An object that Events may be about changed (now NULL: deleted; before NULL: new): copies up the
 * Events that arrived ahead of it, and remembers a deleted one for those that come after. */
void sync_events_object_changed(struct syncer *s, const struct host_object *now,
                                const struct host_object *before);

/* --- services.c, admit_service.c --- */
bool sync_service_wants_host(const cJSON *service);
bool sync_service_is_headless(const cJSON *service);
/* May the host have one more Service? FORBIDDEN, worded like a quota's, beyond sync.maxServices. m:
 * the key's record; the caller writes it in the same turn of the loop, so the bound is exact. */
int sync_service_check_room(struct syncer *s, const cJSON *service, const struct mapping *m,
                            struct err *err) MUST_CHECK;
/* Sets the Service's cluster IP in the host object, where the record proves that the host allocated
 * it. FORBIDDEN for any other. */
int sync_service_keep_address(struct arena *a, const struct mapping *m, const cJSON *service,
                              cJSON *host_object, struct err *err) MUST_CHECK;
int sync_service_before_store(struct syncer *s, struct arena *a, const cJSON *object, bool dry_run,
                              struct err *err) MUST_CHECK;
bool sync_service_is_api(struct str ns, struct str name);
/* kube-system/kube-dns, unless it is the tenant's own. object NULL: it is deleted. */
bool sync_service_is_dns(struct syncer *s, const cJSON *object, struct str ns, struct str name);
/* Has it no host Service of its own: the API, the DNS, one that shows a Service of the host? */
bool sync_service_is_shown(struct syncer *s, const cJSON *object, struct str ns, struct str name);
void sync_service_publish_dns(struct syncer *s); /* once its address is known */
/* Before it is stored: FORBIDDEN for what must not go down. old NULL: it is created. */
int sync_service_check(struct syncer *s, struct arena *a, const cJSON *object, const cJSON *old,
                       struct err *err) MUST_CHECK;
void sync_service_admit(struct syncer *s, struct arena *a, cJSON *object, const cJSON *old,
                        bool dry_run, void (*done)(void *ctx, const struct err *err), void *ctx);
void sync_service_admit_undo(struct syncer *s, const cJSON *object);
bool sync_service_wants_admit(struct syncer *s, const cJSON *object, const cJSON *old);
bool sync_service_in_admission(const struct syncer *s, struct str ns, struct str name);
void sync_service_stored(struct syncer *s, const cJSON *object);
struct admits *sync_admits_new(struct syncer *s);
struct admits *sync_admits_free(struct admits *a);

/* --- runtime_classes.c: those of the pools, once at start --- */
void sync_runtime_classes_publish(struct syncer *s);

/* --- address.c: the addresses at which pods reach this API and its DNS --- */
void sync_address_find(struct syncer *s);

/* --- publish.c: objects of the host namespace that this process makes of itself --- */
struct publication {
    enum sync_id id;
    const char *kind;
    bool whole; /* keys of `data` that are not wanted are removed */
    /* An annotation; an object that has it with the cluster's name is ours, whatever its labels.
     * NULL: none has. */
    const char *mark;
    /* What `data` is to be; existing: what it is, NULL: there is no such object. From the loop,
     * once the object was read. */
    cJSON *(*data)(void *ctx, struct arena *a, const cJSON *existing);
    const char *duty; /* see sync_dialogue_note() */
    const char *failed, *failed_message, *foreign, *foreign_message;
};
/* ns empty: the host namespace. */
struct publisher *sync_publisher_new(struct syncer *s, const struct publication *what,
                                     struct str ns, struct str name, void *ctx);
/* data() has an answer, or another one than before. */
void sync_publisher_want(struct publisher *p);
void sync_publisher_renew(struct publisher *p); /* what the host has may be another's by now */
void sync_publisher_kick(struct publisher *p);  /* the host answers again */
/* After host_stop(). Freed when its timer is closed. */
void sync_publisher_close(struct publisher *p);

/* --- kubeconfig_accounts.c: ServiceAccounts of additionalSecrets that have a clusterRole --- */
/* Makes what is missing of them and their bindings, and is called again until nothing is. */
void sync_kubeconfig_accounts_make(struct syncer *s);
/* Ends the rights that an earlier configuration gave. */
void sync_kubeconfig_accounts_clear(struct syncer *s);

/* --- kubeconfigs.c: the Secrets with the admin's kubeconfig --- */
struct kubeconfigs *sync_kubeconfigs_new(struct syncer *s);
void sync_kubeconfigs_renew(struct kubeconfigs *k); /* as those of a publisher, of each */
void sync_kubeconfigs_kick(struct kubeconfigs *k);
void sync_kubeconfigs_close(struct kubeconfigs *k);
struct kubeconfigs *sync_kubeconfigs_free(struct kubeconfigs *k); /* after the publishers */
