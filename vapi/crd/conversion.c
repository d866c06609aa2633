/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent to a conversion webhook, and what its answer may change. Must never take an answer
 * for another review's, nor let a webhook change who an object is. */
#include "conversion.h"
#include "version.h"

#include <sublet/encode.h>
#include <sublet/field.h>
#include <sublet/selector.h>

#define GROUP           "apiextensions.k8s.io/"
#define MAX_ANNOTATIONS (256u * 1024)

/* ---- the definition ---- */

static struct str path_of(struct arena *a, const cJSON *service)
{
    struct str path = json_str(json_get(service, "path"));

    return arena_printf(a, "%s%.*s?timeout=30s", str_has_prefix(path, STR("/")) ? "" : "/",
                        STR_F(path));
}

static const char *review_of(const cJSON *versions)
{
    json_each(version, versions)
    {
        if (str_eqc(json_str(version), "v1"))
            return "v1";
        if (str_eqc(json_str(version), "v1beta1"))
            return "v1beta1";
    }
    return NULL;
}

struct crd_conversion *crd_conversion_new(struct arena *a, const cJSON *crd)
{
    const cJSON *conversion = json_path(crd, "spec.conversion"),
                *webhook = json_get(conversion, "webhook"),
                *client = json_get(webhook, "clientConfig"), *service = json_get(client, "service"),
                *versions = json_path(crd, "spec.versions");
    struct crd_conversion *x;
    struct str ca;

    if (!str_eqc(json_str(json_get(conversion, "strategy")), "Webhook"))
        return NULL;
    x = ARENA_NEW(a, struct crd_conversion);
    x->url = arena_str(a, json_str(json_get(client, "url")));
    x->ns = arena_str(a, json_str(json_get(service, "namespace")));
    x->service = arena_str(a, json_str(json_get(service, "name")));
    x->port = json_i64_at(service, "port", 443);
    x->path = path_of(a, service);
    if (base64_decode(a, json_str(json_get(client, "caBundle")), &ca))
        x->ca = str_trim(ca).n ? ca : STR("");
    x->review = review_of(json_get(webhook, "conversionReviewVersions"));
    x->group = arena_str(a, json_str_at(crd, "spec.group"));
    x->versions = arena_alloc(a, (json_count(versions) + 1) * sizeof(*x->versions));
    json_each(version, versions) x->versions[x->n_versions++] =
        arena_concat(a, 3, (struct str[]){x->group, STR("/"), json_str_at(version, "name")});
    return x;
}

const struct crd_version *crd_stored(const struct crd_version *v)
{
    return v->stored;
}

struct str crd_conversion_url(struct arena *a, const struct crd_conversion *x)
{
    if (!x->service.n)
        return arena_printf(a, "%.*s?timeout=30s", STR_F(x->url));
    return arena_printf(a, "https://%.*s.%.*s.svc:%lld%.*s", STR_F(x->service), STR_F(x->ns),
                        (long long)x->port, STR_F(x->path));
}

bool crd_conversion_has(const struct crd_conversion *x, struct str api_version)
{
    for (size_t i = 0; i < x->n_versions; i++)
        if (str_eq(x->versions[i], api_version))
            return true;
    return false;
}

/* ---- the request ---- */

/* Upstream converts objects before they have a revision. */
static void print_object(struct buf *out, cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata"),
          *revision = json_get(metadata, "resourceVersion");

    if (revision)
        json_detach(metadata, revision);
    json_print(out, object);
    if (revision)
        json_add(metadata, "resourceVersion", revision);
}

void crd_conversion_print(const struct crd_conversion *x, struct str uid, struct str to,
                          cJSON *const *objects, size_t n, struct buf *out)
{
    buf_printf(out,
               "{\"kind\":\"ConversionReview\",\"apiVersion\":\"" GROUP
               "%s\",\"request\":{\"uid\":\"%.*s\",\"desiredAPIVersion\":\"%.*s\",\"objects\":[",
               x->review, STR_F(uid), STR_F(to));
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        print_object(out, objects[i]);
    }
    buf_addc(out, "]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\""
                  ":{}}}}");
}

/* ---- the answer ---- */

struct answer {
    const struct crd_conversion *x;
    struct arena *a;
    struct str uid, to;
    struct err *err;
};

static struct str gvk_of(struct arena *a, const cJSON *object)
{
    return arena_printf(a, "%.*s, Kind=%.*s", STR_F(json_str(json_get(object, "apiVersion"))),
                        STR_F(json_str(json_get(object, "kind"))));
}

int crd_conversion_fail(const cJSON *object, struct str why, struct err *err)
{
    struct str gvk = err->arena ? gvk_of(err->arena, object) : STR("");

    return err_set(err, &ERR_UNKNOWN, "conversion webhook for %.*s failed: %.*s", STR_F(gvk),
                   STR_F(why));
}

