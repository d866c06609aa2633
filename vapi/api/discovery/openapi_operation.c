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
    X(BOOKMARKS, "allowWatchBookmarks", IN_QUERY, "boolean")                                       \
    X(COMMAND, "command", IN_QUERY, "string")                                                      \
    X(CONTAINER, "container", IN_QUERY, "string")                                                  \
    X(CONTINUE, "continue", IN_QUERY, "string")                                                    \
    X(DRY_RUN, "dryRun", IN_QUERY, "string")                                                       \
    X(MANAGER, "fieldManager", IN_QUERY, "string")                                                 \
    X(FIELDS, "fieldSelector", IN_QUERY, "string")                                                 \
    X(VALIDATION, "fieldValidation", IN_QUERY, "string")                                           \
    X(FOLLOW, "follow", IN_QUERY, "boolean")                                                       \
    X(FORCE, "force", IN_QUERY, "boolean")                                                         \
    X(GRACE, "gracePeriodSeconds", IN_QUERY, "integer")                                            \
    X(BREAKING, "ignoreStoreReadErrorWithClusterBreakingPotential", IN_QUERY, "boolean")           \
    X(INSECURE, "insecureSkipTLSVerifyBackend", IN_QUERY, "boolean")                               \
    X(LABELS, "labelSelector", IN_QUERY, "string")                                                 \
    X(LIMIT, "limit", IN_QUERY, "integer")                                                         \
    X(LIMIT_BYTES, "limitBytes", IN_QUERY, "integer")                                              \
    X(NAME, "name", IN_PATH, "string")                                                             \
    X(NAMESPACE, "namespace", IN_PATH, "string")                                                   \
    X(ORPHAN, "orphanDependents", IN_QUERY, "boolean")                                             \
    X(PATH, "path", IN_PATH, "string")                                                             \
    X(PATH_QUERY, "path", IN_QUERY, "string")                                                      \
    X(PORTS, "ports", IN_QUERY, "integer")                                                         \
    X(PRETTY, "pretty", IN_QUERY, "string")                                                        \
    X(PREVIOUS, "previous", IN_QUERY, "boolean")                                                   \
    X(PROPAGATION, "propagationPolicy", IN_QUERY, "string")                                        \
    X(VERSION, "resourceVersion", IN_QUERY, "string")                                              \
    X(MATCH, "resourceVersionMatch", IN_QUERY, "string")                                           \
    X(INITIAL, "sendInitialEvents", IN_QUERY, "boolean")                                           \
    X(SHARD, "shardSelector", IN_QUERY, "string")                                                  \
    X(SINCE, "sinceSeconds", IN_QUERY, "integer")                                                  \
    X(STDERR, "stderr", IN_QUERY, "boolean")                                                       \
    X(STDIN, "stdin", IN_QUERY, "boolean")                                                         \
    X(STDOUT, "stdout", IN_QUERY, "boolean")                                                       \
    X(STREAM, "stream", IN_QUERY, "string")                                                        \
    X(TAIL, "tailLines", IN_QUERY, "integer")                                                      \
    X(TIMEOUT, "timeoutSeconds", IN_QUERY, "integer")                                              \
    X(TIMESTAMPS, "timestamps", IN_QUERY, "boolean")                                               \
    X(TTY, "tty", IN_QUERY, "boolean")                                                             \
    X(WATCH, "watch", IN_QUERY, "boolean")

#define ROW(id, name, in, type) {name, in, type},
#define BIT(id, name, in, type) BIT_##id,
#define ONE(id)                 ((openapi_params)1 << BIT_##id)

enum parameter_in { IN_PATH, IN_QUERY };
static const char *const IN_NAMES[] = {[IN_PATH] = "path", [IN_QUERY] = "query"};
static const struct parameter {
    const char *name;
    enum parameter_in in;
    const char *type;
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

static const char *shared_name(struct arena *a, const struct parameter *p)
{
    return p->in == IN_PATH ? arena_printf(a, "%s-path", p->name).p : p->name;
}

static cJSON *parameter_v3(struct arena *a, const struct parameter *p)
{
    cJSON *schema = json_object(a, JSON("type", p->type), JSON_BOOL("uniqueItems", true));

    return json_object(a, JSON("name", p->name), JSON("in", IN_NAMES[p->in]),
                       JSON("required", p->in == IN_PATH ? json_new_bool(a, true) : NULL),
                       JSON("schema", schema));
}

cJSON *openapi_parameters(struct arena *a)
{
    cJSON *out = json_new_object(a);

    for (size_t i = 0; i < N_PARAMETERS; i++)
        json_set(
            a, out, shared_name(a, &TABLE[i]),
            json_object(a, JSON_BOOL("uniqueItems", true), JSON("type", TABLE[i].type),
                        JSON("name", TABLE[i].name), JSON("in", IN_NAMES[TABLE[i].in]),
                        JSON("required", TABLE[i].in == IN_PATH ? json_new_bool(a, true) : NULL)));
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
