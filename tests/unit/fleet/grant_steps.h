/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of grants do with the writes of a moment. The file that includes it has struct host_of
 * with an arena `a`, SETTLE_ROUNDS, and step(): applies the writes, as lines, and counts them. */
#pragma once

static inline void check_step(struct host_of *h, const char *want)
{
    struct buf got = BUF_INIT(0);

    step(h, &got);
    assert_str(buf_str(&got), want);
    buf_fini(&got);
}

/* Steps until nothing is left to write. */
static inline void settle(struct host_of *h)
{
    struct buf unused = BUF_INIT(0);
    int rounds = 0;

    while (step(h, &unused))
        assert_true(++rounds < SETTLE_ROUNDS);
    buf_fini(&unused);
}

static inline struct str condition_text(struct host_of *h, const cJSON *tree, const char *type)
{
    const cJSON *c = condition_of(tree, type);

    return arena_printf(h->a, "%.*s %.*s %.*s", STR_F(json_str_at(c, "status")),
                        STR_F(json_str_at(c, "reason")), STR_F(json_str_at(c, "message")));
}