static int refuse(const struct answer *q, const cJSON *object, struct str why)
{
    struct str gvk = gvk_of(q->a, object);

    return err_set(q->err, &ERR_UNKNOWN, "conversion webhook for %.*s returned %.*s", STR_F(gvk),
                   STR_F(why));
}

/* As client-go words the answer of a server that is not 200. Source: client-go rest/request.go. */
static struct str why_not_200(struct arena *a, int status, struct str body)
{
    struct str text = str_clip(str_trim(body), 512);

    if (str_has_prefix(text, STR("{"))) /* it shows plain text only */
        text = STR("unknown");
    if (status == 404)
        return STR("the server could not find the requested resource");
    if (status >= 500)
        return arena_printf(a,
                            "an error on the server (%.*s) has prevented the request from "
                            "succeeding",
                            STR_F(go_quote(a, text)));
    return arena_printf(a,
                        "the server responded with the status code %d but did not return more "
                        "information",
                        status);
}

/* What the review is not; empty: nothing. A v1beta1 review needs neither its version nor uid. */
static struct str head_problem(const struct answer *q, const cJSON *review)
{
    struct arena *a = q->a;
    struct str version = json_str(json_get(review, "apiVersion"));
    struct str kind = json_str(json_get(review, "kind"));
    const cJSON *response = json_get(review, "response"), *result = json_get(response, "result");
    struct str got = json_str(json_get(response, "uid")), state, message;
    bool v1 = str_eqc(str_c(q->x->review), "v1");

    if (v1 && (!str_eqc(version, GROUP "v1") || !str_eqc(kind, "ConversionReview")))
        return arena_printf(a,
                            "expected webhook response of " GROUP
                            "v1, Kind=ConversionReview, got %.*s, Kind=%.*s",
                            STR_F(version), STR_F(kind));
    if (!json_is_object(response))
        return STR("no response provided");
    if (v1 && !str_eq(got, q->uid))
        return arena_printf(a, "expected response.uid=%.*s, got %.*s", STR_F(go_quote(a, q->uid)),
                            STR_F(go_quote(a, got)));
    state = json_str(json_get(result, "status"));
    message = json_str(json_get(result, "message"));
    if (str_eqc(state, "Success"))
        return STR_NULL;
    if (message.n)
        return message;
    return arena_printf(a, "response.result.status was '%.*s', not 'Success'", STR_F(state));
}

static int check_identity(const struct answer *q, const cJSON *sent, const cJSON *object)
{
    static const struct {
        const char *path, *what;
    } kept[] = {
        {"metadata.name", "name"}, {"metadata.namespace", "namespace"}, {"metadata.uid", "UID"}};
    struct str is = json_str(json_get(object, "apiVersion"));
    struct str wanted = json_str(json_get(sent, "kind")), kind = json_str(json_get(object, "kind"));

    if (!str_eq(is, q->to))
        return refuse(q, sent,
                      arena_printf(q->a,
                                   "invalid object at index 0: invalid groupVersion (expected "
                                   "%.*s, received %.*s)",
                                   STR_F(q->to), STR_F(is)));
    if (!str_eq(kind, wanted))
        return refuse(q, sent,
                      arena_printf(q->a,
                                   "invalid object at index 0: invalid kind (expected %.*s, "
                                   "received %.*s)",
                                   STR_F(wanted), STR_F(kind)));
    for (size_t i = 0; i < COUNT(kept); i++) {
        struct str before = json_str_at(sent, kept[i].path),
                   now = json_str_at(object, kept[i].path);

        if (!str_eq(before, now))
            return refuse(q, sent,
                          arena_printf(q->a, "invalid object: must have the same %s: %.*s != %.*s",
                                       kept[i].what, STR_F(before), STR_F(now)));
    }
    return 0;
}

/* ---- metadata: the sent one, with the labels and annotations that came back ---- */

static const char *go_type(const cJSON *value)
{
    return json_is_object(value)            ? "map[string]interface {}"
           : json_is_array(value)           ? "[]interface {}"
           : json_is_string(value)          ? "string"
           : json_is_bool(value)            ? "bool"
           : json_is_null(value)            ? "<nil>"
           : json_i64(value, &(int64_t){0}) ? "int64"
                                            : "float64";
}

static int refuse_metadata(const struct answer *q, const cJSON *sent, struct str why)
{
    return refuse(q, sent, arena_printf(q->a, "invalid metadata: %.*s", STR_F(why)));
}

/* As field.ErrorList.ToAggregate() prints it. */
static struct str aggregate(struct arena *a, const struct field_errors *e)
{
    struct buf b = BUF_INIT(64 * 1024);
    struct str text;

    for (const struct err_cause *cause = e->first; cause; cause = cause->next)
        buf_printf(&b, "%s%.*s: %.*s", cause == e->first ? "" : ", ", STR_F(cause->field),
                   STR_F(cause->message));
    text = e->n > 1 ? arena_printf(a, "[%.*s]", STR_F(buf_str(&b))) : arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static void check_rule(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                       struct str text)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, text, messages);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, p, text, messages[i]);
}

