/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own OpenAPI documents, for the text of `kubectl explain`. Whoever asked picks what is
 * his: this only carries bytes. Must never ask for any path but those below /openapi/v3, which
 * every identity of a host may read. */

#include "streams/streams.h"
#include <assert.h>

#define ROOT "/openapi/v3"

struct question {
    void (*done)(void *ctx, struct str body, const struct err *err);
    void *ctx;
};

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct question q = *(struct question *)ctx;

    mem_free(ctx);
    q.done(q.ctx, answer && !err ? answer->body : STR(""), err);
}

void descriptions_ask(struct syncer *s, struct str path, int64_t timeout_ms,
                      void (*done)(void *ctx, struct str body, const struct err *err), void *ctx)
{
    struct host_request request = {
        .method = "GET",
        .path = path,
        .accept = "application/json",
        .timeout_ms = timeout_ms,
        .urgent = true,
    };
    struct question *q = NEW(struct question);

    assert(str_has_prefix(path, STR(ROOT)));
    *q = (struct question){done, ctx};
    host_send(s->host, &request, on_answer, q);
}
