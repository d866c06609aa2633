/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonate-* headers. Several modes are tried, the constrained ones first: for those the user
 * needs permission for the identity (`impersonate:MODE`) and for this request with it
 * (`impersonate-on:MODE:VERB`); the last mode is `impersonate` alone, for any request. Source:
 * k8s.io/apiserver pkg/endpoints/filters/impersonation of 1.36 (KEP 5284). Must never take a name
 * from a header without having authorized the real user for it. */
#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/selector.h>

#include "auth_impl.h"

#define MANY         4 /* from this many on, permission for `*` is checked first */
#define NODE_PREFIX  "system:node:"
#define GROUP_NODES  "system:nodes"
#define EXTRA_PREFIX "impersonate-extra-"
#define NODE_KEY     "authentication.kubernetes.io/node-name"

struct extra {
    struct str key, value;
};

struct wanted {
    struct str name, uid;
    struct str *groups;
    size_t n_groups;
    struct extra *extras;
    size_t n_extras;
    struct str node;        /* of system:node:NAME */
    struct str ns, account; /* of system:serviceaccount:NS:NAME */
};

struct attempt {
    struct auth *auth;
    struct arena *arena;
    const struct user *real;
    const struct attributes *what; /* the request */
    const struct wanted *wanted;
    const char *verb; /* "impersonate", "impersonate:user-info" */
    bool constrained;
    struct err *err;
};

/* ---- headers ---- */

/* A key that cannot be decoded stays as it is. */
static struct str extra_key(struct arena *a, struct str header)
{
    struct str encoded = str_from(header, sizeof(EXTRA_PREFIX) - 1), key;

    return url_decode(a, encoded, false, &key) ? key : encoded;
}

static void read_names(struct arena *a, struct wanted *w)
{
    struct str rest;

    if (str_has_prefix(w->name, STR(NODE_PREFIX))) {
        rest = str_from(w->name, sizeof(NODE_PREFIX) - 1);
        if (!name_check_dns1123_subdomain(rest))
            w->node = arena_str(a, rest);
    }
    if (!str_has_prefix(w->name, STR("system:serviceaccount:")))
        return;
    rest = str_from(w->name, sizeof("system:serviceaccount:") - 1);
    struct str ns = str_cut(&rest, ':');
    if (!name_check_dns1123_label(ns) && rest.p && !name_check_dns1123_subdomain(rest)) {
        w->ns = arena_str(a, ns);
        w->account = arena_str(a, rest);
    }
}

static void write_list(struct buf *b, struct arena *a, const struct str *items, size_t n)
{
    buf_addc(b, n ? "[]string{" : "[]string(nil)");
    for (size_t i = 0; i < n; i++) {
        buf_addc(b, i ? ", " : "");
        buf_add(b, go_quote(a, items[i]));
    }
    buf_addc(b, n ? "}" : "");
}

static cJSON *extra_tree(struct arena *a, const struct wanted *w)
{
    cJSON *extra = w->n_extras ? json_new_object(a) : NULL;

    for (size_t i = 0; i < w->n_extras; i++) {
        const char *key = arena_cstr(a, w->extras[i].key);
        cJSON *values = json_get(extra, key);

        if (!values)
            values = json_set(a, extra, key, json_new_array(a));
        json_append(values, json_new_string(a, w->extras[i].value));
    }
    return extra;
}

/* As Go prints the headers. */
static int refuse_nameless(struct arena *a, const struct wanted *w, struct err *err)
{
    struct buf b = BUF_INIT(65536);
    const cJSON *extra;
    struct str *keys;
    size_t n;

    buf_addc(&b, "requested &user.DefaultInfo{Name:\"\", UID:");
    buf_add(&b, go_quote(a, w->uid));
    buf_addc(&b, ", Groups:");
    write_list(&b, a, w->groups, w->n_groups);
    buf_addc(&b, w->n_extras ? ", Extra:map[string][]string{" : ", Extra:map[string][]string(nil)");

    /* A map of lists: its keys sorted, the values of each in their order. */
    extra = extra_tree(a, w);
    keys = arena_alloc(a, (json_count(extra) + 1) * sizeof(*keys));
    n = 0;
    json_each(values, extra) keys[n++] = str_c(values->string);
    qsort(keys, n, sizeof(*keys), str_order);
    for (size_t i = 0; i < n; i++) {
        struct str_list values = json_str_list(a, json_get(extra, keys[i].p));

        buf_addc(&b, i ? ", " : "");
        buf_add(&b, go_quote(a, keys[i]));
        buf_addc(&b, ":");
        write_list(&b, a, values.items, values.n);
    }

    buf_addc(&b, w->n_extras ? "}" : "");
    buf_addc(&b, "} without impersonating a user name");
    err_set(err, &ERR_BAD_REQUEST, "%.*s", STR_F(buf_str(&b)));
    buf_fini(&b);
    return -1;
}

