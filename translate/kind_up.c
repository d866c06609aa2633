/* SPDX-License-Identifier: Apache-2.0 */
/* Configured kinds: changes of a host object that exists, and its status up. Must never remove what
 * the host added to an object that has not changed, nor show a host name in a status. */

#include <string.h>

#include "kind_impl.h"

/* ---- updates ---- */

/* Servers leave out what is empty. */
static bool is_empty(const cJSON *value)
{
    return (json_is_array(value) || json_is_object(value)) && !json_count(value);
}

/* Has `now` every value that is wanted? It may have more members. A list that goes down whole may
 * have more items, in between as well: a webhook of the host may add some each time. */
static bool covers(const cJSON *now, const cJSON *wanted, bool more)
{
    const cJSON *have;

    if (json_is_object(wanted) && json_is_object(now)) {
        json_each(member, wanted)
        {
            have = json_get(now, member->string);
            if (have ? !covers(have, member, more) : !is_empty(member))
                return false;
        }
        return true;
    }
    if (!json_is_array(wanted) || !json_is_array(now))
        return json_equal(now, wanted);
    if (!more && json_count(now) != json_count(wanted))
        return false;
    have = json_first(now);
    json_each(item, wanted)
    {
        /* Once for each pair: twice would take 2^depth steps for nested lists. */
        bool found = have && covers(have, item, more);

        while (more && have && !found) {
            have = have->next;
            found = have && covers(have, item, more);
        }
        if (!found)
            return false;
        have = have->next;
    }
    return true;
}

struct merge {
    struct arena *arena;
    bool replace; /* members that are not wanted any more are removed */
    bool more;
};

static void put(const struct merge *m, cJSON **patch, struct str key, cJSON *value)
{
    if (!*patch)
        *patch = json_new_object(m->arena);
    object_add(m->arena, *patch, key, value);
}

/* NULL: nothing differs. */
static cJSON *merge(const struct merge *m, const cJSON *now, const cJSON *wanted)
{
    cJSON *patch = NULL;

    json_each(member, wanted)
    {
        const cJSON *have = json_get(now, member->string);
        cJSON *inner;

        if (json_is_object(have) && json_is_object(member)) {
            inner = merge(m, have, member);
            if (inner)
                put(m, &patch, json_key(member), inner);
        } else if (have ? !covers(have, member, m->more && !m->replace) : !is_empty(member)) {
            put(m, &patch, json_key(member), json_copy(m->arena, member));
        }
    }
    if (!m->replace)
        return patch;
    json_each(member, now)
    {
        if (!json_get(wanted, member->string))
            put(m, &patch, json_key(member), json_new_null(m->arena));
    }
    return patch;
}

/* Is <parent><key> a row's to write, or has it a member that is? */
static bool is_ours(const struct kind_rules *rules, const char *parent, const char *key)
{
    size_t prefix = strlen(parent), n = strlen(key);

    for (const struct kind_rule *row = rules->down; row->path; row++) {
        const char *rest = row->path + prefix;

        if (!strncmp(row->path, parent, prefix) && !strncmp(rest, key, n) &&
            (!rest[n] || rest[n] == '.' || rest[n] == '['))
            return true;
    }
    return false;
}

/* One in spec that we did not write is not ours to keep, where a row writes it: it may open what
 * the tenant, or a row, has closed. */
static void remove_others(struct arena *a, const struct kind_rules *rules, const cJSON *now,
                          const cJSON *wanted, cJSON **patch)
{
    json_each(member, json_get(now, "spec"))
    {
        if (json_get(json_get(wanted, "spec"), member->string) || is_empty(member) ||
            !is_ours(rules, "spec.", member->string))
            continue;
        *patch = *patch ? *patch : json_new_object(a);
        json_set(a, json_ensure_object(a, *patch, "spec"), member->string, json_new_null(a));
    }
}

/* The host's object without the members beside spec that are its own, such as the Secrets that its
 * controllers list in a ServiceAccount. */
static const cJSON *ours_of(struct arena *a, const struct kind_rules *rules, const cJSON *now,
                            const cJSON *wanted)
{
    cJSON *ret = json_new_object(a);

    if (rules->whole)
        return now;
    json_each(member, now)
    {
        if (json_get(wanted, member->string) || is_ours(rules, "", member->string))
            object_add(a, ret, json_key(member), json_copy(a, member));
    }
    return ret;
}

static struct str digest_of(const cJSON *object)
{
    return json_str(json_get(json_path(object, "metadata.annotations"), ANNOTATION_DIGEST));
}

