/* SPDX-License-Identifier: Apache-2.0 */
/* Standing notices about the host: unreachable, untrusted, or denying a right that is needed. One
 * per cause, from its beginning to its end. Must never show a tenant our identity on the host or
 * the host's address: these go to the log alone. */

#include "core/leader.h"
#include <sublet/host_trouble.h>
#include <sublet/notice.h>

#define CONNECTION STR("connection")

static void on_trouble(void *ctx, enum host_trouble now, struct str detail)
{
    const struct host_trouble_text *text = &HOST_TROUBLES[now];
    struct syncer *s = ctx;
    struct vapi_notice n = {NOTICE_HOST, CONNECTION, text->reason, STR_NULL, detail, NULL};
    struct arena *a;

    if (syncer_is_closing(s))
        return;
    if (now == HOST_FINE) {
        vapi_notice_over(s->api, NOTICE_HOST, CONNECTION);
        return;
    }
    a = arena_new(0);
    n.message = arena_printf(a, "the host cluster: %s", text->message);
    vapi_notice(s->api, &n);
    arena_free(a);
}

/* Cluster-scoped kinds are optional: on_refused() in syncer.c logs their absence once. */
static bool is_needed(const struct syncer *s, struct str right)
{
    struct str plural = str_from(right, str_find(right, ' ') + 1);

    for (size_t id = 0; id < s->n_kinds; id++)
        if (!s->kinds[id].namespaced && str_eqc(plural, s->kinds[id].plural))
            return false;
    return true;
}

static void on_right(void *ctx, struct str right, bool granted, struct str detail)
{
    struct syncer *s = ctx;
    struct vapi_notice n = {NOTICE_HOST_RIGHTS, right, "Forbidden", STR_NULL, detail, NULL};
    struct arena *a;

    if (syncer_is_closing(s) || !is_needed(s, right))
        return;
    if (granted) {
        vapi_notice_over(s->api, NOTICE_HOST_RIGHTS, right);
        return;
    }
    a = arena_new(0);
    n.message = arena_printf(a, "the host cluster does not permit this virtual cluster to %.*s",
                             STR_F(right));
    vapi_notice(s->api, &n);
    arena_free(a);
}

void sync_dialogue_note(struct syncer *s, const char *duty, const char *reason, struct str message,
                        struct str detail)
{
    struct vapi_notice n = {NOTICE_HOST, str_c(duty), reason, message, detail, NULL};

    if (!reason)
        vapi_notice_over(s->api, NOTICE_HOST, str_c(duty));
    else if (!syncer_is_closing(s))
        vapi_notice(s->api, &n);
}

void sync_dialogue_watch(struct syncer *s)
{
    host_on_trouble(s->host, on_trouble, s);
    host_on_right(s->host, on_right, s);
}
