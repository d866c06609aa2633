/* SPDX-License-Identifier: Apache-2.0 */
/* PodSecurity: labels of a namespace set the Pod Security Standard of its pods. Violations of
 * `enforce` are refused, those of `warn` are warnings, those of `audit` annotations of the audit
 * event; objects with a pod template only produce warnings. There are no exemptions, as in
 * upstream's default configuration: a tenant who could configure them could bypass the standard.
 * The administrator's own level for all pods of a tenant (policy.podSecurity) is a separate check,
 * in translate. Source: k8s.io/pod-security-admission admission, api. */
#include "plugins.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/field.h>
#include <sublet/hash.h>
#include <sublet/object.h>
#include <sublet/pod_security.h>

#define PREFIX "pod-security.kubernetes.io/"
/* Limits of the check of existing pods against a changed enforce level: pods, and time. */
#define MAX_PODS   3000
#define MAX_POD_MS 1000

static const char *const LEVELS[] = {"privileged", "baseline", "restricted"};

struct policies {
    struct pod_security_policy enforce, audit, warn;
};

/* ---- labels ---- */

static bool same_policy(const struct pod_security_policy *a, const struct pod_security_policy *b)
{
    return a->level == b->level && a->latest == b->latest && a->minor == b->minor;
}

static struct str policy_text(struct arena *a, const struct pod_security_policy *p)
{
    if (p->latest)
        return arena_printf(a, "%s:latest", LEVELS[p->level]);
    return arena_printf(a, "%s:v1.%lld", LEVELS[p->level], (long long)p->minor);
}

static bool parse_level(struct str text, enum pod_security_level *ret)
{
    for (size_t i = 0; i < COUNT(LEVELS); i++)
        if (str_eqc(text, LEVELS[i])) {
            *ret = (enum pod_security_level)i;
            return true;
        }
    return false;
}

/* "latest" or "v1.x"; x in the form strconv accepts, without leading zeros. */
static bool parse_version(struct str text, struct pod_security_policy *ret)
{
    struct str digits = str_from(text, 3);
    uint64_t minor;

    if (str_eqc(text, "latest")) {
        ret->latest = true;
        ret->minor = 0;
        return true;
    }
    if (!str_has_prefix(text, STR("v1.")) || !digits.n || (digits.n > 1 && digits.p[0] == '0') ||
        !str_to_u64(digits, &minor) || minor > INT64_MAX)
        return false;
    ret->latest = false;
    ret->minor = (int64_t)minor;
    return true;
}

/* Applies one pair of labels to p; true when the level was set, and valid. */
static bool read_mode(struct field_errors *e, const cJSON *labels, const char *level_key,
                      const char *version_key, enum pod_security_level when_bad,
                      struct pod_security_policy *p)
{
    const struct field_path *path = FIELD(FIELD(NULL, "metadata"), "labels");
    const cJSON *level = json_get(labels, level_key), *version = json_get(labels, version_key);
    bool set = level && parse_level(json_str(level), &p->level);

    if (level && !set) {
        p->level = when_bad;
        field_invalid_str(e, FIELD_KEY(path, str_c(level_key)), json_str(level),
                          "must be one of privileged, baseline, restricted");
    }
    if (version && !parse_version(json_str(version), p)) {
        p->latest = true;
        p->minor = 0;
        field_invalid_str(e, FIELD_KEY(path, str_c(version_key)), json_str(version),
                          "must be \"latest\" or \"v1.x\"");
    }
    return set;
}

/* Invalid labels mean the strictest level for enforce, and no effect elsewhere. */
static struct policies policies_of(struct field_errors *e, const cJSON *labels)
{
    static const struct pod_security_policy open = {POD_SECURITY_PRIVILEGED, true, 0};
    struct policies p = {open, open, open};
    bool enforces = read_mode(e, labels, PREFIX "enforce", PREFIX "enforce-version",
                              POD_SECURITY_RESTRICTED, &p.enforce);

    read_mode(e, labels, PREFIX "audit", PREFIX "audit-version", POD_SECURITY_PRIVILEGED, &p.audit);
    read_mode(e, labels, PREFIX "warn", PREFIX "warn-version", POD_SECURITY_PRIVILEGED, &p.warn);
    /* Where enforce is set without warn, templates are warned about at that level. */
    if (enforces && !json_get(labels, PREFIX "warn") && p.enforce.level > p.warn.level) {
        p.warn.level = p.enforce.level;
        if (!json_get(labels, PREFIX "warn-version")) {
            p.warn.latest = p.enforce.latest;
            p.warn.minor = p.enforce.minor;
        }
    }
    return p;
}