bool translate_kind_is_written(const cJSON *host_now, const cJSON *host_wanted)
{
    struct str digest = digest_of(host_now);

    return digest.n && str_eq(digest, digest_of(host_wanted));
}

cJSON *translate_kind_update(struct arena *a, const struct kind_rules *rules, const cJSON *host_now,
                             const cJSON *host_wanted)
{
    struct merge m = {a, !str_eq(digest_of(host_now), digest_of(host_wanted)), rules->whole};
    const cJSON *wanted = translate_kind_body(a, host_wanted);
    const cJSON *now = ours_of(a, rules, translate_kind_body(a, host_now), wanted);
    cJSON *ret = merge(&m, now, wanted);
    cJSON *metadata = translate_map_patch_metadata(a, host_now, host_wanted);

    if (!rules->whole)
        remove_others(a, rules, host_now, host_wanted, &ret);
    if (metadata) {
        ret = ret ? ret : json_new_object(a);
        object_add(a, ret, STR("metadata"), metadata);
    }
    return ret;
}

/* ---- status up ---- */

struct up {
    struct arena *arena;
    const struct translate_tenant *tenant;
    struct str host_name, ns, name;
    int64_t host_generation, generation;
    bool whole; /* no row has chosen what comes up: any string may have a name of the host */
};

cJSON *translate_kind_conditions(struct arena *a, const cJSON *conditions)
{
    static const char *const kept[] = {"type",   "status",  "observedGeneration",
                                       "reason", "message", "lastTransitionTime"};
    cJSON *ret = json_new_array(a);

    json_each(condition, conditions)
    {
        cJSON *one = json_append(ret, json_new_object(a));

        for (size_t i = 0; i < COUNT(kept); i++)
            if (json_is_scalar(json_get(condition, kept[i])))
                object_add(a, one, str_c(kept[i]), json_copy(a, json_get(condition, kept[i])));
    }
    return ret;
}

/* Generations count on each side. This runs only while the host object is as the tenant's is, so
 * what was seen of its generation was seen of the tenant's. */
static cJSON *generation_up(const struct up *u, const cJSON *observed)
{
    int64_t seen = 0;

    if (!json_i64(observed, &seen) || !u->generation || !u->host_generation)
        return json_copy(u->arena, observed);
    return json_new_i64(u->arena, seen >= u->host_generation ? u->generation : u->generation - 1);
}

static struct str text_up(const struct up *u, struct str key, struct str text)
{
    if (str_eqc(key, "message"))
        return translate_text_up(u->arena, u->tenant, text, u->host_name, u->ns, u->name);
    if (!u->whole)
        return text;
    if (str_eq(text, u->tenant->host_namespace)) /* a reference's namespace */
        return u->ns;
    return translate_names_up(u->arena, u->tenant, text, u->host_name, u->ns, u->name);
}

/* A copy in which every string has the tenant's names. */
static cJSON *value_up(const struct up *u, struct str key, const cJSON *value)
{
    cJSON *ret;

    if (json_is_string(value))
        return json_new_string(u->arena, text_up(u, key, json_str(value)));
    if (str_eqc(key, "observedGeneration"))
        return generation_up(u, value);
    if (!json_is_object(value) && !json_is_array(value))
        return json_copy(u->arena, value);
    ret = json_is_object(value) ? json_new_object(u->arena) : json_new_array(u->arena);
    json_each(item, value)
    {
        if (json_is_object(value))
            object_add(u->arena, ret, json_key(item), value_up(u, json_key(item), item));
        else
            json_append(ret, value_up(u, key, item));
    }
    return ret;
}

cJSON *translate_kind_status_up(struct arena *a, const struct translate_tenant *t,
                                const struct kind_rules *rules, const cJSON *host, const cJSON *v)
{
    struct up u = {a,
                   t,
                   json_str_at(host, "metadata.name"),
                   json_str_at(v, "metadata.namespace"),
                   json_str_at(v, "metadata.name"),
                   json_i64_at(host, "metadata.generation", 0),
                   json_i64_at(v, "metadata.generation", 0),
                   rules->whole};
    cJSON *status = json_get(host, "status");

    if (!rules->whole && !rules->up)
        return NULL;
    if (rules->up)
        status = translate_kind_status_rows(a, t, rules, host, v);
    if (!json_is_object(status))
        return NULL;
    status = value_up(&u, STR("status"), status);
    return json_equal(json_get(v, "status"), status) ? NULL : status;
}
