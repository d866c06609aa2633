/* SPDX-License-Identifier: Apache-2.0 */
/* A whole virtual cluster with its syncer on a fake host, in one loop, that can be closed and
 * opened again on the same store. Time is virtual (schedule.h): one seed gives one run. Must never
 * wait for a moment: it waits for a state, and fails when it does not come. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <uv.h>

#include <sublet/controller.h>
#include <sublet/store_identity.h>
#include <sublet/syncer.h>

#include "fake_host.h"
#include "schedule.h"

struct sim {
    uv_loop_t loop;
    struct moment moment;
    struct executor executor;
    char dir[64];
    uint64_t seed;
    struct arena *arena;
    struct config config;
    struct clock clock;
    struct rng rng;
    struct store *store;
    struct pki *pki;
    struct vapi *api;
    struct syncer *syncer;
    struct fake_host *host;
    bool flag, dead;
    struct store_predecessor after; /* of the next open; filled in where a new life is wanted */
    const char *backups[8];
    size_t n_backups;
    unsigned writes;                /* of the test's own, under way */
    char note[64];                  /* the test's own */
    char refusal[256];              /* of the last write that was refused */
    char report[512];               /* by sim_on_report(); "": none yet */
    void (*explain)(struct sim *s); /* prints what is apart, when a wait was in vain */
};

/* SHAKE=n in the environment: the same test with other latencies and random numbers. */
uint64_t sim_shaken(uint64_t seed);
/* config: YAML over `name: sim` and a host namespace; NULL for none. */
struct sim *sim_new(uint64_t seed, const char *config);
void sim_free(struct sim *s);
void sim_close(struct sim *s); /* the virtual cluster, not the host */
void sim_open(struct sim *s);
void sim_run_ms(struct sim *s, unsigned ms);
void sim_step(struct sim *s); /* what is due now, then the first thing after that */
/* Runs until is(s) holds, or fails the test (printing the seed and `what`). */
void sim_until(struct sim *s, bool (*is)(struct sim *s), const char *what);
bool sim_leads(struct sim *s); /* it holds the Lease */
bool sim_is_superseded(struct sim *s);
/* The host has no Lease, and this data had one: the time passes in which its holder would create
 * it. */
void sim_wait_for_no_leader(struct sim *s);
/* For sync_lacking_start(): keeps the report. */
void sim_on_report(struct syncer *syncer, struct str report);
bool sim_has_report(struct sim *s);
/* A copy of the store, and the virtual cluster started from it: on the host as it is, or as the
 * caller has replaced s->host meanwhile. The file serves any number of times. */
void sim_backup(struct sim *s, const char *file);
void sim_stop_and_restore(struct sim *s, const char *file); /* sim_open() follows */
/* The data directory as it is now, beside it; and this in its place, while all is closed. */
void sim_copy(struct sim *s, const char *name);
void sim_swap(struct sim *s, const char *name);
/* The machine sleeps for so long: all clocks go on, nothing happens meanwhile. Then the syncer
 * looks at everything again. */
void sim_jump(struct sim *s, int64_t seconds);
/* Of a thousand requests a hundred fail in each way there is, until the host is mended; with that
 * the time passes after which creates whose answers were lost are sent again. */
void sim_spoil_host(struct sim *s);
void sim_mend_host(struct sim *s);
/* The wall clock is set; no time passes. */
void sim_set_clock(struct sim *s, int64_t seconds);

/* JSON with ' for ". The write is under way afterwards; sim_writes_done() waits for it. */
void sim_create(struct sim *s, const char *resource, const char *ns, const char *json);
/* A merge patch; "pods/resize": of the subresource. */
void sim_patch(struct sim *s, const char *resource, const char *ns, const char *name,
               const char *json);
void sim_delete(struct sim *s, const char *resource, const char *ns, const char *name,
                int64_t grace_s);
void sim_writes_done(struct sim *s);
cJSON *sim_list(struct sim *s, struct arena *a, const char *resource, const char *ns);
cJSON *sim_get(struct sim *s, struct arena *a, const char *resource, const char *ns,
               const char *name);