static bool fully_privileged(const struct policies *p)
{
    return p->enforce.level == POD_SECURITY_PRIVILEGED &&
           p->audit.level == POD_SECURITY_PRIVILEGED && p->warn.level == POD_SECURITY_PRIVILEGED;
}

static bool same_errors(const struct field_errors *a, const struct field_errors *b)
{
    const struct err_cause *x = a->first, *y = b->first;

    for (; x && y; x = x->next, y = y->next)
        if (!str_eq(x->field, y->field) || !str_eq(x->message, y->message))
            return false;
    return !x && !y;
}

/* ---- reports ---- */

static void annotate(const struct admission_call *c, const char *key, struct str value)
{
    if (c->annotate)
        c->annotate(c->warn_ctx, str_c(key), value);
}

static void warn(const struct admission_call *c, struct str text)
{
    if (c->warn)
        c->warn(c->warn_ctx, text);
}

static struct str violation(struct arena *a, const char *how, const struct pod_security_policy *p,
                            const struct pod_security_verdict *v)
{
    return arena_printf(a, "%s PodSecurity \"%.*s\": %.*s", how, STR_F(policy_text(a, p)),
                        STR_F(v->details));
}

/* "Failed to parse policy: a: b" or "...: [a: b, c: d]" */
static void annotate_errors(const struct admission_call *c, const struct field_errors *e)
{
    struct buf text = BUF_INIT(16 * 1024);

    for (const struct err_cause *cause = e->first; cause; cause = cause->next)
        buf_printf(&text, "%s%.*s: %.*s", text.n ? ", " : "", STR_F(cause->field),
                   STR_F(cause->message));
    annotate(
        c, PREFIX "error",
        arena_printf(c->arena,
                     e->n > 1 ? "Failed to parse policy: [%.*s]" : "Failed to parse policy: %.*s",
                     STR_F(buf_str(&text))));
    buf_fini(&text);
}

/* ---- pods and templates ---- */

/* A pod under three policies, each evaluated once. */
struct evaluation {
    const struct admission_call *call;
    const cJSON *metadata, *spec;
    const struct pod_security_policy *judged[3];
    struct pod_security_verdict verdicts[3];
    size_t n;
};

static const struct pod_security_verdict *judge(struct evaluation *j,
                                                const struct pod_security_policy *p)
{
    for (size_t i = 0; i < j->n; i++)
        if (same_policy(j->judged[i], p))
            return &j->verdicts[i];
    j->judged[j->n] = p;
    j->verdicts[j->n] = pod_security_judge(j->call->arena, p, j->metadata, j->spec);
    return &j->verdicts[j->n++];
}

static int enforce(struct evaluation *j, const struct pod_security_policy *p, struct err *err)
{
    const struct admission_call *c = j->call;
    const struct pod_security_verdict *v = judge(j, p);

    annotate(c, PREFIX "enforce-policy", policy_text(c->arena, p));
    if (v->allowed)
        return 0;
    return err_forbidden(err, c->resource->group, c->resource->plural, c->name, "%.*s",
                         STR_F(violation(c->arena, "violates", p, v)));
}

static int evaluate(const struct admission_call *c, const struct policies *p, const cJSON *metadata,
                    const cJSON *spec, bool is_pod, struct err *err)
{
    struct evaluation j = {.call = c, .metadata = metadata, .spec = spec};
    int failed = is_pod ? enforce(&j, &p->enforce, err) : 0;
    const struct pod_security_verdict *v = judge(&j, &p->audit);

    if (!v->allowed)
        annotate(c, PREFIX "audit-violations", violation(c->arena, "would violate", &p->audit, v));
    if (failed)
        return failed;
    v = judge(&j, &p->warn);
    if (!v->allowed)
        warn(c, violation(c->arena, "would violate", &p->warn, v));
    return 0;
}

static bool other_images(const cJSON *spec, const cJSON *before, const char *list)
{
    const cJSON *old = json_first(json_get(before, list));

    if (json_count(json_get(spec, list)) != json_count(json_get(before, list)))
        return true;
    json_each(container, json_get(spec, list))
    {
        if (!str_eq(json_str_at(container, "image"), json_str_at(old, "image")))
            return true;
        old = old->next;
    }
    return false;
}

static const cJSON *find_named(const cJSON *list, struct str name)
{
    json_each(item, list)
    {
        if (str_eq(json_str_at(item, "name"), name))
            return item;
    }
    return NULL;
}

/* Of the mutable fields of a pod only images and additional containers matter. */
static bool significant(const cJSON *spec, const cJSON *before)
{
    if (other_images(spec, before, "containers") || other_images(spec, before, "initContainers"))
        return true;
    json_each(container, json_get(spec, "ephemeralContainers"))
    {
        const cJSON *old =
            find_named(json_get(before, "ephemeralContainers"), json_str_at(container, "name"));

        if (!old || !str_eq(json_str_at(container, "image"), json_str_at(old, "image")))
            return true;
    }
    return false;
}

