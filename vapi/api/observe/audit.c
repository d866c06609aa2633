/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Requests as events of the audit log, in kube-apiserver's form. It must cost one test of a pointer
 * where nothing is audited, and never record an in-process call. Source: k8s.io/apiserver
 * pkg/endpoints/filters/audit.go, pkg/audit/request.go. */
#include "observe.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include <sublet/net.h>

#define MAX_AGENT       1024
#define MAX_SOURCES     16
#define MAX_OBJECT      (1u << 20) /* of a request or an answer; a bigger one is omitted */
#define BUFFER_BYTES    (16u << 20)
#define MAX_ANNOTATIONS 32
#define MAX_ANNOTATION  (16u * 1024)
#define TRUNCATED       STR("audit.k8s.io/truncated")

struct api_audit {
    struct audit_policy *policy;
    struct audit_log *log;
    bool refuse; /* when an event cannot be recorded */
    uint64_t events, rejected;
    struct buf line;
};

/* Lives in the call's arena. */
struct call_audit {
    struct audit_event event;
    struct audit_annotation annotations[MAX_ANNOTATIONS];
    size_t n_annotations;
    bool answered, streaming;
    bool failed; /* authentication failed: one event, with the answer */
};

static struct call_audit *audit_of(const struct call *c)
{
    return ((const struct call_entry *)c)->audit;
}

/* ---- open and close ---- */

int audit_open(struct vapi *api, struct err *err)
{
    const struct config *config = api->o.config;
    struct audit_log_options options = {
        .path = config->audit_path,
        .max_bytes = config->audit_max_size,
        .max_backups = config->audit_max_backups,
        .max_age_days = config->audit_max_age,
        .buffer_bytes = BUFFER_BYTES,
        .clock = api->o.clock,
    };
    struct api_audit *audit;

    if (!config->audit_policy.n)
        return 0;
    audit = NEW(struct api_audit);
    audit->line = BUF_INIT(0);
    audit->refuse = config->audit_refuse;
    if (audit_policy_parse(config->audit_policy, &audit->policy, err) ||
        audit_log_open(&options, &audit->log, err)) {
        audit_policy_free(audit->policy);
        mem_free(audit);
        return -1;
    }
    api->audit = audit;
    return 0;
}

void audit_close(struct vapi *api)
{
    struct api_audit *audit = api->audit;

    if (!audit)
        return;
    audit_log_close(audit->log);
    audit_policy_free(audit->policy);
    buf_fini(&audit->line);
    api->audit = mem_free(audit);
}

void audit_metrics(struct vapi *api, struct buf *out)
{
    struct audit_log_stats stats = {0};
    struct api_audit *audit = api->audit;

    if (audit)
        audit_log_stats(audit->log, &stats);
    metrics_single_u64(out, METRIC_AUDIT_EVENTS, audit ? audit->events : 0);
    metrics_single_u64(out, METRIC_AUDIT_REJECTED, audit ? audit->rejected : 0);
    metrics_family(out, METRIC_AUDIT_LOST);
    metrics_sample_u64(out, METRIC_AUDIT_LOST, STR("reason=\"buffer\""), stats.dropped);
    metrics_sample_u64(out, METRIC_AUDIT_LOST, STR("reason=\"write\""), stats.failed);
}

/* ---- one event ---- */

static void emit(struct call *c, enum audit_stage stage)
{
    struct call_audit *a = audit_of(c);
    struct api_audit *audit = c->api->audit;
    int64_t now =
        stage == AUDIT_REQUEST_RECEIVED ? a->event.received_us : clock_wall_us(vapi_clock(c->api));

    if (a->event.decision.omit_stages & 1u << stage)
        return;
    a->event.annotations = a->annotations;
    a->event.n_annotations = a->n_annotations;
    buf_clear(&audit->line);
    audit_event_print(&audit->line, &a->event, stage, now);
    audit_log_write(audit->log, buf_str(&audit->line));
    audit->events++;
    if (audit->line.cap > MAX_OBJECT) {
        buf_fini(&audit->line);
        audit->line = BUF_INIT(0);
    }
}

static bool is_address(struct str text)
{
    unsigned char room[sizeof(struct in6_addr)];
    char name[INET6_ADDRSTRLEN];

    if (!text.n || text.n >= sizeof(name))
        return false;
    memcpy(name, text.p, text.n);
    name[text.n] = '\0';
    return inet_pton(AF_INET, name, room) == 1 || inet_pton(AF_INET6, name, room) == 1;
}

static struct str peer_host(struct str peer)
{
    struct str host = str_sub(peer, 0, str_rfind(peer, ':'));

    return host.n > 2 && host.p[0] == '[' ? str_sub(host, 1, host.n - 2) : host;
}

