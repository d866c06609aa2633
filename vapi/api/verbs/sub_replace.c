/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Replaces the whole object, status included, for in-process callers (vapi_replace()). Must never
 * be in a resource's list of subresources, where a request could name it. */
#include "verbs.h"

static int replace(struct call *c, cJSON *base, cJSON **ret, struct err *err)
{
    if (!str_eq(json_str_at(c->body, "metadata.resourceVersion"),
                json_str_at(base, "metadata.resourceVersion")))
        return commit_modified(c, err);
    *ret = c->body;
    return 0;
}

static void no_rules(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)e;
    (void)object;
    (void)old;
}

void sub_replace(struct call *c)
{
    static const struct write_plan plan = {
        .make = replace, .validate = no_rules, .uncounted = true, .whole = true};

    write_start(c, &plan);
}
