/* SPDX-License-Identifier: Apache-2.0 */
/* The option table at work: string to value, value to member, and --help. Why: file, variables,
 * flags, help and schema must never disagree, so all of them are this one table. */

#include <stddef.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/quantity.h>

#include "impl.h"

#define OPTION(type, member, path, flag, env, otherwise, values, help)                             \
    {path, flag, env, OPTION_##type, otherwise, values, help, offsetof(struct config, member)},
const struct option CONFIG_OPTIONS[] = {
#include <sublet/tbl/options.h>
};
#undef OPTION
const size_t CONFIG_N_OPTIONS = COUNT(CONFIG_OPTIONS);

int config_wrong_type(struct err *err, struct str where, const char *want, const cJSON *got)
{
    return err_set(err, &ERR_BAD_REQUEST, "%.*s: want %s, got %s", STR_F(where), want,
                   json_type_name(got));
}

int config_wrong_word(struct err *err, struct str where, struct str got, const char *words)
{
    return err_set(err, &ERR_BAD_REQUEST, "%.*s: unknown value \"%.*s\": want one of %s",
                   STR_F(where), STR_F(got), words);
}

/* ---- string to node ---- */

static cJSON *list_node(struct arena *a, struct str text)
{
    cJSON *list = json_new_array(a);

    while (text.n) {
        struct str one = str_trim(str_cut(&text, ','));

        if (one.n)
            json_append(list, json_new_string(a, one));
    }
    return list;
}

int option_node(struct arena *a, const struct option *option, struct str where, struct str text,
                cJSON **ret, struct err *err)
{
    int64_t number;

    switch (option->type) {
    case OPTION_LIST:
        *ret = list_node(a, text);
        return 0;
    case OPTION_INT:
        if (!str_to_i64(text, &number))
            return err_set(err, &ERR_BAD_REQUEST, "%.*s: want a whole number, got \"%.*s\"",
                           STR_F(where), STR_F(text));
        *ret = json_new_i64(a, number);
        return 0;
    case OPTION_BOOL:
        if (!option->values[0] && (str_eqc(text, "true") || str_eqc(text, "false"))) {
            *ret = json_new_bool(a, str_eqc(text, "true"));
            return 0;
        }
        break;
    default:
        break;
    }
    if (!str_is_utf8(text))
        return err_set(err, &ERR_BAD_REQUEST, "%.*s: not UTF-8", STR_F(where));
    *ret = json_new_string(a, text);
    return 0;
}

/* ---- node to member ---- */

int config_read_list(struct arena *a, struct str where, const cJSON *node, struct str_list *ret,
                     struct err *err)
{
    struct str *items;
    size_t n = 0;

    if (!json_is_array(node))
        return config_wrong_type(err, where, "a list of strings", node);
    items = arena_alloc(a, (json_count(node) + 1) * sizeof *items);
    json_each(item, node)
    {
        if (!json_is_string(item))
            return err_set(err, &ERR_BAD_REQUEST, "%.*s[%zu]: want a string, got %s", STR_F(where),
                           n, json_type_name(item));
        items[n++] = arena_str(a, json_str(item));
    }
    *ret = (struct str_list){items, n};
    return 0;
}

/* The number behind one bound ("10ms", "1Gi", "5") or value of this type. */
static bool number_of(enum option_type type, struct str text, int64_t *ret)
{
    struct quantity q;
    int64_t ns;

    if (type == OPTION_DURATION) {
        if (!duration_parse(text, &ns))
            return false;
        *ret = ns / 1000000;
        return true;
    }
    if (type == OPTION_QUANTITY) {
        if (!quantity_parse(text, &q) || !quantity_is_integer(q))
            return false;
        *ret = quantity_units(q);
        return true;
    }
    return str_to_i64(text, ret);
}

static bool in_range(const struct option *option, int64_t value)
{
    struct str text = str_c(option->values), low;
    int64_t bound;
    size_t dots;

    for (dots = 0; dots + 1 < text.n && !(text.p[dots] == '.' && text.p[dots + 1] == '.'); dots++)
        ;
    low = str_sub(text, 0, dots);
    if (number_of(option->type, low, &bound) && value < bound)
        return false;
    return !number_of(option->type, str_from(text, dots + 2), &bound) || value <= bound;
}

static int store_number(const struct option *option, struct str where, const cJSON *node,
                        int64_t *ret, struct err *err)
{
    int64_t value;
    bool good = option->type == OPTION_INT || json_is_number(node)
                    ? json_i64(node, &value)
                    : number_of(option->type, json_str(node), &value);

    if (json_is_number(node) && option->type == OPTION_DURATION)
        return config_wrong_type(err, where, "a duration such as 2s", node);
    if (!json_is_number(node) && (option->type == OPTION_INT || !json_is_string(node)))
        return config_wrong_type(err, where, "a whole number", node);
    if (!good)
        return err_set(err, &ERR_BAD_REQUEST, "%.*s: want %s", STR_F(where),
                       option->type == OPTION_DURATION   ? "a duration such as 2s"
                       : option->type == OPTION_QUANTITY ? "a whole quantity such as 1Gi"
                                                         : "a whole number");
    if (option->values[0] && !in_range(option, value))
        return err_set(err, &ERR_BAD_REQUEST, "%.*s: must be within %s", STR_F(where),
                       option->values);
    *ret = value;
    return 0;
}

/* `off` without quotes is a boolean in YAML. */
static struct str word_of(const cJSON *node)
{
    if (json_is_bool(node))
        return json_true(node) ? STR("on") : STR("off");
    return json_str(node);
}

static int store_word(const struct option *option, struct str where, const cJSON *node, int *ret,
                      struct err *err)
{
    struct str word = word_of(node);
    int index;

    if (!word.n && !json_is_string(node))
        return config_wrong_type(err, where, "a string", node);
    index = str_word_index(option->values, word);
    if (index < 0)
        return config_wrong_word(err, where, word, option->values);
    *ret = index;
    return 0;
}

static int store_bool(const struct option *option, struct str where, const cJSON *node, bool *ret,
                      struct err *err)
{
    int index;

    if (!option->values[0]) {
        if (!json_is_bool(node))
            return config_wrong_type(err, where, "true or false", node);
        *ret = json_true(node);
        return 0;
    }
    if (store_word(option, where, node, &index, err))
        return -1;
    *ret = index == 1;
    return 0;
}

static int store_string(struct arena *a, const struct option *option, struct str where,
                        const cJSON *node, struct str *ret, struct err *err)
{
    if (!json_is_string(node))
        return config_wrong_type(err, where, "a string", node);
    if (option->values[0] && str_word_index(option->values, json_str(node)) < 0)
        return config_wrong_word(err, where, json_str(node), option->values);
    *ret = arena_str(a, json_str(node));
    return 0;
}

int option_store(struct arena *a, const struct option *option, struct str where, const cJSON *node,
                 struct config *config, struct err *err)
{
    void *member = (char *)config + option->offset;

    if (!node || json_is_null(node))
        return 0;
    switch (option->type) {
    case OPTION_STRING:
        return store_string(a, option, where, node, member, err);
    case OPTION_ENUM:
        return store_word(option, where, node, member, err);
    case OPTION_BOOL:
        return store_bool(option, where, node, member, err);
    case OPTION_LIST:
        return config_read_list(a, where, node, member, err);
    case OPTION_INT:
    case OPTION_DURATION:
    case OPTION_QUANTITY:
        return store_number(option, where, node, member, err);
    }
    return err_set(err, &ERR_INTERNAL, "option %s has no type", option->path);
}

/* ---- help ---- */

static const char *metavar(const struct option *option)
{
    static const char *const names[] = {
        [OPTION_STRING] = "TEXT",      [OPTION_INT] = "NUMBER",        [OPTION_BOOL] = "true|false",
        [OPTION_ENUM] = "WORD",        [OPTION_DURATION] = "DURATION", [OPTION_LIST] = "A,B,...",
        [OPTION_QUANTITY] = "QUANTITY"};
    bool words =
        option->type == OPTION_ENUM || option->type == OPTION_BOOL || option->type == OPTION_STRING;

    return words && option->values[0] ? option->values : names[option->type];
}

static void help_line(struct buf *b, const struct option *option)
{
    if (option->flag)
        buf_printf(b, "  %s %s\n", option->flag, metavar(option));
    else
        buf_printf(b, "  %s=%s\n", option->env, metavar(option));
    buf_printf(b, "        %s", option->help);
    if (option->otherwise[0])
        buf_printf(b, " (default %s)", option->otherwise);
    buf_printf(b, "\n        file: %s", option->path);
    if (option->flag)
        buf_printf(b, "  variable: %s", option->env);
    buf_char(b, '\n');
}

void config_help(struct buf *b, const char *command)
{
    buf_printf(b, "usage: sublet %s [--config FILE] [flags]\n\nflags:\n", command);
    buf_addc(
        b,
        "  --config FILE\n        YAML document with the options below, `pools` and `bindings`\n");
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        if (CONFIG_OPTIONS[i].flag)
            help_line(b, &CONFIG_OPTIONS[i]);
    }
    buf_addc(b, "\nset in the file or by variable:\n");
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        if (!CONFIG_OPTIONS[i].flag)
            help_line(b, &CONFIG_OPTIONS[i]);
    }
}
