/* SPDX-License-Identifier: Apache-2.0 */
/* All built-in controllers, started and closed together. Must know nothing of any of them. */
#include "util.h"

#include <assert.h>

#define CONTROLLERS_MAGIC 0x6374726cu

static const struct controller_def *const DEFS[] = {
#define CONTROLLER_ROW(name) &name,
    CONTROLLERS(CONTROLLER_ROW)
#undef CONTROLLER_ROW
};
#define N_DEFS (sizeof(DEFS) / sizeof(*DEFS))

struct controllers {
    unsigned magic;
    struct controller *all[N_DEFS];
    size_t open;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct controllers *controllers_start(struct vapi *api)
{
    struct controllers *cs = NEW(struct controllers);

    cs->magic = CONTROLLERS_MAGIC;
    for (size_t i = 0; i < N_DEFS; i++)
        cs->all[i] = controller_start(api, DEFS[i]);
    cs->open = N_DEFS;
    return cs;
}

static void on_closed(void *ctx)
{
    struct controllers *cs = ctx;

    assert(cs->magic == CONTROLLERS_MAGIC && cs->open);
    if (--cs->open)
        return;
    void (*closed)(void *) = cs->closed;
    void *closed_ctx = cs->closed_ctx;
    cs->magic = 0;
    mem_free(cs);
    closed(closed_ctx);
}

void controllers_close(struct controllers *cs, void (*closed)(void *ctx), void *ctx)
{
    assert(cs->magic == CONTROLLERS_MAGIC);
    cs->closed = closed;
    cs->closed_ctx = ctx;
    for (size_t i = 0; i < N_DEFS; i++)
        controller_close(cs->all[i], on_closed, cs);
}

int64_t controllers_next_due(const struct controllers *cs)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < N_DEFS; i++) {
        int64_t one = controller_next_due(cs->all[i]);

        due = one < due ? one : due;
    }
    return due;
}

void controllers_wake(struct controllers *cs)
{
    for (size_t i = 0; i < N_DEFS; i++)
        controller_wake(cs->all[i]);
}
