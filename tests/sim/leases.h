/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of one virtual cluster as far as the Lease knows them: a store and a state machine
 * each, on one fake host, in virtual time. */
#pragma once

#include "sim.h"

#include <sublet/store_identity.h>

#include "core/lease.h"

#define DURATION_MS 40000
#define UID         "11111111-2222-3333-4444-555555555555"
#define EARLY       "019000000000aaaaaaaaaaaaaaaaaaaa"
#define LATE        "019100000000aaaaaaaaaaaaaaaaaaaa"

struct process {
    struct world *world;
    const char *dir, *epoch;
    bool force;
    struct store *store;
    struct host *host;
    struct lease *lease;
    enum sync_lease_state last;
    char other[128], fork[128], why[128];
    struct store_predecessor after; /* of the new life that it wants */
    unsigned changes, confirmations, certainties;
    bool flag;
};

struct world {
    uv_loop_t loop;
    struct moment moment;
    struct executor executor;
    bool dead;
    struct clock clock;
    struct rng rng;
    struct fake_host *host;
    struct arena *arena;
    char dirs[3][64];
    struct process *running[3];
    size_t n;
};

int world_setup(void **state);
int world_teardown(void **state);
void world_run_ms(struct world *w, unsigned ms);
/* The same, while at most one acts. */
void world_pass(struct world *w, int64_t ms);
int64_t world_now_ms(const struct world *w);  /* of the clock that only grows */
void world_jump(struct world *w, int64_t ms); /* the machine sleeps */
cJSON *world_lease(struct world *w);
int64_t world_sequence(struct world *w);
int64_t world_revision(struct world *w); /* that the Lease has */

struct process *process_new(struct world *w, size_t dir, const char *epoch);
void process_launch(struct process *p);
void process_kill(struct process *p); /* without a release: as a kill leaves it */
void process_end(struct process *p);
void process_until(struct process *p, enum sync_lease_state state);
void process_until_certain(struct process *p); /* after a break of the connection */
void process_until_confirmed(struct process *p, unsigned times);
void process_wait_flag(struct process *p);
void process_on_flag(void *process);
/* So many revisions, durable. */
void process_write(struct process *p, int n);
bool process_holds(const struct process *p);
/* The store's files as they are now: what rsync or a snapshot of the volume makes of them. */
void process_copy(struct world *w, size_t from, size_t to);
