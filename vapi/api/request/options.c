/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Query parameters and DeleteOptions, with the conversions and the refusals of upstream's parameter
 * codec. The handlers of LIST and WATCH check which combinations are valid. It must never accept a
 * value that upstream refuses: clients rely on the error for a misspelt dryRun. Source:
 * apimachinery pkg/runtime/conversion.go, pkg/apis/meta/v1/validation. */
#include "request.h"

#include <string.h>

#include <sublet/encode.h>
#include <sublet/net.h>

#define MAX_FIELD_MANAGER 128

/* ---- converters, one per type of parameter ---- */

/* *ret_set is unchanged when the parameter is absent. */
static void take_bool(const struct query *q, const char *name, bool *ret, bool *ret_set)
{
    struct str value = query_get(q, name);

    if (!value.p)
        return;
    *ret = query_truth(value);
    if (ret_set)
        *ret_set = true;
}

static int take_int(const struct query *q, const char *name, int64_t *ret, struct err *err)
{
    struct str value = query_get(q, name);

    if (!value.p)
        return 0;
    if (value.n && value.p[0] == '+')
        value = str_from(value, 1);

    if (str_to_i64(value, ret))
        return 0;

    struct str digits = value.n && value.p[0] == '-' ? str_from(value, 1) : value;
    bool number = digits.n > 0;

    for (size_t i = 0; i < digits.n; i++)
        number = number && digits.p[i] >= '0' && digits.p[i] <= '9';
    return err_set(err, &ERR_BAD_REQUEST, "strconv.ParseInt: parsing \"%.*s\": %s", STR_F(value),
                   number ? "value out of range" : "invalid syntax");
}

static struct str take_text(struct arena *a, const struct query *q, const char *name)
{
    struct str value = query_get(q, name);

    return value.n ? arena_str(a, value) : STR_NULL;
}

/* ---- options of writes ---- */

static const char *const OPTION_KINDS[CALL_N_VERBS] = {
    [CALL_CREATE] = "CreateOptions",
    [CALL_UPDATE] = "UpdateOptions",
    [CALL_PATCH] = "PatchOptions",
    [CALL_DELETE] = "DeleteOptions",
    [CALL_DELETECOLLECTION] = "DeleteOptions",
};

static void check_dry_run(struct call *c, const cJSON *values, struct field_errors *e)
{
    bool bad = false;

    json_each(v, values) bad |= !str_eqc(json_str(v), "All");
    if (bad) {
        /* Upstream prints the whole list as the invalid value, which is no string: hence by
         * hand. */
        struct err_cause *cause = ARENA_NEW(c->arena, struct err_cause);

        cause->type = STR("FieldValueNotSupported");
        cause->field = STR("dryRun");
        cause->message =
            arena_printf(c->arena, "Unsupported value: %.*s: supported values: \"All\"",
                         STR_F(json_text(c->arena, values)));
        *e->last = cause;
        e->last = &cause->next;
        e->n++;
    }
    c->options.dry_run = json_count(values) != 0;
}

static void take_dry_run(struct call *c, const struct query *q, struct field_errors *e)
{
    cJSON *values = json_new_array(c->arena);

    for (size_t i = 0; i < q->n; i++)
        if (str_eqc(q->items[i].name, "dryRun"))
            json_append(values, json_new_string(c->arena, q->items[i].value));
    check_dry_run(c, values, e);
}

static void take_validation(struct call *c, const struct query *q, struct field_errors *e)
{
    static const char *const supported[] = {"", "Ignore", "Strict", "Warn", NULL};
    struct str value = query_get(q, "fieldValidation");

    if (!value.n || str_eqc(value, "Warn"))
        c->options.validation = VALIDATION_WARN;
    else if (str_eqc(value, "Ignore"))
        c->options.validation = VALIDATION_IGNORE;
    else if (str_eqc(value, "Strict"))
        c->options.validation = VALIDATION_STRICT;
    else
        field_not_supported(e, FIELD(NULL, "fieldValidation"), value, supported);
}

static int finish_write_options(struct call *c, struct field_errors *e, struct err *err)
{
    return field_errors_to_err(e, STR("meta.k8s.io"), str_c(OPTION_KINDS[c->verb]), STR(""), err);
}

