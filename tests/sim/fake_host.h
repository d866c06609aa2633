/* SPDX-License-Identifier: Apache-2.0 */
/* A host cluster in memory, behind the syncer's transport: objects, revisions, watches, a scheduler
 * and a kubelet in a few lines; and every fault a host or the way to it can have, chosen by a seed.
 * It keeps account of what was done to it, so that a test can check what must never have happened.
 */
#pragma once

#include <uv.h>

#include <sublet/host.h>
#include <sublet/host_trouble.h>

struct transport;
struct fake_host;

/* Of a thousand requests, how many ... */
struct fake_faults {
    unsigned refuse; /* never arrive */
    unsigned lose;   /* are executed, and the answer is lost */
    unsigned busy;   /* get 429 */
    unsigned fail;   /* get 500 */
    unsigned cut;    /* chance, per tick, that a watch is cut */
    unsigned expire; /* watches find their revision gone */
    unsigned max_delay_ms;
    const char *unreadable;    /* this plural may not be listed or watched: 403 */
    const char *unlisted;      /* a list of all of this plural, with no selector: 500 */
    const char *deaf;          /* watches of this plural deliver nothing, and do not end */
    const char *slow;          /* to get one object of this plural takes 1.5 s */
    const char *full;          /* a create of this plural exceeds a quota: 403 */
    const char *full_of;       /* ... of this; NULL: its count */
    bool down;                 /* nothing arrives at all */
    enum host_trouble trouble; /* ... and this is why; none: refused */
    bool unauthorized;         /* it knows our credentials no longer */
};

struct fake_host *fake_host_new(uv_loop_t *loop, uint64_t seed);
void fake_host_free(struct fake_host *h);
/* One per client: a restarted syncer makes its own; what was under way is lost with the previous
 * client. */
struct transport *fake_host_transport(struct fake_host *h);
struct fake_faults *fake_host_faults(struct fake_host *h);
uint64_t fake_host_random(struct fake_host *h);

/* Trees in a; plural as in the path: "pods". An array of all. */
cJSON *fake_host_list(struct fake_host *h, struct arena *a, const char *plural);
size_t fake_host_count(struct fake_host *h, const char *plural);
/* Another client of the host does it. name NULL: any one of ours, by chance. */
void fake_host_put(struct fake_host *h, const char *plural, const char *json);
/* A merge patch; the uid stays. */
void fake_host_patch(struct fake_host *h, const char *plural, const char *name, const char *json);
bool fake_host_remove(struct fake_host *h, const char *plural, const char *name);
/* A policy of the host: images get this prefix (NULL: it is off), in pods that are created,
 * updated, or both. */
void fake_host_rewrite_images(struct fake_host *h, const char *prefix, bool on_create,
                              bool on_update);
/* A webhook of the host: a patch of a pod never sets this label. */
void fake_host_undo_label(struct fake_host *h, const char *key);
/* ... and sets the CPU that its containers request, unless NULL. */
void fake_host_fix_cpu(struct fake_host *h, const char *cpu);
/* From here on, pods that name no node are placed on this one. */
void fake_host_place(struct fake_host *h, const char *node);
/* A pod that runs, by chance, becomes Failed or Succeeded. */
bool fake_host_finish_pod(struct fake_host *h, const char *phase);
/* The host is restored to an earlier state: its objects and its revision are those of the image,
 * watches end, and what was created since was never there. An image serves once. */
struct fake_host_image;
struct fake_host_image *fake_host_image(struct fake_host *h);
void fake_host_roll_back(struct fake_host *h, struct fake_host_image *image);
/* How often a pod of this virtual uid was created after the syncer had received an event of an
 * earlier one: must stay 0. A pod deleted before its first event cannot be known. */
unsigned fake_host_doubled(struct fake_host *h, struct str virtual_uid);
/* Objects without our label that were changed or removed through the API: must stay 0. */
unsigned fake_host_trespasses(const struct fake_host *h);
/* How often a request reached it: fake_host_asked(h, "POST", "pods", true). */
unsigned fake_host_asked(const struct fake_host *h, const char *method, const char *plural,
                         bool dry_run);
/* Requests for one object that are on their way, or whose answer is. */
unsigned fake_host_outstanding(const struct fake_host *h, const char *method, const char *plural);
/* RBAC of the host refuses (or no longer refuses) a verb: "create services", "patch pods/status".
 * At most four. */
void fake_host_deny(struct fake_host *h, const char *right, bool deny);
unsigned fake_host_requests(const struct fake_host *h);
/* A hash of all requests that arrived, and when. */
uint64_t fake_host_trace(const struct fake_host *h);
