/* SPDX-License-Identifier: Apache-2.0 */
/* RuntimeClass: a pod may only name an existing class, and gets its overhead, its node selector and
 * its tolerations. Source: plugin/pkg/admission/runtimeclass. Must never decide the runtime class
 * on the host: the pool does. */
#include "plugins.h"

#define MISMATCH "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
#define NO_CLASS                                                                                   \
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"

static int refuse(const cJSON *pod, const char *why, struct err *err)
{
    return err_forbidden(err, STR(""), STR("pods"),
                         plugin_shown_name(json_str_at(pod, "metadata.name")), "%s", why);
}

/* *ret stays NULL when the pod names none. */
static int find_class(const struct admission_call *c, const cJSON *pod, const cJSON **ret,
                      struct err *err)
{
    const cJSON *name = json_path(pod, "spec.runtimeClassName");
    const struct store_object *o;

    if (!json_is_string(name))
        return 0;
    o = plugin_stored(c, "node.k8s.io", "runtimeclasses", STR(""), json_str(name));
    if (!o)
        return err_forbidden(
            err, STR(""), STR("pods"), plugin_shown_name(json_str_at(pod, "metadata.name")),
            "pod rejected: RuntimeClass \"%.*s\" not found", STR_F(json_str(name)));
    *ret = vapi_tree(c->arena, o);
    return 0;
}

/* ---- overhead ---- */

static int set_overhead(const struct admission_call *c, cJSON *pod, const cJSON *class,
                        struct err *err)
{
    const cJSON *overhead = json_get(class, "overhead"), *fixed = json_get(overhead, "podFixed");
    cJSON *spec = json_get(pod, "spec"), *own = json_get(spec, "overhead");

    if (!overhead)
        return 0;
    if (json_count(own) && !json_equal(own, fixed))
        return refuse(pod, MISMATCH, err);
    if (fixed)
        json_set(c->arena, spec, "overhead", json_copy(c->arena, fixed));
    return 0;
}

static int check_overhead(const cJSON *pod, const cJSON *class, struct err *err)
{
    const cJSON *overhead = json_get(class, "overhead"), *own = json_path(pod, "spec.overhead");
    const cJSON *fixed = json_get(overhead, "podFixed");

    if (!overhead)
        return json_count(own) ? refuse(pod, NO_CLASS, err) : 0;
    if (json_count(own) != json_count(fixed) || (json_count(own) && !json_equal(own, fixed)))
        return refuse(pod, MISMATCH, err);
    return 0;
}

/* ---- scheduling ---- */

static bool same_text(const cJSON *a, const cJSON *b, const char *key)
{
    return str_eq(json_str_at(a, key), json_str_at(b, key));
}

static bool lasts_longer(const cJSON *wide, const cJSON *narrow)
{
    const cJSON *most = json_get(wide, "tolerationSeconds");
    int64_t limit = 0, seconds = 0;

    if (!json_i64(most, &limit))
        return true;
    return json_i64(json_get(narrow, "tolerationSeconds"), &seconds) && seconds <= limit;
}

/* Whether `wide` tolerates everything that `narrow` does. */
static bool covers(const cJSON *wide, const cJSON *narrow)
{
    struct str op = json_str_at(wide, "operator"), effect = json_str_at(wide, "effect");
    bool any = str_eqc(op, "Exists");

    if (json_equal(wide, narrow))
        return true;
    if (!same_text(wide, narrow, "key") && (json_str_at(wide, "key").n || !any))
        return false;
    if (effect.n && !same_text(wide, narrow, "effect"))
        return false;
    if (str_eqc(effect, "NoExecute") && !lasts_longer(wide, narrow))
        return false;
    if (any)
        return true;
    return (!op.n || str_eqc(op, "Equal")) && str_eqc(json_str_at(narrow, "operator"), "Equal") &&
           same_text(wide, narrow, "value");
}

static bool is_redundant(const cJSON *kept, const cJSON *t)
{
    json_each(one, kept)
    {
        if (covers(one, t))
            return true;
    }
    for (const cJSON *later = t->next; later; later = later->next) {
        if (!json_equal(later, t) && covers(later, t))
            return true;
    }
    return false;
}

/* Of two tolerations where one includes the other, the wider stays. */
static void add_tolerations(const struct admission_call *c, cJSON *spec, const cJSON *more)
{
    const cJSON *own = json_get(spec, "tolerations");
    cJSON *all = json_new_array(c->arena), *kept = json_new_array(c->arena);

    json_each(t, own)
    {
        json_append(all, json_copy(c->arena, t));
    }
    json_each(t, more)
    {
        json_append(all, json_copy(c->arena, t));
    }
    json_each(t, all)
    {
        if (!is_redundant(kept, t))
            json_append(kept, json_copy(c->arena, t));
    }
    if (json_first(kept))
        json_set(c->arena, spec, "tolerations", kept);
}

int runtime_class_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                        struct err *err)
{
    const cJSON *class = NULL, *scheduling;
    const cJSON *selector;
    cJSON *spec, *own;

    (void)old;
    if (!plugin_is_new_pod(c) || !json_get(object, "spec"))
        return 0;
    if (find_class(c, object, &class, err) || set_overhead(c, object, class, err))
        return -1;
    scheduling = json_get(class, "scheduling");
    if (!scheduling)
        return 0;

    selector = json_get(scheduling, "nodeSelector");
    spec = json_get(object, "spec");
    own = json_get(spec, "nodeSelector");
    json_each(want, selector)
    {
        struct str key = str_c(want->string), have = json_str(json_get_str(own, key));

        if (have.p && !str_eq(have, json_str(want)))
            return err_forbidden(err, STR(""), STR("pods"),
                                 plugin_shown_name(json_str_at(object, "metadata.name")),
                                 "conflict: runtimeClass.scheduling.nodeSelector[%.*s] = %.*s; "
                                 "pod.spec.nodeSelector[%.*s] = %.*s",
                                 STR_F(key), STR_F(json_str(want)), STR_F(key), STR_F(have));
    }
    json_each(want, selector)
    {
        own = json_ensure_object(c->arena, spec, "nodeSelector");
        json_set_str(c->arena, own, want->string, json_str(want));
    }

    add_tolerations(c, json_get(object, "spec"), json_get(scheduling, "tolerations"));
    return 0;
}

int runtime_class_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                           struct err *err)
{
    const cJSON *class = NULL;

    (void)old;
    if (!plugin_is_new_pod(c) || !json_get(object, "spec"))
        return 0;
    return find_class(c, object, &class, err) || check_overhead(object, class, err) ? -1 : 0;
}