static void set_request(struct call *c, struct audit_event *e)
{
    const struct net_request *r = c->request;
    struct str agent = net_header(r, "user-agent"), rest = net_header(r, "x-forwarded-for");
    struct str real = net_header(r, "x-real-ip"), peer = peer_host(r->peer);
    struct arena *a = c->arena;
    struct str *list = arena_alloc(a, MAX_SOURCES * sizeof(*list));
    size_t n = 0;

    e->id = call_entry(c)->audit_id;
    e->uri = r->query.p ? arena_printf(a, "%.*s?%.*s", STR_F(r->path), STR_F(r->query))
                        : arena_str(a, r->path);
    e->user_agent = agent.n > MAX_AGENT
                        ? arena_printf(a, "%.*s...TRUNCATED", STR_F(str_sub(agent, 0, MAX_AGENT)))
                        : arena_str(a, agent);
    /* X-Forwarded-For, X-Real-Ip and the peer: the source as claimed and as observed. */
    while (rest.p && n < MAX_SOURCES - 2) {
        struct str one = str_trim(str_cut(&rest, ','));

        if (is_address(one))
            list[n++] = arena_str(a, one);
    }
    if (is_address(real))
        list[n++] = arena_str(a, real);
    if (peer.n && (!n || !str_eq(list[n - 1], peer)))
        list[n++] = arena_str(a, peer);
    e->source_ips = list;
    e->n_source_ips = n;
}

static void set_target(struct audit_event *e, struct arena *a, const struct target *t)
{
    e->verb = arena_str(a, str_c(t->verb));
    e->has_ref = t->is_resource;
    if (!t->is_resource)
        return;
    e->resource = arena_str(a, t->resource);
    e->ns = arena_str(a, t->ns);
    e->name = arena_str(a, t->name);
    e->group = arena_str(a, t->group);
    e->version = arena_str(a, t->version);
    e->subresource = arena_str(a, t->sub);
}

int audit_attributes(struct call *c, const struct target *t, const struct user *user,
                     struct err *err)
{
    struct api_audit *audit = c->api->audit;
    const struct user *real = user && user->real ? user->real : user;
    struct attributes what = request_attributes(t);
    struct audit_decision decision;
    struct call_audit *a;

    if (!audit)
        return 0;
    audit_decide(audit->policy, real, &what, &decision);
    if (decision.level == AUDIT_LEVEL_NONE)
        return 0;
    if (audit->refuse && !audit_log_has_room(audit->log)) {
        static const char WHY[] = "failed to store audit event";

        audit->rejected++;
        err_set(err, &ERR_INTERNAL, "Internal error occurred: %s", WHY);
        err_cause(err, STR(""), STR(""), str_c(WHY));
        return -1;
    }
    a = ARENA_NEW(c->arena, struct call_audit);
    call_entry(c)->audit = a;
    a->event.decision = decision;
    a->event.user = real;
    a->event.received_us = clock_wall_us(vapi_clock(c->api)) -
                           ((int64_t)(uv_hrtime() / 1000) - call_entry(c)->began_us);
    set_request(c, &a->event);
    set_target(&a->event, c->arena, t);
    a->failed = !user;
    if (a->failed)
        return 0;
    emit(c, AUDIT_REQUEST_RECEIVED);
    /* Upstream sets it only after impersonation. */
    a->event.impersonated = user != real ? user : NULL;
    if (user != real)
        a->event.impersonation_constraint = user->constraint;
    return 0;
}

/* ---- annotations and objects ---- */

void audit_annotate(struct call *c, struct str key, struct str value)
{
    struct call_audit *a = audit_of(c);

    if (!a)
        return;
    for (size_t i = 0; i < a->n_annotations; i++)
        if (str_eq(a->annotations[i].key, key))
            return;
    if (a->n_annotations == MAX_ANNOTATIONS)
        return;
    a->annotations[a->n_annotations++] = (struct audit_annotation){
        arena_str(c->arena, key), arena_str(c->arena, str_sub(value, 0, MAX_ANNOTATION))};
}

void audit_authorized(struct call *c, bool allowed, struct str reason)
{
    audit_annotate(c, STR("authorization.k8s.io/decision"), allowed ? STR("allow") : STR("forbid"));
    audit_annotate(c, STR("authorization.k8s.io/reason"), reason.p ? reason : STR(""));
}

/* The JSON for the event; empty when it is too long. */
static struct str fit_object(struct call *c, struct str json)
{
    const struct call_audit *a = audit_of(c);

    if (json.n && a->event.decision.omit_managed_fields)
        json = audit_without_managed_fields(c->arena, json);
    if (json.n <= MAX_OBJECT)
        return json;
    audit_annotate(c, TRUNCATED, STR("true"));
    return STR("");
}

static void refer(struct str *to, struct arena *a, const cJSON *object, const char *path)
{
    if (!to->n)
        *to = arena_str(a, json_str_at(object, path));
}