static int parse_write(struct call *c, const struct query *q, struct err *err)
{
    struct field_errors e;
    struct str value;

    field_errors_init(&e, c->arena);
    if (c->verb == CALL_PATCH) {
        bool set = false;

        take_bool(q, "force", &c->options.force, &set);
        if (c->patch == PATCH_TYPE_APPLY) {
            if (!query_get(q, "fieldManager").n)
                field_required(&e, FIELD(NULL, "fieldManager"), "is required for apply patch");
        } else if (set) {
            field_forbidden(&e, FIELD(NULL, "force"), "may not be specified for non-apply patch");
        }
    }

    value = take_text(c->arena, q, "fieldManager");
    c->options.field_manager = value;
    if (value.n > MAX_FIELD_MANAGER)
        field_too_long(&e, FIELD(NULL, "fieldManager"), MAX_FIELD_MANAGER);
    for (size_t i = 0; i < value.n; i++) {
        unsigned char b = (unsigned char)value.p[i];

        if (b < 0x20 || b == 0x7f)
            field_invalid_str(
                &e, FIELD(NULL, "fieldManager"), value,
                arena_printf(c->arena, "invalid character U+%04X (at position %zu)", b, i).p);
    }

    take_dry_run(c, q, &e);
    take_validation(c, q, &e);
    return finish_write_options(c, &e, err);
}

/* ---- options of deletions ---- */

static void check_propagation(struct call *c, bool orphan_set, bool orphan, struct field_errors *e)
{
    static const char *const supported[] = {"Foreground", "Background", "Orphan", "nil", NULL};
    struct str value = c->options.propagation;

    if (orphan_set && value.p)
        field_invalid_str(e, FIELD(NULL, "propagationPolicy"), value,
                          "orphanDependents and deletionPropagation cannot be both set");
    if (value.p && !str_eqc(value, "Foreground") && !str_eqc(value, "Background") &&
        !str_eqc(value, "Orphan"))
        field_not_supported(e, FIELD(NULL, "propagationPolicy"), value, supported);
    if (orphan_set && !value.p)
        c->options.propagation = orphan ? STR("Orphan") : STR("Background");
}

/* Negative values mean "immediately, but gracefully". */
static void set_grace(struct call *c, int64_t seconds)
{
    c->options.grace_seconds = seconds < 0 ? 1 : seconds;
}

static int parse_removal(struct call *c, const struct query *q, struct err *err)
{
    struct field_errors e;
    bool orphan = false, orphan_set = false;
    int64_t grace = 0;

    field_errors_init(&e, c->arena);
    if (take_int(q, "gracePeriodSeconds", &grace, err))
        return -1;
    if (query_get(q, "gracePeriodSeconds").n)
        set_grace(c, grace);
    take_bool(q, "orphanDependents", &orphan, &orphan_set);
    c->options.propagation = query_get(q, "propagationPolicy");
    if (c->options.propagation.p)
        c->options.propagation = arena_str(c->arena, c->options.propagation);
    check_propagation(c, orphan_set, orphan, &e);
    take_dry_run(c, q, &e);
    return finish_write_options(c, &e, err);
}

/* Members of DeleteOptions: their types, and Go's names of these. */
static const struct delete_member {
    const char *path, *owner, *type;
    bool (*is)(const cJSON *node);
} DELETE_MEMBERS[] = {
    {"dryRun", "DeleteOptions", "[]string", json_is_array},
    {"orphanDependents", "DeleteOptions", "bool", json_is_bool},
    {"propagationPolicy", "DeleteOptions", "v1.DeletionPropagation", json_is_string},
    {"preconditions", "DeleteOptions", "v1.Preconditions", json_is_object},
    {"preconditions.uid", "Preconditions", "types.UID", json_is_string},
    {"preconditions.resourceVersion", "Preconditions", "string", json_is_string},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "DeleteOptions", "bool", json_is_bool},
};

static int check_members(const cJSON *body, struct err *err)
{
    for (size_t i = 0; i < COUNT(DELETE_MEMBERS); i++) {
        const struct delete_member *m = &DELETE_MEMBERS[i];
        const cJSON *node = json_path(body, m->path);

        if (node && !json_is_null(node) && !m->is(node))
            return err_set(err, &ERR_BAD_REQUEST,
                           "json: cannot unmarshal %s into Go struct field %s.%s of type %s",
                           json_type_name(node), m->owner, m->path, m->type);
    }
    return 0;
}

static int body_grace(struct call *c, const cJSON *body, struct err *err)
{
    const cJSON *node = json_get(body, "gracePeriodSeconds");
    int64_t grace;

    if (!node || json_is_null(node))
        return 0;
    if (!json_i64(node, &grace))
        return err_set(err, &ERR_BAD_REQUEST,
                       "json: cannot unmarshal %s%s into Go struct field "
                       "DeleteOptions.gracePeriodSeconds of type int64",
                       json_type_name(node),
                       json_is_number(node)
                           ? arena_printf(c->arena, " %s", json_text(c->arena, node).p).p
                           : "");
    set_grace(c, grace);
    return 0;
}

