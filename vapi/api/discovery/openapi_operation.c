/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Paths and operations in v2 and v3. They differ in the position of a body (v2: among the
 * parameters), in media types (v2: of the operation) and in that v2 lists parameters in one place.
 * Must never copy a sentence of upstream's: the id describes an operation. Source: kube-openapi
 * pkg/builder and pkg/builder3. */
#include "openapi.h"

#include <string.h>

#include <sublet/json_build.h>

/* Sorted by name, the order in which they are published. */
#define PARAMETERS(X)                                                                              \
    X(BOOKMARKS, "allowWatchBookmarks", "query", "boolean")                                        \
    X(COMMAND, "command", "query", "string")                                                       \
    X(CONTAINER, "container", "query", "string")                                                   \
    X(CONTINUE, "continue", "query", "string")                                                     \
    X(DRY_RUN, "dryRun", "query", "string")                                                        \
    X(MANAGER, "fieldManager", "query", "string")                                                  \
    X(FIELDS, "fieldSelector", "query", "string")                                                  \
    X(VALIDATION, "fieldValidation", "query", "string")                                            \
    X(FOLLOW, "follow", "query", "boolean")                                                        \
    X(FORCE, "force", "query", "boolean")                                                          \
    X(GRACE, "gracePeriodSeconds", "query", "integer")                                             \
    X(BREAKING, "ignoreStoreReadErrorWithClusterBreakingPotential", "query", "boolean")            \
    X(INSECURE, "insecureSkipTLSVerifyBackend", "query", "boolean")                                \
    X(LABELS, "labelSelector", "query", "string")                                                  \
    X(LIMIT, "limit", "query", "integer")                                                          \
    X(LIMIT_BYTES, "limitBytes", "query", "integer")                                               \
    X(NAME, "name", "path", "string")                                                              \
    X(NAMESPACE, "namespace", "path", "string")                                                    \
    X(ORPHAN, "orphanDependents", "query", "boolean")                                              \
    X(PATH, "path", "path", "string")                                                              \
    X(PATH_QUERY, "path", "query", "string")                                                       \
    X(PORTS, "ports", "query", "integer")                                                          \
    X(PRETTY, "pretty", "query", "string")                                                         \
    X(PREVIOUS, "previous", "query", "boolean")                                                    \
    X(PROPAGATION, "propagationPolicy", "query", "string")                                         \
    X(VERSION, "resourceVersion", "query", "string")                                               \
    X(MATCH, "resourceVersionMatch", "query", "string")                                            \
    X(INITIAL, "sendInitialEvents", "query", "boolean")                                            \
    X(SHARD, "shardSelector", "query", "string")                                                   \
    X(SINCE, "sinceSeconds", "query", "integer")                                                   \
    X(STDERR, "stderr", "query", "boolean")                                                        \
    X(STDIN, "stdin", "query", "boolean")                                                          \
    X(STDOUT, "stdout", "query", "boolean")                                                        \
    X(STREAM, "stream", "query", "string")                                                         \
    X(TAIL, "tailLines", "query", "integer")                                                       \
    X(TIMEOUT, "timeoutSeconds", "query", "integer")                                               \
    X(TIMESTAMPS, "timestamps", "query", "boolean")                                                \
    X(TTY, "tty", "query", "boolean")                                                              \
    X(WATCH, "watch", "query", "boolean")

#define ROW(id, name, in, type) {name, in, type},
#define BIT(id, name, in, type) BIT_##id,
#define ONE(id)                 ((openapi_params)1 << BIT_##id)

static const struct parameter {
    const char *name, *in, *type;
} TABLE[] = {PARAMETERS(ROW)};
enum { PARAMETERS(BIT) N_PARAMETERS };
_Static_assert(N_PARAMETERS <= 64, "a set of parameters is one word");

#define SELECTION                                                                                  \
    (ONE(CONTINUE) | ONE(FIELDS) | ONE(LABELS) | ONE(LIMIT) | ONE(VERSION) | ONE(MATCH) |          \
     ONE(INITIAL) | ONE(SHARD) | ONE(TIMEOUT))
