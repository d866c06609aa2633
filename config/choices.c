/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, each with the values that a tenant may give it. Must never list a key without its values: a
 * tenant that chooses the value of an annotation, or of a parameter, chooses whose identity or
 * storage it is. */

#include <ctype.h>

#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_KEYS = 64, MOST_VALUES = 64 };

int config_read_values(const struct place *at, const cJSON *value, struct str_list *ret)
{
    if (place_list(at, value, ret))
        return -1;
    if (!ret->n || ret->n > MOST_VALUES)
        return place_error(at, "want 1 to %d values that a tenant may give it", MOST_VALUES);
    for (size_t i = 0; i < ret->n; i++) {
        struct place inner = place_item(at, i);
        size_t star = str_find(ret->items[i], '*');

        /* A `*` ends a value, after what it must begin with. */
        if (!ret->items[i].n)
            return place_error(&inner, "must not be empty");
        if (!star || star + 1 < ret->items[i].n)
            return place_error(
                &inner, "\"%.*s\": a * stands at the end only, after the beginning of a value",
                STR_F(ret->items[i]));
    }
    return 0;
}

static int check_key(const struct place *at, struct str key)
{
    const char *why = name_check_qualified(key);

    if (why)
        return place_error(at, "%s", why);
    if (str_has_prefix(key, STR("sublet.dev/")))
        return place_error(at, "keys of sublet.dev are never a tenant's");
    return 0;
}

int config_read_choices(const struct place *at, const cJSON *value, struct config_choices *ret)
{
    struct config_choice *items;

    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MOST_KEYS)
        return place_error(at, "at most %d", MOST_KEYS);
    items = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*items));
    *ret = (struct config_choices){.items = items};
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct config_choice *one = &items[ret->n++];

        *one = (struct config_choice){.key = arena_str(at->arena, json_key(member))};
        if (check_key(&inner, one->key) || config_read_values(&inner, member, &one->values))
            return -1;
    }
    return 0;
}

int config_read_topology_keys(const struct place *at, const cJSON *value, struct str_list *ret)
{
    if (place_words(at, value, ret))
        return -1;
    for (size_t i = 0; i < ret->n; i++) {
        struct place inner = place_item(at, i);

        if (str_find(ret->items[i], '/') == ret->items[i].n)
            return place_error(&inner, "want a label of nodes with a domain, such as "
                                       "topology.example.com/zone");
        if (check_key(&inner, ret->items[i]))
            return -1;
    }
    return 0;
}

const struct config_choice *config_choice_of(struct config_choices choices, struct str key)
{
    for (size_t i = 0; i < choices.n; i++)
        if (str_eq(choices.items[i].key, key))
            return &choices.items[i];
    return NULL;
}

/* What a star stands for: no character that separates the parts of a cloud's name, nor a part of a
 * path that names another directory ("..") or none ("."). */
static bool is_rest(struct str rest)
{
    if (!rest.n || !isalnum((unsigned char)rest.p[0]))
        return false;
    for (size_t i = 0; i < rest.n; i++)
        if (!isalnum((unsigned char)rest.p[i]) && !str_contains(STR("-._"), str_sub(rest, i, 1)))
            return false;
    return true;
}

bool config_choice_allows(const struct config_choice *choice, struct str value)
{
    for (size_t i = 0; i < choice->values.n; i++) {
        struct str one = choice->values.items[i];

        if (!str_has_suffix(one, STR("*"))) {
            if (str_eq(one, value))
                return true;
            continue;
        }
        one.n--;
        if (str_has_prefix(value, one) && is_rest(str_from(value, one.n)))
            return true;
    }
    return false;
}