/* Clients may omit the kind. */
static const cJSON *delete_options(struct arena *a, const cJSON *object)
{
    cJSON *whole;

    if (!json_is_object(object) || json_get(object, "kind"))
        return object;
    whole = json_copy(a, object);
    json_set_first(a, whole, "apiVersion", json_new_string(a, STR("v1")));
    json_set_first(a, whole, "kind", json_new_string(a, STR("DeleteOptions")));
    return whole;
}

void audit_request(struct call *c, const cJSON *object)
{
    struct call_audit *a = audit_of(c);
    struct audit_event *e;

    if (!a || !object || a->event.request_object.n)
        return;
    e = &a->event;
    if (c->verb == CALL_CREATE || c->verb == CALL_UPDATE) {
        refer(&e->ns, c->arena, object, "metadata.namespace");
        refer(&e->name, c->arena, object, "metadata.name");
        refer(&e->uid, c->arena, object, "metadata.uid");
        refer(&e->revision, c->arena, object, "metadata.resourceVersion");
    }
    if (e->decision.level < AUDIT_LEVEL_REQUEST)
        return;
    if (c->verb == CALL_DELETE || c->verb == CALL_DELETECOLLECTION)
        object = delete_options(c->arena, object);
    e->request_object = fit_object(c, json_text(c->arena, object));
}

/* ---- answers ---- */

void audit_answer_tree(struct call *c, const cJSON *tree)
{
    struct call_audit *a = audit_of(c);
    struct audit_event *e;

    if (!a)
        return;
    e = &a->event;
    if (str_eqc(json_str_at(tree, "kind"), "Status") &&
        str_eqc(json_str_at(tree, "apiVersion"), "v1")) {
        e->status = arena_str(c->arena, json_str_at(tree, "status"));
        e->message = arena_str(c->arena, json_str_at(tree, "message"));
        e->reason = arena_str(c->arena, json_str_at(tree, "reason"));
        e->details = json_get(tree, "details");
    }
    if (e->decision.level >= AUDIT_LEVEL_REQUEST_RESPONSE)
        e->answer_object = fit_object(c, json_text(c->arena, tree));
}

static struct str join(struct call *c, const struct net_slice *body, size_t n)
{
    struct str *parts = arena_alloc(c->arena, (n + 1) * sizeof(*parts));
    size_t size = 0;

    for (size_t i = 0; i < n; i++) {
        parts[i] = body[i].bytes;
        size += parts[i].n;
    }
    if (size <= MAX_OBJECT)
        return arena_concat(c->arena, n, parts);
    audit_annotate(c, TRUNCATED, STR("true"));
    return STR("");
}

bool audit_wants_answer(const struct call *c)
{
    const struct call_audit *a = audit_of(c);

    return a && a->event.decision.level >= AUDIT_LEVEL_REQUEST_RESPONSE;
}

size_t audit_most_bytes(void)
{
    return MAX_OBJECT;
}

struct str audit_answer_row(struct call *c, struct arena *a, const cJSON *around)
{
    struct str json = json_text(a, around);

    return audit_of(c)->event.decision.omit_managed_fields ? audit_without_managed_fields(a, json)
                                                           : json;
}

void audit_answer_text(struct call *c, struct str json)
{
    audit_of(c)->event.answer_object = arena_str(c->arena, json);
}

void audit_answer_left_out(struct call *c)
{
    if (audit_wants_answer(c))
        audit_annotate(c, TRUNCATED, STR("true"));
}

void audit_answer(struct call *c, int status, struct str content_type, const struct net_slice *body,
                  size_t n)
{
    struct call_audit *a = audit_of(c);
    struct audit_event *e;

    if (!a || a->answered)
        return;
    a->answered = true;
    e = &a->event;
    e->code = status;
    if (e->decision.level >= AUDIT_LEVEL_REQUEST_RESPONSE && e->has_ref && !e->answer_object.n &&
        str_eqc(content_type, "application/json"))
        e->answer_object = fit_object(c, join(c, body, n));
    /* A long-running request is recorded when its answer begins, whatever its result. */
    if (a->failed || (call_entry(c)->long_running && !a->streaming))
        emit(c, AUDIT_RESPONSE_STARTED);
    if (!a->failed)
        emit(c, AUDIT_RESPONSE_COMPLETE);
}

void audit_stream(struct call *c, int status)
{
    struct call_audit *a = audit_of(c);

    if (!a || a->answered || a->streaming)
        return;
    a->streaming = true;
    a->event.code = status;
    emit(c, AUDIT_RESPONSE_STARTED);
}

void audit_end(struct call *c)
{
    struct call_audit *a = audit_of(c);

    if (!a || a->answered)
        return;
    a->answered = true;
    if (!a->event.code) {
        a->event.code = 200;
        a->event.status = STR("Success");
        a->event.message = STR("Connection closed early");
    }
    emit(c, AUDIT_RESPONSE_COMPLETE);
}
