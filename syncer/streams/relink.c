/* SPDX-License-Identifier: Apache-2.0 */
/* Must never hold more than one begun link, nor change a byte beside the links. */
#include "streams/relink.h"

#include <string.h>

/* How many bytes at the end may be the begin of `from`. */
static size_t begun(struct str text, struct str from)
{
    size_t n = text.n < from.n ? text.n : from.n - 1;

    while (n && memcmp(text.p + text.n - n, from.p, n) != 0)
        n--;
    return n;
}

void sync_relink_add(struct relink *r, struct str bytes, struct buf *out)
{
    struct buf all = r->held;
    struct str left;
    const char *at;
    size_t keep;

    buf_add(&all, bytes);
    left = buf_str(&all);
    while (left.n && (at = memmem(left.p, left.n, r->from.p, r->from.n))) {
        buf_add(out, str_sub(left, 0, (size_t)(at - left.p)));
        buf_add(out, r->to);
        left = str_from(left, (size_t)(at - left.p) + r->from.n);
    }
    keep = begun(left, r->from);
    buf_add(out, str_sub(left, 0, left.n - keep));
    r->held = BUF_INIT(0);
    buf_add(&r->held, str_from(left, left.n - keep));
    buf_fini(&all);
}

void sync_relink_end(struct relink *r, struct buf *out)
{
    buf_add(out, buf_str(&r->held));
    buf_fini(&r->held);
}
