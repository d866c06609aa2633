/* SPDX-License-Identifier: Apache-2.0 */
/* A whole control plane on a temporary store with its controllers, in one loop with a clock the
 * test owns, and a kubelet and scheduler in a few lines: pods get a node, run, and end as the test
 * says. Nothing waits by time: `settle` runs until every controller is idle, `pass` moves the clock
 * from one due time to the next. Must never reach around the API except to read. */
#pragma once

#include <sublet/controller.h>

#include "test.h"

struct world;

/* What becomes of a pod that has a node. */
enum fate { POD_STAYS_PENDING, POD_RUNS, POD_READY, POD_SUCCEEDS, POD_FAILS };
typedef enum fate (*fate_of)(void *ctx, const cJSON *pod);

/* Something beside the controllers that drives pods itself (an embedded host). */
struct world_guest {
    void *(*open)(struct vapi *api); /* before the API starts */
    void (*start)(void *guest);
    void (*close)(void *guest, void (*closed)(void *ctx), void *ctx);
    int64_t (*next_due)(const void *guest);
    void (*wake)(void *guest);
};

struct world *world_new(uint64_t seed);
struct world *world_new_with(uint64_t seed, const struct world_guest *guest); /* pods are its own */
void world_free(struct world *w);
/* Ends the API, lets offline() write to its store, closes that and starts both again. */
void world_restart(struct world *w, void (*offline)(struct store *store, void *ctx), void *ctx);
/* The same with SQL on the store's file. */
void world_restart_on_file(struct world *w, const char *sql);
struct vapi *world_api(struct world *w);
struct arena *world_arena(struct world *w);
struct config *world_config(struct world *w); /* what the API reads from now on */
uint64_t world_random(struct world *w);

/* The world of the running test, with a namespace `n`; every controller test is one of these. */
extern struct world *W;
int world_set_up(void **state);
int world_tear_down(void **state);
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
/* What becomes of every pod from now on. */
void world_fate(enum fate fate);

/* Default: every pod becomes ready. */
void world_fates(struct world *w, fate_of fate, void *ctx);
/* Pods are left alone: settle() moves controllers only. */
void world_freeze(struct world *w, bool frozen);

void world_settle(struct world *w);                /* until no controller has anything to do */
void world_pass(struct world *w, int64_t seconds); /* settles at every due time on the way */
int64_t world_now(const struct world *w);          /* seconds */

/* `resource` is "pods" or "deployments.apps". JSON is written with ' for ". ns "" is cluster
 * scope. All fail the test when refused. */
void world_create(struct world *w, const char *resource, const char *ns, const char *json);
void world_create_tree(struct world *w, const char *resource, const char *ns, const cJSON *object);
void world_patch(struct world *w, const char *resource, const char *ns, const char *name,
                 const char *json);
void world_patch_status(struct world *w, const char *resource, const char *ns, const char *name,
                        const char *json);
/* To any other subresource ("approval"). */
void world_patch_at(struct world *w, const char *resource, const char *sub, const char *ns,
                    const char *name, const char *json);
void world_delete(struct world *w, const char *resource, const char *ns, const char *name,
                  const char *propagation);
/* The reason it was refused with, or "". */
const char *world_try(struct world *w, const char *resource, const char *ns, const char *json);
const char *world_try_tree(struct world *w, const char *resource, const char *ns,
                           const cJSON *object);
cJSON *world_get(struct world *w, const char *resource, const char *ns, const char *name);
cJSON *world_list(struct world *w, const char *resource, const char *ns); /* an array */
/* Of them, those whose label has a value (NULL key: all). */
size_t world_count(struct world *w, const char *resource, const char *ns, const char *key,
                   const char *value);
cJSON *world_parse(struct world *w, const char *json);
/* How many Events of a reason are about an object of a kind. */
int64_t world_events(struct world *w, const char *ns, const char *kind, const char *reason);
const char *world_condition(struct world *w, const cJSON *object, const char *type); /* status */
const char *world_reason(struct world *w, const cJSON *object, const char *type);
int64_t world_i64(const cJSON *object, const char *path); /* 0 when absent */
/* A node, ready, with labels. */
void world_node(struct world *w, const char *name, const char *labels_json);
