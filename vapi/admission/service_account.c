/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccount: a pod runs as an existing account, uses its image pull secrets, and gets a token,
 * the cluster's CA and its namespace where client libraries look for them. */
#include "plugins.h"

#include <sublet/json_build.h>

#define MOUNT_PATH    "/var/run/secrets/kubernetes.io/serviceaccount"
#define TOKEN_VOLUME  "kube-api-access"
#define TOKEN_SECONDS 3607

static bool wants_token(const cJSON *spec, const cJSON *account)
{
    const cJSON *own = json_get(spec, "automountServiceAccountToken");
    const cJSON *of_account = json_get(account, "automountServiceAccountToken");

    if (json_is_bool(own))
        return json_true(own);
    return !json_is_bool(of_account) || json_true(of_account);
}

static bool mounted(const cJSON *container)
{
    json_each(mount, json_get(container, "volumeMounts"))
    {
        if (str_eqc(json_str_at(mount, "mountPath"), MOUNT_PATH))
            return true;
    }
    return false;
}

static bool any_unmounted(const cJSON *spec)
{
    for (int init = 0; init < 2; init++) {
        each_container(container, spec, init)
        {
            if (!mounted(container))
                return true;
        }
    }
    return false;
}

static cJSON *source(struct arena *a, cJSON *sources, const char *kind)
{
    return json_ensure_object(a, json_append(sources, json_new_object(a)), kind);
}

static cJSON *list_item(struct arena *a, cJSON *parent, const char *key)
{
    return json_append(json_set(a, parent, key, json_new_array(a)), json_new_object(a));
}

static cJSON *token_volume(struct arena *a, struct str name)
{
    cJSON *volume = json_new_object(a), *projected, *sources, *s, *item;

    json_set_str(a, volume, "name", name);
    projected = json_ensure_object(a, volume, "projected");
    sources = json_set(a, projected, "sources", json_new_array(a));
    json_set_i64(a, projected, "defaultMode", 0644);
    s = source(a, sources, "serviceAccountToken");
    json_set_i64(a, s, "expirationSeconds", TOKEN_SECONDS);
    json_set_str(a, s, "path", STR("token"));
    s = source(a, sources, "configMap");
    json_set_str(a, s, "name", STR("kube-root-ca.crt"));
    item = list_item(a, s, "items");
    json_set_str(a, item, "key", STR("ca.crt"));
    json_set_str(a, item, "path", STR("ca.crt"));
    s = source(a, sources, "downwardAPI");
    item = list_item(a, s, "items");
    json_set_str(a, item, "path", STR("namespace"));
    cJSON *ref = json_ensure_object(a, item, "fieldRef");
    json_set_str(a, ref, "apiVersion", STR("v1"));
    json_set_str(a, ref, "fieldPath", STR("metadata.namespace"));
    return volume;
}

static cJSON *ensure_array(struct arena *a, cJSON *object, const char *key)
{
    cJSON *array = json_get(object, key);

    return json_is_array(array) ? array : json_set(a, object, key, json_new_array(a));
}

/* The volume that was added before a webhook or a policy added containers; or another one. */
static struct str token_name(const struct admission_call *c, cJSON *spec)
{
    struct str name;
    char suffix[6];

    json_each(volume, json_get(spec, "volumes"))
    {
        name = json_str(json_get(volume, "name"));
        if (str_has_prefix(name, STR(TOKEN_VOLUME "-")))
            return name;
    }
    rng_suffix(vapi_rng(c->api), suffix, 5);
    name = arena_printf(c->arena, TOKEN_VOLUME "-%s", suffix);
    json_append(ensure_array(c->arena, spec, "volumes"), token_volume(c->arena, name));
    return name;
}

static void mount_token(const struct admission_call *c, cJSON *spec)
{
    struct arena *a = c->arena;
    struct str name;

    if (!any_unmounted(spec))
        return;
    name = token_name(c, spec);
    for (int init = 0; init < 2; init++) {
        each_container(container, spec, init)
        {
            if (mounted(container))
                continue;
            json_append(ensure_array(a, container, "volumeMounts"),
                        json_object(a, JSON("name", name), JSON_BOOL("readOnly", true),
                                    JSON("mountPath", MOUNT_PATH)));
        }
    }
}

int service_account_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    cJSON *spec = json_get(object, "spec"), *account = NULL;
    struct str name = json_str_at(spec, "serviceAccountName");
    const struct store_object *o;

    (void)old;
    if (!plugin_is_new_pod(c) || !spec)
        return 0;
    /* A mirror of a static pod belongs to its node, not to an account. */
    if (json_get(json_path(object, "metadata.annotations"), "kubernetes.io/config.mirror"))
        return 0;
    if (!name.n)
        name = STR("default");
    json_set_str(c->arena, spec, "serviceAccountName", name);
    json_set_str(c->arena, spec, "serviceAccount", name);
    struct str pod = plugin_shown_name(json_str_at(object, "metadata.name"));

    o = plugin_stored(c, "", "serviceaccounts", c->ns, name);
    if (!o)
        return err_forbidden(
            err, STR(""), STR("pods"), pod,
            "error looking up service account %.*s/%.*s: serviceaccount \"%.*s\" not "
            "found",
            STR_F(c->ns), STR_F(name), STR_F(name));
    account = vapi_tree(c->arena, o);

    if (wants_token(spec, account))
        mount_token(c, spec);
    const cJSON *secrets = json_get(account, "imagePullSecrets");
    if (!json_count(json_get(spec, "imagePullSecrets")) && json_count(secrets))
        json_set(c->arena, spec, "imagePullSecrets", json_copy(c->arena, secrets));
    return 0;
}