#define DELETION (ONE(DRY_RUN) | ONE(GRACE) | ONE(BREAKING) | ONE(ORPHAN) | ONE(PROPAGATION))
#define STREAMS  (ONE(CONTAINER) | ONE(STDERR) | ONE(STDIN) | ONE(STDOUT) | ONE(TTY))

const openapi_params PARAMS_GET = ONE(VERSION);
const openapi_params PARAMS_LIST = SELECTION | ONE(BOOKMARKS) | ONE(WATCH);
const openapi_params PARAMS_CREATE = ONE(DRY_RUN) | ONE(MANAGER) | ONE(VALIDATION);
const openapi_params PARAMS_PATCH = ONE(DRY_RUN) | ONE(MANAGER) | ONE(VALIDATION) | ONE(FORCE);
const openapi_params PARAMS_DELETE = DELETION;
const openapi_params PARAMS_DELETE_ALL = DELETION | SELECTION;
const openapi_params PARAM_PRETTY = ONE(PRETTY);
const openapi_params PARAM_NAME = ONE(NAME);
const openapi_params PARAM_NAMESPACE = ONE(NAMESPACE);
const openapi_params PARAM_PATH = ONE(PATH);
const openapi_params PARAMS_LOG = ONE(CONTAINER) | ONE(FOLLOW) | ONE(INSECURE) | ONE(LIMIT_BYTES) |
                                  ONE(PREVIOUS) | ONE(SINCE) | ONE(STREAM) | ONE(TAIL) |
                                  ONE(TIMESTAMPS);
const openapi_params PARAMS_ATTACH = STREAMS;
const openapi_params PARAMS_EXEC = STREAMS | ONE(COMMAND);
const openapi_params PARAMS_FORWARD = ONE(PORTS);
const openapi_params PARAMS_PROXY = ONE(PATH_QUERY);

/* ---- parameters ---- */

static bool in_path(const struct parameter *p)
{
    return p->in[0] == 'p';
}

static const char *shared_name(struct arena *a, const struct parameter *p)
{
    return in_path(p) ? arena_printf(a, "%s-path", p->name).p : p->name;
}

static cJSON *parameter_v2(struct arena *a, const struct parameter *p)
{
    return json_object(a, JSON_BOOL("uniqueItems", true), JSON("type", p->type),
                       JSON("name", p->name), JSON("in", p->in),
                       JSON("required", in_path(p) ? json_new_bool(a, true) : NULL));
}

static cJSON *parameter_v3(struct arena *a, const struct parameter *p)
{
    cJSON *schema = json_object(a, JSON("type", p->type), JSON_BOOL("uniqueItems", true));

    return json_object(a, JSON("name", p->name), JSON("in", p->in),
                       JSON("required", in_path(p) ? json_new_bool(a, true) : NULL),
                       JSON("schema", schema));
}

cJSON *openapi_parameters(struct arena *a)
{
    cJSON *out = json_new_object(a);

    for (size_t i = 0; i < N_PARAMETERS; i++)
        json_set(a, out, shared_name(a, &TABLE[i]), parameter_v2(a, &TABLE[i]));
    return out;
}

static cJSON *parameter_shared(struct arena *a, const struct parameter *p)
{
    cJSON *ref = json_new_object(a);

    json_set_str(a, ref, "$ref", arena_printf(a, "#/parameters/%s", shared_name(a, p)));
    return ref;
}

static void add_parameters(struct document *d, cJSON *list, openapi_params params)
{
    for (size_t i = 0; i < N_PARAMETERS; i++) {
        if (params >> i & 1)
            json_append(list, d->v2 ? parameter_shared(d->arena, &TABLE[i])
                                    : parameter_v3(d->arena, &TABLE[i]));
    }
}

/* ---- operations ---- */

static cJSON *string_list(struct arena *a, const char *const *list)
{
    cJSON *out = json_new_array(a);

    for (; *list; list++)
        json_append(out, json_new_string(a, str_c(*list)));
    return out;
}

