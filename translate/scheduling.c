/* SPDX-License-Identifier: Apache-2.0 */
/* Why a pod finds no node, in numbers the tenant can check. The host's scheduler counts every node
 * there is (pkg/scheduler/framework/types.go, FitError):
 *
 *   0/12 nodes are available: 2 Insufficient nvidia.com/gpu, 10 node(s) didn't match Pod's node
 *   affinity/selector. preemption: 0/12 nodes are available: ...
 *
 * The total becomes that of the nodes the tenant is shown. Reasons that the fence gives (other
 * pools, the taints of others) become one, of the nodes that are left; what preemption thinks of
 * each node is left out. Must never let a number through that was not understood: a message of
 * another form becomes a fixed sentence. */

#include "impl.h"

#define FENCED  "node(s) didn't match Pod's node affinity/selector or had untolerated taints"
#define NOWHERE "no node of the host cluster can take the pod"

enum { REASONS_MAX = 32, COUNT_DIGITS = 9 };

/* Reasons on nodes inside the fence: filters that come after those of taints and affinity. */
static const char *const OWN_REASONS[] = {
    "Too many pods",
    "node(s) did not have enough free storage",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) didn't have free ports for the requested pod ports",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't match pod topology spread constraints",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) exceed max volume count",
    "node(s) had no available disk",
    "node(s) had no available volume zone",
    "node(s) had volume node affinity conflict",
    ("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
     "in-use by another pod"),
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
};

/* Reasons found before any node is tried; names of the pod's own claims follow. */
static const char *const BEFORE_NODES[] = {
    "persistentvolumeclaim \"",
    "pod has unbound immediate PersistentVolumeClaims",
    "waiting for ephemeral volume controller to create the persistentvolumeclaim \"",
};

static bool is_own(struct str reason)
{
    struct str lead = STR("Insufficient ");

    for (size_t i = 0; i < COUNT(OWN_REASONS); i++) {
        if (str_eqc(reason, OWN_REASONS[i]))
            return true;
    }
    return str_has_prefix(reason, lead) && reason.n > lead.n &&
           str_find(str_from(reason, lead.n), ' ') == reason.n - lead.n;
}

static bool is_before_nodes(struct str text)
{
    for (size_t i = 0; i < COUNT(BEFORE_NODES); i++) {
        if (str_has_prefix(text, str_c(BEFORE_NODES[i])))
            return true;
    }
    return false;
}

/* A number of at most so many digits off the front. */
static bool take_number(struct str *text, size_t *ret)
{
    size_t n = 0, value = 0;

    while (n < text->n && text->p[n] >= '0' && text->p[n] <= '9') {
        if (n == COUNT_DIGITS)
            return false;
        value = value * 10 + (size_t)(text->p[n++] - '0');
    }
    *text = str_from(*text, n);
    *ret = value;
    return n > 0;
}

static bool take_text(struct str *text, const char *lead)
{
    if (!str_has_prefix(*text, str_c(lead)))
        return false;
    *text = str_from(*text, str_c(lead).n);
    return true;
}

static size_t digits(struct str text)
{
    size_t n = 0;

    while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
        n++;
    return n;
}

/* "0/12 nodes are available" or the like, as other schedulers and later versions write it. */
static bool counts_nodes(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        struct str rest = str_from(text, i + 1);

        if (text.p[i] == '/' && i && digits(str_sub(text, i - 1, 1)) && digits(rest) &&
            str_has_prefix(str_from(rest, digits(rest)), STR(" node")))
            return true;
    }
    return false;
}

struct reasons {
    struct buf text;
    size_t shown;     /* nodes the tenant sees */
    size_t explained; /* of them, those with a reason of their own */
    bool any, fenced;
};

static void add_reason(struct reasons *r, size_t count, struct str reason)
{
    if (r->any)
        buf_addc(&r->text, ", ");
    r->any = true;
    if (r->shown)
        buf_printf(&r->text, "%zu ", count);
    buf_add(&r->text, reason);
}

/* The list up to its full stop: "2 Insufficient cpu, 1 Too many pods". */
static bool read_reasons(struct reasons *r, struct str list)
{
    for (size_t n = 0; list.n; n++) {
        size_t end = 0, count;
        struct str reason;

        while (end < list.n && !str_has_prefix(str_from(list, end), STR(", ")))
            end++;
        reason = str_sub(list, 0, end);
        list = str_from(list, end + (end < list.n ? 2 : 0));
        if (n == REASONS_MAX || !take_number(&reason, &count) || !take_text(&reason, " ") ||
            !reason.n)
            return false;
        if (!is_own(reason)) {
            r->fenced = true;
            continue;
        }
        if (count > r->shown)
            count = r->shown;
        r->explained += count;
        add_reason(r, count, reason);
    }
    return r->any || r->fenced;
}

static struct str sentence(struct arena *a, struct reasons *r)
{
    size_t left = r->shown > r->explained ? r->shown - r->explained : 0;

    if (r->fenced && (left || !r->any))
        add_reason(r, left, STR(FENCED));
    if (r->shown)
        return arena_printf(a, "0/%zu nodes are available: %.*s.", r->shown,
                            STR_F(buf_str(&r->text)));
    return arena_printf(a, NOWHERE ": %.*s.", STR_F(buf_str(&r->text)));
}

/* The first sentence of what follows the total; the last one may lack the space after it. */
static struct str first_sentence(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '.' && (i + 1 == text.n || text.p[i + 1] == ' '))
            return str_sub(text, 0, i);
    }
    return STR("");
}

static bool fit_error(struct arena *a, struct str text, size_t shown, struct str *ret)
{
    struct reasons r = {.text = BUF_INIT(4096), .shown = shown};
    struct str list;
    size_t all;
    bool read;

    if (!take_text(&text, "0/") || !take_number(&text, &all) ||
        !take_text(&text, " nodes are available: "))
        return false;
    list = first_sentence(text);
    if (is_before_nodes(list)) {
        *ret = shown ? arena_printf(a, "0/%zu nodes are available: %.*s.", shown, STR_F(list))
                     : arena_printf(a, NOWHERE ": %.*s.", STR_F(list));
        return true;
    }
    read = read_reasons(&r, list);
    if (read)
        *ret = sentence(a, &r);
    read = read && !r.text.failed;
    buf_fini(&r.text);
    return read;
}

bool translate_scheduling_up(struct arena *a, struct str text, size_t shown, struct str *ret)
{
    static const struct {
        const char *lead, *text;
    } fixed[] = {
        {"Preempted by ", "Preempted by a pod of higher priority"},
        {"pod didn't trigger scale-up", "pod didn't trigger scale-up"},
        {"pod triggered scale-up", "pod triggered scale-up"},
        {"waiting for minCount pods from a gang", "waiting for the other pods of its gang"},
        {"waiting for pods's pod group ", "waiting for the other pods of its gang"},
    };

    for (size_t i = 0; i < COUNT(fixed); i++) {
        if (str_has_prefix(text, str_c(fixed[i].lead))) {
            *ret = str_c(fixed[i].text);
            return true;
        }
    }
    if (fit_error(a, text, shown, ret))
        return true;
    *ret = STR(NOWHERE);
    return counts_nodes(text);
}