/* Every other subresource contains the pod itself: an unknown one is checked. */
static bool harmless_subresource(struct str name)
{
    static const char *const harmless[] = {"exec", "attach",      "binding", "eviction",
                                           "log",  "portforward", "proxy",   "status"};

    for (size_t i = 0; i < COUNT(harmless); i++)
        if (str_eqc(name, harmless[i]))
            return true;
    return false;
}

/* The policies of the namespace; false when there is none. A search of the bytes decides whether to
 * parse them: most namespaces have no such label. */
static bool policies_at(const struct admission_call *c, struct field_errors *e,
                        struct policies *ret)
{
    const struct store_object *ns = plugin_stored(c, "", "namespaces", STR(""), c->ns);
    const cJSON *tree = NULL;

    field_errors_init(e, c->arena);
    if (ns && str_contains(ns->bytes, STR(PREFIX)))
        tree = vapi_tree(c->arena, ns);
    *ret = policies_of(e, json_path(tree, "metadata.labels"));
    return ns != NULL;
}

static int check_pod(const struct admission_call *c, const cJSON *pod, const cJSON *old,
                     struct err *err)
{
    struct field_errors errors;
    struct policies p;

    if (harmless_subresource(c->subresource))
        return 0;
    if (!policies_at(c, &errors, &p))
        return err_set(err, &ERR_INTERNAL,
                       "Internal error occurred: failed to lookup namespace \"%.*s\"",
                       STR_F(c->ns));
    if (!errors.n && fully_privileged(&p)) {
        annotate(c, PREFIX "enforce-policy", STR("privileged:latest"));
        return 0;
    }
    if (old && !significant(json_get(pod, "spec"), json_get(old, "spec")))
        return 0;
    if (errors.n)
        annotate_errors(c, &errors);
    return evaluate(c, &p, json_get(pod, "metadata"), json_get(pod, "spec"), true, err);
}

/* The path of the pod template in kinds that create pods. */
static const struct {
    const char *group, *plural, *template;
} TEMPLATES[] = {
    {"", "replicationcontrollers", "spec.template"},
    {"", "podtemplates", "template"},
    {"apps", "replicasets", "spec.template"},
    {"apps", "deployments", "spec.template"},
    {"apps", "statefulsets", "spec.template"},
    {"apps", "daemonsets", "spec.template"},
    {"batch", "jobs", "spec.template"},
    {"batch", "cronjobs", "spec.jobTemplate.spec.template"},
};

static int check_template(const struct admission_call *c, const cJSON *template, struct err *err)
{
    struct field_errors errors;
    struct policies p;

    if (c->subresource.n || !template || !policies_at(c, &errors, &p))
        return 0;
    if (!errors.n && p.warn.level == POD_SECURITY_PRIVILEGED &&
        p.audit.level == POD_SECURITY_PRIVILEGED)
        return 0;
    if (errors.n)
        annotate_errors(c, &errors);
    return evaluate(c, &p, json_get(template, "metadata"), json_get(template, "spec"), false, err);
}

/* ---- namespaces ---- */

/* Existing pods that violate the level, grouped by violation. */
struct violation {
    struct str reasons, pod; /* pod: the first by name */
    size_t n;
};

struct sweep {
    const struct admission_call *call;
    const struct pod_security_policy *policy;
    struct arena *scratch;
    int64_t deadline;
    struct violation *wrongs;
    size_t n_wrongs, n_pods, n_checked, n_later, n_owners;
    /* One pod of each controller is checked first; its siblings are alike. */
    const struct store_object *later[MAX_PODS];
    uint64_t owners[MAX_PODS]; /* hashes of uids: a collision changes only the order */
};

static bool sweep_over(const struct sweep *s)
{
    return s->n_checked == MAX_PODS || clock_mono_ms(vapi_clock(s->call->api)) > s->deadline;
}

static void sweep_pod(struct sweep *s, const struct store_object *o, const cJSON *pod)
{
    struct pod_security_verdict v =
        pod_security_judge(s->scratch, s->policy, json_get(pod, "metadata"), json_get(pod, "spec"));

    s->n_checked++;
    if (!v.allowed) {
        struct arena *a = s->call->arena;
        struct violation *w = NULL;

        for (size_t i = 0; i < s->n_wrongs && !w; i++)
            if (str_eq(s->wrongs[i].reasons, v.reasons))
                w = &s->wrongs[i];
        if (!w) {
            w = &s->wrongs[s->n_wrongs++];
            w->reasons = arena_str(a, v.reasons);
        }
        if (!w->n++ || str_cmp(o->name, w->pod) < 0)
            w->pod = arena_str(a, o->name);
    }
}

