/* SPDX-License-Identifier: Apache-2.0
 * A disk that is full or read-only, as the loop thread sees it: which writes are refused before
 * they cost anything, and the probe that ends the state. While the disk is full the probe is also
 * the time to make room: history leaves, free pages go back to the disk. Must never refuse what the
 * disk would take once a probe succeeded, and runs nothing while the disk is writable. */
#include "drive.h"
#include "impl.h"
#include "upkeep.h"

#include <assert.h>

#define PROBE_FIRST_MS 100
#define PROBE_MOST_MS  10000

static const char *const SAYS[] = {
    [STORE_DISK_FULL] = "the disk is full: only deletes are stored, and updates that do not grow",
    [STORE_DISK_USED_UP] = "the disk is full, and so is the reserve for deletes: nothing is stored",
    [STORE_DISK_READ_ONLY] = "the disk cannot be written: nothing is stored",
};

enum store_disk store_disk(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->disk.disk;
}

bool store_disk_is_shut(const struct store *s)
{
    assert(s->magic == STORE_MAGIC);
    return s->disk.disk == STORE_DISK_USED_UP || s->disk.disk == STORE_DISK_READ_ONLY;
}

int store_disk_refuse(const struct store *s, struct err *err)
{
    assert(s->disk.disk);
    err_set(err, &ERR_STORAGE, "%s (%s)", SAYS[s->disk.disk], s->disk.why);
    if (err)
        err->retry_after = STORE_DISK_RETRY_S;
    return -1;
}

void store_on_disk(struct store *s, void (*changed)(void *ctx), void *ctx)
{
    assert(s->magic == STORE_MAGIC);
    s->on_disk = changed;
    s->on_disk_ctx = ctx;
}

int store_disk_check(const struct store *s, const struct store_write *w, size_t before,
                     size_t after, struct err *err)
{
    size_t growth = w->ending ? STORE_DISK_ENDING : STORE_DISK_SLACK;

    if (s->disk.disk == STORE_DISK_WRITABLE)
        return 0;
    if (s->disk.disk == STORE_DISK_FULL &&
        (w->op == STORE_DELETE || (w->op == STORE_UPDATE && after <= before + growth)))
        return 0;
    return store_disk_refuse(s, err);
}

/* ---- the probe ---- */

static void on_probe(uv_timer_t *timer)
{
    struct store *s = timer->data;

    assert(s->magic == STORE_MAGIC && s->disk.disk);
    s->probe_ms = s->probe_ms * 2 < PROBE_MOST_MS ? s->probe_ms * 2 : PROBE_MOST_MS;
    uv_timer_start(timer, on_probe, s->probe_ms, 0);
    if (s->disk.disk == STORE_DISK_FULL) {
        store_retain(s);
        s->tidy = true;
    }
    s->probe_due = true;
    drive_schedule(s);
}

static void probe_soon(struct store *s)
{
    s->probe_ms = PROBE_FIRST_MS;
    if (!s->closing)
        uv_timer_start(&s->probe, on_probe, s->probe_ms, 0);
}

void store_disk_hope(struct store *s)
{
    if (uv_timer_get_due_in(&s->probe) > PROBE_FIRST_MS)
        probe_soon(s);
}

void store_disk_learn(struct store *s, const struct disk_state *now)
{
    enum store_disk before = s->disk.disk;

    s->disk = *now;
    if (now->disk == before)
        return;
    if (now->disk == STORE_DISK_WRITABLE) {
        uv_timer_stop(&s->probe);
        s->probe_due = false;
    } else if (before == STORE_DISK_WRITABLE) {
        probe_soon(s);
    }
    if (s->on_disk)
        s->on_disk(s->on_disk_ctx);
}

void store_disk_start(struct store *s, const struct disk_state *now)
{
    uv_timer_init(s->loop, &s->probe);
    uv_unref((uv_handle_t *)&s->probe);
    s->probe.data = s;
    store_disk_learn(s, now);
}
