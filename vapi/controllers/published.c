/* SPDX-License-Identifier: Apache-2.0 */
/* Objects an API server itself publishes, whichever manager runs the controllers: in kube-system
 * the CA of client certificates and what extension API servers must know of the front proxy that
 * this process is for them, and the start of legacy token tracking; and the default ServiceCIDR.
 * All are recreated when deleted; a wrong key is corrected. Must not touch other keys in them.
 * Source: pkg/controlplane/controller/{clusterauthenticationtrust,legacytokentracking,
 * defaultservicecidr} of Kubernetes 1.36. */
#include "util.h"

#define NAMESPACE  STR("kube-system")
#define TRUST      "extension-apiserver-authentication"
#define TRACKING   "kube-apiserver-legacy-service-account-token-tracking"
#define CIDR_NAME  STR("kubernetes")
#define CIDR_RANGE STR("10.96.0.0/12")

struct published {
    const char *name, *key;
    const char *fixed; /* or the result of the next member */
    struct str (*text)(struct reconcile *r);
    bool (*right)(struct reconcile *r, struct str value);
};

static struct str clients_ca(struct reconcile *r)
{
    return pki_ca_pem(vapi_pki(reconcile_api(r)));
}

static bool is_clients_ca(struct reconcile *r, struct str value)
{
    return str_eq(value, clients_ca(r));
}

/* Empty when none can be made. */
static struct str proxys_ca(struct reconcile *r)
{
    struct str pem = STR("");

    if (pki_front_proxy_ca(vapi_pki(reconcile_api(r)), reconcile_arena(r), &pem, NULL))
        return STR("");
    return pem;
}

static bool is_proxys_ca(struct reconcile *r, struct str value)
{
    return str_eq(value, proxys_ca(r));
}

/* "2026-11-21" */
static struct str today(struct reconcile *r)
{
    return str_sub(time_format_s(reconcile_arena(r), reconcile_now_s(r)), 0, 10);
}

static bool is_date(struct reconcile *r, struct str value)
{
    int64_t us;

    return value.n == 10 &&
           time_parse(arena_printf(reconcile_arena(r), "%.*sT00:00:00Z", STR_F(value)), &us);
}

static const struct published PUBLISHED[] = {
    {TRUST, "client-ca-file", NULL, clients_ca, is_clients_ca},
    {TRUST, "requestheader-client-ca-file", NULL, proxys_ca, is_proxys_ca},
    {TRUST, "requestheader-allowed-names", "[\"" PKI_FRONT_PROXY "\"]", NULL, NULL},
    {TRUST, "requestheader-username-headers", "[\"X-Remote-User\"]", NULL, NULL},
    {TRUST, "requestheader-uid-headers", "[\"X-Remote-Uid\"]", NULL, NULL},
    {TRUST, "requestheader-group-headers", "[\"X-Remote-Group\"]", NULL, NULL},
    {TRUST, "requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]", NULL, NULL},
    {TRACKING, "since", NULL, today, is_date},
};
#define N_PUBLISHED COUNT(PUBLISHED)

/* Sets missing or wrong keys; true when there were any. */
static bool set_keys(struct reconcile *r, cJSON *map, struct str name)
{
    struct arena *a = reconcile_arena(r);
    bool changed = false;

    for (const struct published *p = PUBLISHED; p < PUBLISHED + N_PUBLISHED; p++) {
        struct str is = json_str(json_get(json_get(map, "data"), p->key));

        if (!str_eqc(name, p->name) || (p->fixed ? str_eqc(is, p->fixed) : p->right(r, is)))
            continue;
        json_set_str(a, json_ensure_object(a, map, "data"), p->key,
                     p->fixed ? str_c(p->fixed) : p->text(r));
        changed = true;
    }
    return changed;
}

static void map_config(struct controller *c, const struct store_event *e)
{
    if (str_eq(e->object->ns, NAMESPACE) &&
        (str_eqc(e->object->name, TRUST) || str_eqc(e->object->name, TRACKING)))
        controller_add_name(c, NAMESPACE, e->object->name);
}

/* The namespace may be created later. */
static void map_namespace(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_ADDED || !str_eq(e->object->name, NAMESPACE))
        return;
    controller_add_name(c, NAMESPACE, STR(TRUST));
    controller_add_name(c, NAMESPACE, STR(TRACKING));
}

static void publish(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "", "configmaps");
    struct arena *a = reconcile_arena(r);
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    cJSON *map = reconcile_get(r, res, ns, name);
    bool there = map != NULL;
    if (!there) {
        map = json_new_object(a);
        json_set_str(a, json_ensure_object(a, map, "metadata"), "name", name);
        json_set_str(a, json_ensure_object(a, map, "metadata"), "namespace", ns);
    }
    if (!set_keys(r, map, name))
        return;
    if (there)
        reconcile_update(r, res, map);
    else
        reconcile_create(r, res, ns, map);
}

static const struct controller_source PUBLISHED_SOURCES[] = {
    {"", "namespaces", map_namespace},
    {"", "configmaps", map_config},
    {NULL, NULL, NULL},
};

const struct controller_def PUBLISHED_CONTROLLER = {
    .name = "kube-apiserver-published",
    .sources = PUBLISHED_SOURCES,
    .reconcile = publish,
};

/* --- the default ServiceCIDR --- */

static void make_default(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "networking.k8s.io", "servicecidrs");
    struct arena *a = reconcile_arena(r);
    cJSON *o, *cidrs;

    if (reconcile_get(r, res, STR(""), CIDR_NAME))
        return;
    o = json_new_object(a);
    json_set_str(a, json_ensure_object(a, o, "metadata"), "name", CIDR_NAME);
    cidrs = json_set(a, json_ensure_object(a, o, "spec"), "cidrs", json_new_array(a));
    json_append(cidrs, json_new_string(a, CIDR_RANGE));
    reconcile_create(r, res, STR(""), o);
}

static void map_default(struct controller *c, const struct store_event *e)
{
    if (str_eq(e->object->name, CIDR_NAME))
        controller_map_self(c, e);
}

static void *start(struct controller *c)
{
    controller_add_name(c, STR(""), CIDR_NAME);
    return NULL;
}

static const struct controller_source CIDR_SOURCES[] = {
    {"networking.k8s.io", "servicecidrs", map_default},
    {NULL, NULL, NULL},
};

const struct controller_def DEFAULT_CIDR_CONTROLLER = {
    .name = "kube-apiserver-default-service-cidr",
    .sources = CIDR_SOURCES,
    .reconcile = make_default,
    .start = start,
};