/* Empty *w: no impersonation. */
static int read_headers(struct arena *a, const struct net_request *r, struct wanted *w,
                        struct err *err)
{
    *w = (struct wanted){.name = arena_str(a, net_header(r, "impersonate-user")),
                         .uid = arena_str(a, net_header(r, "impersonate-uid"))};

    for (size_t i = 0; i < r->n_headers; i++) {
        const struct net_header *h = &r->headers[i];
        bool group = str_eqc(h->name, "impersonate-group");

        if (!group && !str_has_prefix(h->name, STR(EXTRA_PREFIX)))
            continue;
        if (!w->groups) { /* at most one per header, which net bounds */
            w->groups = arena_alloc(a, r->n_headers * sizeof(*w->groups));
            w->extras = arena_alloc(a, r->n_headers * sizeof(*w->extras));
        }
        if (group)
            w->groups[w->n_groups++] = arena_str(a, h->value);
        else
            w->extras[w->n_extras++] =
                (struct extra){extra_key(a, h->name), arena_str(a, h->value)};
    }
    if (!w->name.n)
        return w->uid.n || w->n_groups || w->n_extras ? refuse_nameless(a, w, err) : 0;
    read_names(a, w);
    return 0;
}

/* ---- permission ---- */

static int refuse(const struct attempt *q, const struct attributes *what, struct str reason)
{
    return auth_forbidden(q->err, q->arena, q->real, what, reason);
}

static int may(const struct attempt *q, const struct attributes *what)
{
    struct str reason;

    if (auth_authorize(q->auth, q->arena, q->real, what, &reason))
        return 0;
    return refuse(q, what, reason);
}

/* In the legacy mode users and groups are in the core group, others in authentication.k8s.io. */
static struct attributes identity_attributes(const struct attempt *q, const char *resource,
                                             struct str name)
{
    bool core = !q->constrained && (!strcmp(resource, "users") || !strcmp(resource, "groups") ||
                                    !strcmp(resource, "serviceaccounts"));

    return (struct attributes){.verb = q->verb,
                               .group = core ? STR("") : STR("authentication.k8s.io"),
                               .version = STR("v1"),
                               .resource = str_c(resource),
                               .subresource = STR(""),
                               .ns = STR(""),
                               .name = name};
}

static int may_name(const struct attempt *q)
{
    const struct wanted *w = q->wanted;
    struct attributes what = identity_attributes(q, "users", w->name);

    if (q->constrained && w->node.n)
        what = identity_attributes(q, "nodes", w->node);
    if (w->account.n) {
        what = identity_attributes(q, "serviceaccounts", w->account);
        what.ns = w->ns;
    }
    /* An account may be bound to any node: permission for one node is not permission for
     * another. */
    if (!strcmp(q->verb, "impersonate:associated-node"))
        what.name = STR("*");
    return may(q, &what);
}

static int may_uid(const struct attempt *q)
{
    struct attributes what = identity_attributes(q, "uids", q->wanted->uid);

    return q->wanted->uid.n ? may(q, &what) : 0;
}

static int may_groups(const struct attempt *q)
{
    const struct wanted *w = q->wanted;
    struct attributes what = identity_attributes(q, "groups", STR("")),
                      all = identity_attributes(q, "groups", STR("*"));

    for (size_t i = 0; q->constrained && i < w->n_groups; i++) {
        if (!w->groups[i].n)
            return refuse(q, &what, STR("impersonating the empty string group is not allowed"));
    }
    for (size_t i = 0; q->constrained && i < w->n_groups; i++) {
        what.name = w->groups[i];
        if (str_eqc(what.name, "system:masters"))
            return refuse(q, &what, STR("impersonating the system:masters group is not allowed"));
    }
    if (q->constrained && w->n_groups >= MANY &&
        auth_authorize(q->auth, q->arena, q->real, &all, NULL))
        return 0;
    for (size_t i = 0; i < w->n_groups; i++) {
        what.name = w->groups[i];
        if (may(q, &what))
            return -1;
    }
    return 0;
}

/* NULL when constrained modes accept it. */
static const char *check_extra(struct arena *a, const struct extra *x)
{
    struct str rest = x->key, domain = str_cut(&rest, '/');

    if (!x->key.n)
        return "impersonating the empty string key in extra is not allowed";
    if (!rest.p || !rest.n || name_check_dns1123_subdomain(domain))
        return arena_printf(a,
                            "impersonating an invalid key in extra is not allowed: extra.key: "
                            "Invalid value: %s: must be a domain-prefixed path (such as "
                            "\"acme.io/foo\")",
                            go_quote(a, x->key).p)
            .p;
    return x->value.n ? NULL : "impersonating the empty string value in extra is not allowed";
}