/* True for all but the first pod of one controller. */
static bool has_sibling(struct sweep *s, const cJSON *pod)
{
    const cJSON *owner = owner_controller(pod);
    uint64_t hash = str_hash(json_str_at(owner, "uid"), hash_seed());

    if (!owner)
        return false;
    for (size_t i = 0; i < s->n_owners; i++)
        if (s->owners[i] == hash)
            return true;
    if (s->n_owners < MAX_PODS)
        s->owners[s->n_owners++] = hash;
    return false;
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct sweep *s = ctx;

    s->n_pods++;
    if (sweep_over(s))
        return true;
    arena_reset(s->scratch);
    const cJSON *pod = vapi_tree(s->scratch, o);
    if (!has_sibling(s, pod))
        sweep_pod(s, o, pod);
    else if (s->n_later < MAX_PODS)
        s->later[s->n_later++] = o; /* valid: the loop does not run before they are used */
    return true;
}

static void warn_violations(struct sweep *s)
{
    const struct admission_call *c = s->call;
    struct arena *a = c->arena;
    struct str *lines = arena_alloc(a, (s->n_wrongs + 1) * sizeof(*lines));

    if (s->n_checked < s->n_pods)
        warn(c, arena_printf(a,
                             "new PodSecurity enforce level only checked against the first %zu of "
                             "%zu existing pods",
                             s->n_checked, s->n_pods));
    if (!s->n_wrongs)
        return;
    warn(c, arena_printf(a,
                         "existing pods in namespace \"%.*s\" violate the new PodSecurity enforce "
                         "level \"%.*s\"",
                         STR_F(c->name), STR_F(policy_text(a, s->policy))));
    for (size_t i = 0; i < s->n_wrongs; i++) {
        const struct violation *w = &s->wrongs[i];
        struct str more = w->n == 1   ? STR("")
                          : w->n == 2 ? STR(" (and 1 other pod)")
                                      : arena_printf(a, " (and %zu other pods)", w->n - 1);

        lines[i] = arena_printf(a, "%.*s%.*s: %.*s", STR_F(w->pod), STR_F(more), STR_F(w->reasons));
    }
    qsort(lines, s->n_wrongs, sizeof(*lines), str_order);
    for (size_t i = 0; i < s->n_wrongs; i++)
        warn(c, lines[i]);
}

/* A changed level evicts no pod; its author is warned about existing pods that violate it. */
static void sweep_namespace(const struct admission_call *c,
                            const struct pod_security_policy *policy)
{
    struct sweep *s = ARENA_NEW(c->arena, struct sweep);

    s->call = c;
    s->policy = policy;
    s->scratch = arena_new(0);
    s->deadline = clock_mono_ms(vapi_clock(c->api)) + MAX_POD_MS;
    s->wrongs = arena_alloc(c->arena, MAX_PODS * sizeof(*s->wrongs));
    plugin_each_stored(c, "", "pods", c->name, on_pod, s);
    for (size_t i = 0; i < s->n_later && !sweep_over(s); i++) {
        arena_reset(s->scratch);
        sweep_pod(s, s->later[i], vapi_tree(s->scratch, s->later[i]));
    }
    warn_violations(s);
    arena_free(s->scratch);
}

static int check_namespace(const struct admission_call *c, const cJSON *object, const cJSON *old,
                           struct err *err)
{
    struct field_errors errors, before;
    struct policies now, then;

    if (c->subresource.n)
        return 0;
    field_errors_init(&errors, c->arena);
    field_errors_init(&before, c->arena);
    now = policies_of(&errors, json_path(object, "metadata.labels"));
    then = policies_of(&before, json_path(old, "metadata.labels"));
    if (errors.n && !(old && before.n && same_errors(&errors, &before)))
        return field_errors_to_err(&errors, STR(""), STR("Namespace"), c->name, err);
    if (!old || same_policy(&now.enforce, &then.enforce) ||
        now.enforce.level == POD_SECURITY_PRIVILEGED)
        return 0;
    if (now.enforce.latest == then.enforce.latest && now.enforce.minor == then.enforce.minor &&
        now.enforce.level <= then.enforce.level)
        return 0;
    sweep_namespace(c, &now.enforce);
    return 0;
}

int pod_security_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    if (!object)
        return 0;
    if (plugin_admits(c, "", "pods"))
        return check_pod(c, object, old, err);
    if (plugin_admits(c, "", "namespaces"))
        return check_namespace(c, object, old, err);
    for (size_t i = 0; i < COUNT(TEMPLATES); i++)
        if (plugin_admits(c, TEMPLATES[i].group, TEMPLATES[i].plural))
            return check_template(c, json_path(object, TEMPLATES[i].template), err);
    return 0;
}
