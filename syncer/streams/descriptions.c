/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own OpenAPI documents, whose descriptions `kubectl explain` prints. The caller picks
 * what it needs; this only carries bytes. Must never request a path outside /openapi/v3, which
 * every identity on a host may read. */

#include "streams/streams.h"
#include <assert.h>

#define ROOT "/openapi/v3"

struct fetch {
    void (*done)(void *ctx, struct str body, const struct err *err);
    void *ctx;
};

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct fetch f = *(struct fetch *)ctx;

    mem_free(ctx);
    f.done(f.ctx, answer && !err ? answer->body : STR(""), err);
}

void sync_descriptions_fetch(struct syncer *s, struct str path, int64_t timeout_ms,
                             void (*done)(void *ctx, struct str body, const struct err *err),
                             void *ctx)
{
    struct host_request request = {
        .method = "GET",
        .path = path,
        .accept = "application/json",
        .timeout_ms = timeout_ms,
        .urgent = true,
    };
    struct fetch *f = NEW(struct fetch);

    assert(str_has_prefix(path, STR(ROOT)));
    *f = (struct fetch){done, ctx};
    host_send(s->host, &request, on_answer, f);
}