int options_from_body(struct call *c, const cJSON *body, struct err *err)
{
    const cJSON *orphan = json_get(body, "orphanDependents");
    const cJSON *propagation = json_get(body, "propagationPolicy");
    struct str rv = json_str_at(body, "preconditions.resourceVersion");
    struct field_errors e;
    uint64_t revision;

    field_errors_init(&e, c->arena);
    c->options.grace_seconds = -1;
    c->options.dry_run = false;
    if (body_grace(c, body, err) || check_members(body, err))
        return -1;
    c->options.propagation = json_is_string(propagation) ? json_str(propagation) : STR_NULL;
    check_propagation(c, json_is_bool(orphan), json_true(orphan), &e);
    check_dry_run(c, json_get(body, "dryRun"), &e);
    c->options.uid = arena_str(c->arena, json_str_at(body, "preconditions.uid"));
    /* A string that is no revision cannot match. */
    if (rv.n)
        c->options.delete_rv =
            str_to_u64(rv, &revision) && revision <= INT64_MAX && revision ? (int64_t)revision : -1;
    c->options.delete_rv_text = arena_str(c->arena, rv);
    return field_errors_to_err(&e, STR("meta.k8s.io"), STR("DeleteOptions"), STR(""), err);
}

/* ---- options of reads ---- */

static int take_revision(struct call *c, const struct query *q, struct err *err)
{
    struct str value = query_get(q, "resourceVersion");
    uint64_t revision;

    if (!value.n)
        return 0;
    if (!str_to_u64(value, &revision) || revision > INT64_MAX) {
        /* GET and WATCH answer 500 for an invalid revision, as upstream does. */
        bool list = c->verb == CALL_LIST;
        size_t digits = 0;

        while (digits < value.n && value.p[digits] >= '0' && value.p[digits] <= '9')
            digits++;
        return err_set(err, list ? &ERR_BAD_REQUEST : &ERR_UNKNOWN,
                       "%sresourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: parsing "
                       "\"%.*s\": %s",
                       list ? "invalid resource version: " : "", STR_F(value), STR_F(value),
                       digits == value.n ? "value out of range" : "invalid syntax");
    }
    c->options.rv = (int64_t)revision;
    c->options.rv_set = true;
    return 0;
}

static int parse_include(struct call *c, const struct query *q, struct err *err)
{
    struct str value = query_get(q, "includeObject");

    if (c->output != OUTPUT_TABLE)
        return 0;
    if (!value.n || str_eqc(value, "Metadata"))
        c->include = INCLUDE_METADATA;
    else if (str_eqc(value, "None"))
        c->include = INCLUDE_NONE;
    else if (str_eqc(value, "Object"))
        c->include = INCLUDE_OBJECT;
    else
        return err_set(err, &ERR_BAD_REQUEST,
                       "Unable to convert to Table as requested: includeObject: Invalid value: "
                       "\"%.*s\": must be 'Metadata', 'Object', 'None', or empty",
                       STR_F(value));
    return 0;
}

int options_selectors(struct call *c, struct err *err)
{
    struct call_options *o = &c->options;

    if (o->label_selector.n && selector_parse(c->arena, o->label_selector, &o->labels, err))
        return -1;
    if (o->field_selector.n && selector_parse_fields(c->arena, o->field_selector, &o->fields, err))
        return -1;
    return 0;
}

static int parse_list(struct call *c, const struct query *q, struct err *err)
{
    struct call_options *o = &c->options;

    o->label_selector = take_text(c->arena, q, "labelSelector");
    o->field_selector = take_text(c->arena, q, "fieldSelector");
    o->rv_match = take_text(c->arena, q, "resourceVersionMatch");
    o->cont = take_text(c->arena, q, "continue");
    if (take_int(q, "limit", &o->limit, err) || take_int(q, "timeoutSeconds", &o->timeout_s, err) ||
        take_revision(c, q, err))
        return -1;
    if (o->limit < 0)
        o->limit = 0;
    take_bool(q, "watch", &o->watch, NULL);
    take_bool(q, "allowWatchBookmarks", &o->bookmarks, NULL);
    take_bool(q, "sendInitialEvents", &o->send_initial, &o->send_initial_set);
    return options_selectors(c, err);
}

int options_parse(struct call *c, const struct query *q, struct err *err)
{
    if (parse_include(c, q, err))
        return -1;
    switch (c->verb) {
    case CALL_GET:
        return take_revision(c, q, err);
    case CALL_LIST:
    case CALL_WATCH:
        return parse_list(c, q, err);
    case CALL_DELETECOLLECTION:
        return parse_list(c, q, err) || parse_removal(c, q, err) ? -1 : 0;
    case CALL_DELETE:
        return parse_removal(c, q, err);
    default:
        return parse_write(c, q, err);
    }
}