static int may_extras(const struct attempt *q)
{
    const struct wanted *w = q->wanted;
    struct attributes what = identity_attributes(q, "userextras", STR("")), all = what;

    for (size_t i = 0; q->constrained && i < w->n_extras; i++) {
        const char *why = check_extra(q->arena, &w->extras[i]);

        if (why)
            return refuse(q, &what, str_c(why));
    }
    all.subresource = all.name = STR("*");
    if (q->constrained && w->n_extras >= MANY &&
        auth_authorize(q->auth, q->arena, q->real, &all, NULL))
        return 0;
    for (size_t i = 0; i < w->n_extras; i++) {
        what.subresource = w->extras[i].key;
        what.name = w->extras[i].value;
        if (may(q, &what))
            return -1;
    }
    return 0;
}

/* ---- modes ---- */

static bool only_named(const struct wanted *w)
{
    return !w->uid.n && !w->n_groups && !w->n_extras;
}

/* The node a service account's token was issued on. */
static bool fits_associated(const struct wanted *w, const struct user *real)
{
    const cJSON *nodes = json_get(real->extra, NODE_KEY);

    return only_named(w) && w->node.n && json_count(nodes) == 1 &&
           str_has_prefix(real->name, STR("system:serviceaccount:")) &&
           str_eq(json_str(json_at(nodes, 0)), w->node);
}

static bool fits_node(const struct wanted *w, const struct user *real)
{
    (void)real;
    return only_named(w) && w->node.n;
}

static bool fits_account(const struct wanted *w, const struct user *real)
{
    (void)real;
    return only_named(w) && w->account.n;
}

static bool fits_others(const struct wanted *w, const struct user *real)
{
    (void)real;
    return !w->node.n && !w->account.n;
}

static const struct mode {
    const char *name; /* NULL: the legacy mode */
    const char *verb;
    bool (*fits)(const struct wanted *w, const struct user *real);
} MODES[] = {
    {"associated-node", "impersonate:associated-node", fits_associated},
    {"arbitrary-node", "impersonate:arbitrary-node", fits_node},
    {"serviceaccount", "impersonate:serviceaccount", fits_account},
    {"user-info", "impersonate:user-info", fits_others},
    {NULL, "impersonate", NULL},
};

static int try_mode(struct attempt *q, const struct mode *mode)
{
    q->verb = mode->verb;
    q->constrained = mode->name != NULL;
    if (mode->name) {
        struct attributes what = *q->what;

        /* The mode itself needs permission, for the verb of this request. */
        what.verb = arena_printf(q->arena, "impersonate-on:%s:%s", mode->name, q->what->verb).p;
        if (may(q, &what))
            return -1;
    }
    return may_name(q) || may_uid(q) || may_groups(q) || may_extras(q) ? -1 : 0;
}

/* ---- the user ---- */

/* Nodes and service accounts are always in their groups. */
static void become(struct arena *a, const struct wanted *w, const struct mode *mode,
                   struct user *user)
{
    struct str fixed[2] = {STR("system:serviceaccounts"), STR_NULL};
    const struct str *groups = w->groups;
    size_t n = w->n_groups;
    struct user *real = ARENA_NEW(a, struct user);

    if (!n && w->account.n) {
        fixed[1] = arena_printf(a, "system:serviceaccounts:%.*s", STR_F(w->ns));
        groups = fixed;
        n = 2;
    } else if (mode->name && w->node.n) {
        fixed[0] = STR(GROUP_NODES);
        groups = fixed;
        n = 1;
    }
    *real = *user;
    *user = (struct user){.name = w->name,
                          .uid = w->uid,
                          .extra = extra_tree(a, w),
                          .real = real,
                          .constraint = mode->name ? str_c(mode->verb) : STR("")};
    auth_set_groups(a, user, groups, n);
}

/* True when the mode applied. */
static bool act(struct attempt *q, size_t mode, struct user *user, struct err *err)
{
    struct err *later = ARENA_NEW(q->arena, struct err);

    if (MODES[mode].fits && !MODES[mode].fits(q->wanted, user))
        return false;
    if (!try_mode(q, &MODES[mode])) {
        err_clear(err);
        last_modes_put(&q->auth->modes, str_hash(user->name, hash_seed()), mode + 1);
        become(q->arena, q->wanted, &MODES[mode], user);
        return true;
    }
    /* The first refusal is reported. */
    err_init(later, q->arena);
    q->err = later;
    return false;
}

int auth_impersonate(struct auth *auth, struct arena *a, const struct net_request *r,
                     const struct attributes *what, struct user *user, struct err *err)
{
    struct wanted w;
    struct attempt q = {
        .auth = auth, .arena = a, .real = user, .what = what, .wanted = &w, .err = err};
    size_t last;

    if (read_headers(a, r, &w, err))
        return -1;
    if (!w.name.n)
        return 0;
    /* The mode that served the user last comes first, and its refusal is the one reported: users of
     * the legacy mode receive the legacy message. */
    last = last_modes_get(&auth->modes, str_hash(user->name, hash_seed()));
    if (last && act(&q, last - 1, user, err))
        return 0;
    for (size_t i = 0; i < COUNT(MODES); i++) {
        if (i + 1 != last && act(&q, i, user, err))
            return 0;
    }
    return -1;
}
