/* SPDX-License-Identifier: Apache-2.0 */
/* Readers for nested configuration. Why: every error must name its place, and no key may be read
 * without being in a table. Must never keep a value it did not check. */

#include <stdarg.h>
#include <string.h>

#include <sublet/clock.h>

#include "impl.h"

enum { MOST_WORDS = 64 };

struct place place_member(const struct place *at, const char *key)
{
    struct place ret = *at;

    ret.path = arena_printf(at->arena, "%.*s.%s", STR_F(at->path), key);
    return ret;
}

struct place place_item(const struct place *at, size_t index)
{
    struct place ret = *at;

    ret.path = arena_printf(at->arena, "%.*s[%zu]", STR_F(at->path), index);
    return ret;
}

int place_error(const struct place *at, const char *format, ...)
{
    struct str message;
    va_list args;

    va_start(args, format);
    message = arena_vprintf(at->arena, format, args);
    va_end(args);
    return err_set(at->err, &ERR_BAD_REQUEST, "%.*s: %.*s", STR_F(at->path), STR_F(message));
}

static struct str keys_text(const struct place *at, const struct place_key *keys)
{
    struct str ret = STR("");

    for (; keys->key; keys++)
        ret = arena_printf(at->arena, "%.*s%s%s", STR_F(ret), ret.n ? ", " : "", keys->key);
    return ret;
}

int place_object(const struct place *at, const cJSON *value, const struct place_key *keys,
                 void *into)
{
    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    json_each(member, value)
    {
        const struct place_key *key = keys;
        struct place inner = place_member(at, member->string);

        while (key->key && strcmp(key->key, member->string) != 0)
            key++;
        if (!key->key)
            return place_error(&inner, "unknown key: known here are %.*s",
                               STR_F(keys_text(at, keys)));
        if (!json_is_null(member) && key->read(&inner, member, into))
            return -1;
    }
    return 0;
}

int place_string(const struct place *at, const cJSON *value, struct str *ret)
{
    if (!json_is_string(value))
        return config_wrong_type(at->err, at->path, "a string", value);
    *ret = arena_str(at->arena, json_str(value));
    return 0;
}

int place_bool(const struct place *at, const cJSON *value, bool *ret)
{
    if (!json_is_bool(value))
        return config_wrong_type(at->err, at->path, "true or false", value);
    *ret = json_true(value);
    return 0;
}

int place_word(const struct place *at, const cJSON *value, const char *words, int *ret)
{
    int index;

    if (!json_is_string(value))
        return config_wrong_type(at->err, at->path, "a string", value);
    index = str_word_index(words, json_str(value));
    if (index < 0)
        return config_wrong_word(at->err, at->path, json_str(value), words);
    *ret = index;
    return 0;
}

int place_count(const struct place *at, const cJSON *value, int64_t *ret)
{
    int64_t n;

    if (!json_is_number(value))
        return config_wrong_type(at->err, at->path, "a whole number", value);
    if (!json_i64(value, &n) || n < 0)
        return place_error(at, "want a whole number of at least 0");
    *ret = n;
    return 0;
}

int place_seconds(const struct place *at, const cJSON *value, int64_t *ret)
{
    const int64_t second = 1000000000;
    int64_t ns;

    if (!json_is_string(value))
        return config_wrong_type(at->err, at->path, "a duration such as 72h", value);
    if (!duration_parse(json_str(value), &ns) || ns < 0 || (ns > 0 && ns < second))
        return place_error(at, "want a duration of at least 1s, such as 72h");
    *ret = ns / second;
    return 0;
}

int place_rational(const struct place *at, const cJSON *value, struct rational *ret)
{
    struct str text = json_is_number(value) ? json_text(at->arena, value) : json_str(value);
    struct rational r;

    if (!json_is_number(value) && !json_is_string(value))
        return config_wrong_type(at->err, at->path, "an amount such as \"4\" or \"1/7\"", value);
    if (!rational_parse(text, &r) || rational_cmp(r, RATIONAL_ZERO) < 0)
        return place_error(at, "want an amount of at least 0 such as \"4\", \"0.25\" or \"1/7\"");
    *ret = r;
    return 0;
}

int place_list(const struct place *at, const cJSON *value, struct str_list *ret)
{
    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    return config_read_list(at->arena, at->path, value, ret, at->err);
}

int place_words(const struct place *at, const cJSON *value, struct str_list *ret)
{
    if (place_list(at, value, ret))
        return -1;
    return ret->n > MOST_WORDS ? place_error(at, "at most %d", MOST_WORDS) : 0;
}

int place_map(const struct place *at, const cJSON *value, const cJSON **ret)
{
    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);

        if (!json_is_string(member))
            return config_wrong_type(at->err, inner.path, "a string", member);
    }
    *ret = json_copy(at->arena, value);
    return 0;
}