static cJSON *type_of(struct document *d, const char *component)
{
    cJSON *out;

    if (component)
        return openapi_ref(d, component);
    out = json_new_object(d->arena);
    json_set_str(d->arena, out, "type", STR("string"));
    return out;
}

static cJSON *content_of(struct document *d, const char *const *types, const char *component)
{
    cJSON *content = json_new_object(d->arena);

    for (; *types; types++)
        json_set(d->arena, json_ensure_object(d->arena, content, *types), "schema",
                 type_of(d, component));
    return content;
}

static void add_body_v3(struct document *d, cJSON *o, const struct openapi_operation *op)
{
    cJSON *body = json_ensure_object(d->arena, o, "requestBody");

    json_set(d->arena, body, "content", content_of(d, op->consumes, op->body));
    if (!op->body_optional)
        json_set_bool(d->arena, body, "required", true);
}

static void add_answer(struct document *d, cJSON *responses, const char *code, const char *text,
                       const struct openapi_operation *op)
{
    cJSON *answer = json_ensure_object(d->arena, responses, code);

    json_set_str(d->arena, answer, "description", str_c(text));
    if (!op)
        return;
    if (d->v2)
        json_set(d->arena, answer, "schema", type_of(d, op->answer));
    else
        json_set(d->arena, answer, "content", content_of(d, op->produces, op->answer));
}

static void add_media_types(struct document *d, cJSON *o, const struct openapi_operation *op)
{
    static const char *const schemes[] = {"https", NULL};

    json_put(d->arena, o,
             JSON("consumes", op->consumes ? string_list(d->arena, op->consumes) : NULL),
             JSON("produces", string_list(d->arena, op->produces)),
             JSON("schemes", string_list(d->arena, schemes)));
}

static cJSON *operation_tree(struct document *d, const struct openapi_operation *op, struct str tag,
                             openapi_params common)
{
    cJSON *o = json_new_object(d->arena), *parameters = json_new_array(d->arena);
    cJSON *responses;

    if (d->v2)
        add_media_types(d, o, op);
    json_append(json_set(d->arena, o, "tags", json_new_array(d->arena)),
                json_new_string(d->arena, tag));
    json_set_str(d->arena, o, "operationId", op->id);
    if (op->body && d->v2) {
        cJSON *required = op->body_optional ? NULL : json_new_bool(d->arena, true);

        json_append(parameters, json_object(d->arena, JSON("name", "body"), JSON("in", "body"),
                                            JSON("required", required),
                                            JSON("schema", openapi_ref(d, op->body))));
    }
    add_parameters(d, parameters, op->params & ~common);
    if (json_count(parameters))
        json_set(d->arena, o, "parameters", parameters);
    if (op->body && !d->v2)
        add_body_v3(d, o, op);

    responses = json_ensure_object(d->arena, o, "responses");
    add_answer(d, responses, "200", "OK", op);
    if (op->answers & ANSWER_CREATED)
        add_answer(d, responses, "201", "Created", op);
    if (op->answers & ANSWER_ACCEPTED)
        add_answer(d, responses, "202", "Accepted", op);
    add_answer(d, responses, "401", "Unauthorized", NULL);

    if (op->action)
        json_set_str(d->arena, o, "x-kubernetes-action", str_c(op->action));
    if (op->kind.n)
        json_set(d->arena, o, "x-kubernetes-group-version-kind",
                 openapi_gvk(d->arena, op->group, op->version, op->kind));
    return o;
}

void openapi_add_path(struct document *d, const struct openapi_path *p)
{
    cJSON *path = json_new_object(d->arena), *parameters = json_new_array(d->arena);
    openapi_params common = ~(openapi_params)0;

    for (size_t i = 0; i < p->n; i++)
        common &= p->operations[i].params;
    for (size_t i = 0; i < p->n; i++)
        json_set(d->arena, path, p->operations[i].method,
                 operation_tree(d, &p->operations[i], p->tag, common));
    add_parameters(d, parameters, common);
    if (json_count(parameters))
        json_set(d->arena, path, "parameters", parameters);
    openapi_document_add_path(d, p->path, path);
}
