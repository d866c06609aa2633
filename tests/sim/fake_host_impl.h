/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake host share: its body and its table of objects. Must never be included
 * by a test, which sees the host as fake_host.h has it. */
#pragma once

#include "fake_host.h"

#include <sublet/hash.h>

struct object {
    struct object *next;
    char *plural, *name;
    struct str bytes; /* heap */
    uint64_t revision;
};

struct event {
    const char *type;
    char *plural;
    struct str bytes;
    uint64_t revision;
    bool ours;
    bool selected; /* only for watches with a selector */
};

struct created {
    struct map_entry entry;
    char *uid;
    unsigned doubled;
    uint64_t told_ms; /* of the loop, when the syncer was sent it first; 0: not yet */
};

/* How often it was requested so. */
struct asked {
    char method[8], plural[32];
    bool dry_run;
    unsigned n;
};

struct line; /* one client's way to the host: fake_host.c */

struct fake_host {
    uv_loop_t *loop;
    uv_timer_t tick;
    uint64_t random, revision, forgotten, trace;
    struct fake_faults faults;
    struct object *objects;
    struct event *events;
    size_t n_events, capacity;
    struct map created;
    struct line *line;
    char *denied[4]; /* "create services": RBAC refuses it */
    struct asked asked[64];
    size_t n_asked;
    unsigned trespasses, requests, uids;
    char place[64];
    const char *image_prefix, *undone_label, *fixed_cpu; /* of its policies; NULL: none */
    bool rewrite_created, rewrite_updated;
    bool closed;
};

/* --- fake_objects.c: objects, their events, and which pods were made more than once --- */
bool fake_chance(struct fake_host *h, unsigned of_thousand);
cJSON *fake_parse(struct arena *a, struct str bytes); /* NULL: it cannot be parsed */
bool fake_is_ours(const cJSON *tree);
/* Where it is, or would be. */
struct object **fake_find(struct fake_host *h, const char *plural, const char *name);
/* What the API server sets on a created object. */
void fake_fill(struct fake_host *h, struct arena *a, const char *plural, cJSON *tree);
void fake_store(struct fake_host *h, struct arena *a, const char *plural, cJSON *tree);
void fake_drop(struct fake_host *h, struct arena *a, struct object **at);
void fake_count_created(struct fake_host *h, const cJSON *tree);
/* A restarted syncer comes: what the one before it was sent last may not be on its record. */
void fake_forget_told(struct fake_host *h);
/* These bytes are on their way to the syncer. */
void fake_note_told(struct fake_host *h, struct arena *a, const char *plural, struct str bytes);
void fake_objects_roll_back(struct fake_host *h, struct fake_host_image *image); /* frees it */
void fake_objects_fini(struct fake_host *h);

/* --- fake_others.c: scheduler, kubelet, policies, other clients of the host --- */
/* What its webhooks make of a pod that is to be stored; before NULL: it is created. */
void fake_mutate_pod(struct fake_host *h, struct arena *a, cJSON *pod, const cJSON *before);
void fake_advance(struct fake_host *h); /* one step of each pod, by chance */