static void check_labels(struct field_errors *e, const cJSON *labels)
{
    const struct field_path *p = FIELD(FIELD(NULL, "metadata"), "labels");

    json_each(label, labels)
    {
        check_rule(e, p, NAME_QUALIFIED, json_key(label));
        check_rule(e, p, NAME_LABEL_VALUE, json_str(label));
    }
}

/* Upstream names the path so. */
static void check_annotations(struct field_errors *e, const cJSON *annotations)
{
    const struct field_path *p = FIELD(FIELD(NULL, "metadata"), "annotation");
    size_t total = 0;

    json_each(annotation, annotations)
    {
        struct str key = json_key(annotation);

        check_rule(e, p, NAME_QUALIFIED, key);
        total += key.n + json_str(annotation).n;
    }
    if (total > MAX_ANNOTATIONS)
        field_too_long(e, p, MAX_ANNOTATIONS);
}

static int take_map(const struct answer *q, const cJSON *sent, cJSON *metadata,
                    const cJSON *answered, const char *key)
{
    cJSON *map = json_get(answered, key);
    bool labels = str_eqc(str_c(key), "labels");
    struct field_errors e;

    if (!map || json_is_null(map)) {
        json_remove(metadata, key);
        return 0;
    }
    if (!json_is_object(map))
        return refuse_metadata(q, sent,
                               arena_printf(q->a,
                                            "invalid metadata.%s of type %s in converted "
                                            "object",
                                            key, go_type(map)));
    json_each(member, map)
    {
        if (!json_is_string(member))
            return refuse_metadata(q, sent,
                                   arena_printf(q->a,
                                                "metadata.%s[%.*s] must be a string, but is %s in "
                                                "converted object",
                                                key, STR_F(json_key(member)), go_type(member)));
    }
    field_errors_init(&e, q->a);
    if (!json_equal(map, json_get(metadata, key)))
        (labels ? check_labels : check_annotations)(&e, map);
    if (e.n)
        return refuse_metadata(q, sent, aggregate(q->a, &e));
    json_set(q->a, metadata, key, json_copy(q->a, map));
    return 0;
}

static int restore_metadata(const struct answer *q, const cJSON *sent, cJSON *object)
{
    const cJSON *answered = json_get(object, "metadata"), *before = json_get(sent, "metadata");
    cJSON *metadata;

    if (!answered)
        return refuse_metadata(q, sent, STR("missing metadata in converted object"));
    if (!json_is_object(answered))
        return refuse_metadata(q, sent,
                               arena_printf(q->a, "invalid metadata of type %s in converted object",
                                            go_type(answered)));
    metadata = before ? json_copy(q->a, before) : json_new_object(q->a);
    if (take_map(q, sent, metadata, answered, "labels") ||
        take_map(q, sent, metadata, answered, "annotations"))
        return -1;
    json_set(q->a, object, "metadata", metadata);
    return 0;
}

static int take_object(const struct answer *q, const cJSON *sent, cJSON *object)
{
    if (!json_is_object(object) || !json_str(json_get(object, "kind")).n) {
        struct str text = object ? json_text(q->a, object) : STR("");

        return err_set(q->err, &ERR_UNKNOWN, "Object 'Kind' is missing in '%.*s'",
                       STR_F(str_clip(text, 1024)));
    }
    if (json_deeper(object, JSON_LIMITS.depth))
        return refuse(q, sent, STR("invalid object: it is nested too deeply"));
    return check_identity(q, sent, object) || restore_metadata(q, sent, object) ? -1 : 0;
}

int crd_conversion_read(const struct crd_conversion *x, struct arena *a, struct str uid,
                        struct str to, int status, struct str body, cJSON **objects, size_t n,
                        struct err *err)
{
    const struct json_limits limits = {.depth = JSON_LIMITS.depth + 8, .nodes = JSON_LIMITS.nodes};
    const struct answer q = {.x = x, .a = a, .uid = uid, .to = to, .err = err};
    cJSON *review = NULL, *list, *next;
    struct str problem;
    size_t i = 0;

    if (status != 200)
        return crd_conversion_fail(objects[0], why_not_200(a, status, body), err);
    if (json_parse_strict(a, body, &limits, NULL, NULL, &review, err)) {
        struct str why = arena_str(a, err->message);

        err_clear(err);
        return crd_conversion_fail(objects[0], why, err);
    }
    problem = head_problem(&q, review);
    if (problem.p)
        return crd_conversion_fail(objects[0], problem, err);
    list = json_path(review, "response.convertedObjects");
    if (json_count(list) != n || !json_is_array(list))
        return refuse(&q, objects[0],
                      arena_printf(a, "%zu objects, expected %zu",
                                   json_is_array(list) ? json_count(list) : 0, n));
    for (cJSON *object = json_first(list); object; object = next) {
        next = object->next;
        json_detach(list, object);
        if (take_object(&q, objects[i], object))
            return -1;
        objects[i++] = object;
    }
    return 0;
}
