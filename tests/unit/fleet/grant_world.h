/* SPDX-License-Identifier: Apache-2.0 */
/* A host of a few objects for tests of grants: what it shows, and what it makes of a write. */
#pragma once

#include "test.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/object.h>

#include "grants/grant_write.h"

#define TENANTS 4
#define GPUS    16 /* of two nodes */
#define NOW     INT64_C(1790000000)

struct host_of {
    struct arena *a;
    uint64_t random;
    cJSON *pool, *second; /* second NULL: there is one */
    cJSON *nodes[2], *bindings[TENANTS], *quotas[TENANTS], *demands[TENANTS];
    int64_t holds[TENANTS], version, now_s;
    const char *on[TENANTS]; /* the node of its pod; NULL: it waits for one */
    bool evicted[TENANTS];   /* ... and is deleted there */
    const struct budget_facts *budgets;
    bool sliced;         /* nodes advertise parts: bounds are not of whole GPUs */
    const char *refuses; /* the end of a path, of which it takes no write */
    const char *refused_part;
    bool shares; /* HAMi's: a GPU is 100 of its compute, and 40960 MiB */
};

#define SLICES     "nvidia.com/mig-1g.10gb"
#define QUOTA(n)   "/api/v1/namespaces/team-" #n "/resourcequotas/sublet-gpu"
#define BINDING(n) GRANT_GROUP "/namespaces/team-" #n "/gpubindings/a100/status"
#define POOL       "PUT " GRANT_GROUP "/gpupools/a100/status \n"
#define HARD(n)    " {\"requests.nvidia.com/gpu\":\"" #n "\"}\n"

/* JSON with ' for ". */
cJSON *object(struct host_of *h, const char *text);
void stamp(struct host_of *h, cJSON *tree);
void begin_unrecorded(struct host_of *h, uint64_t seed);
void begin(struct host_of *h, uint64_t seed);
void begin_shares(struct host_of *h, uint64_t seed);
void bind_team(struct host_of *h, int tenant, const char *spec);
cJSON *pod_of(struct host_of *h, int tenant);
void look_at_node(struct host_of *h, struct grant_state *s, const cJSON *tree);
void look_at_pod(struct host_of *h, struct grant_state *s, const cJSON *tree);
void look(struct host_of *h, struct grant_state *s);
int64_t units_at(const cJSON *tree, const char *path);
void charge(struct host_of *h, int tenant);
void apply(struct host_of *h, const struct grant_write *w);
int64_t grant_of(const struct host_of *h, int i);
int64_t slices_at(const struct host_of *h, int tenant);
void check_host(const struct host_of *h);
/* The writes of a moment as lines; each is applied. Returns how many there were. */
size_t step(struct host_of *h, struct buf *out);
/* The first status of the pool, which says what is in force. */
void record_pool(struct host_of *h);
struct str status_text(struct host_of *h, int tenant, const char *path);
void set_ready(struct host_of *h, int node, const char *status);
void run_on(struct host_of *h, int tenant, int64_t gpus, const char *node);
void maintain(struct host_of *h, const char *text);

#define SETTLE_ROUNDS 12
#include "grant_steps.h"
