/* SPDX-License-Identifier: Apache-2.0
 * A store in a directory of its own, driven to completion step by step. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <uv.h>
#include <sublet/store.h>
#include <sublet/store_disk.h>
#include <sublet/store_recall.h>

struct fixture {
    char dir[64];
    uv_loop_t loop;
    struct store *store;
    struct store_options options; /* for the next open */
    struct err err;               /* of the last call that failed */
    unsigned pods;                /* a resource */
};

void fixture_init(struct fixture *f);
void fixture_fini(struct fixture *f); /* closes and removes */
/* The same as cmocka calls them, for one fixture at a time. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* The same on a disk that can fail: fault_vfs.h. */
int fault_setup(void **state);
int fault_teardown(void **state);
/* For thousands of opens, each with its syncs: moves the empty directory to /dev/shm, if it can. */
void fixture_in_memory(struct fixture *f);
void fixture_open(struct fixture *f); /* must succeed */
/* From the next start on it is a day later, and more: reports of earlier starts are over. */
void fixture_next_day(struct fixture *f);
void fixture_close(struct fixture *f);
void fixture_reopen(struct fixture *f);
/* Runs the loop until everything written so far is answered; what the answer was. */
bool fixture_sync(struct fixture *f);
/* Runs the loop for so long. */
void fixture_run(struct fixture *f, uint64_t ms);
/* Runs the loop until the disk is in this state. */
void fixture_await(struct fixture *f, enum store_disk disk);
/* What the store does once it has been quiet for a while, without waiting for it. */
void fixture_quiet(struct fixture *f);
/* Runs the loop until it has nothing to do. */
void fixture_settle(struct fixture *f);

/* One write of resource pods; the bytes are {"v":<value>,"rv":<revision>}. Returns the revision, or
 * -1 with f->err. */
int64_t try_write(struct fixture *f, enum store_op op, const char *ns, const char *name, int value,
                  int64_t expected);
int64_t try_write_of(struct fixture *f, unsigned resource, enum store_op op, const char *ns,
                     const char *name, int value, int64_t expected);
/* Must succeed; expected is the latest revision. Not synced. */
int64_t put(struct fixture *f, const char *ns, const char *name, int value);
int64_t delete(struct fixture *f, const char *ns, const char *name);
/* For watches: counts at an int, or nowhere (NULL). */
void count_wake(void *ctx);
/* A watch whose wake-ups are counted there; NULL with f->err when it is refused. */
struct store_watch *open_watch(struct fixture *f, unsigned resource, int64_t revision, int *wakes);
/* The next event of a watch, or NULL once it has caught up or expired: runs the loop while events
 * are read back. */
const struct store_event *next_event(struct fixture *f, struct store_watch *w, bool *ret_expired);
/* store_scan() of resource pods with what it needs recalled. */
int scan_at(struct fixture *f, struct str ns, struct str after_ns, struct str after_name,
            int64_t revision, store_scan_cb each, void *ctx);
/* Of objects a/k<i> with the values i, for i below n: how many are hidden. Each other one is right,
 * and none of them absent. */
int count_hidden(struct fixture *f, int n);
/* The value of an object, or -1 for NULL. */
int value_of(const struct store_object *o);
int committed(struct fixture *f, const char *ns, const char *name);
int latest(struct fixture *f, const char *ns, const char *name);

/* Size of a file in the directory; -1 when there is none. */
int64_t file_size(struct fixture *f, const char *name);
/* One integer of the closed database. */
#define EMPTY_LOG 32 /* the bytes of a log with its header alone */
int64_t query(struct fixture *f, const char *sql);
void remove_dir(const char *dir);
/* The database, its log, and one that was found lost: what a kill at this moment would leave. */
void copy_store(const char *from, const char *to);
/* Of a name in the store's directory; good until four others were made. */
char *path_in(struct fixture *f, const char *name);
