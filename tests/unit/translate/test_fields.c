/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields is whole and true: every field of the built-in types has one row, every row
 * has a field, and a value at that place becomes what the row says when the object is translated. A
 * row that needs more than its field around it has it here. */

#include <sublet/json_build.h>
#include <sublet/schema.h>
#include <sublet/translate_fields.h>

#include "test.h"

enum { DEPTH_MAX = 16, ROWS_MAX = 1024 };

static const char POOL[] =
    "pools: [{name: h100, nodeSelector: {sublet.dev/pool: h100}, scheduler: {name: "
    "gpu-scheduler},\n"
    "  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}],\n"
    "  runtimeClass: nvidia, priorityTiers: {high: gpu-high}}]\n"
    "bindings: [{pool: h100, guarantee: 8}]\n"
    "host: {podServiceAccount: runner}\n";

/* What an object of a section holds beside the field that is tried. */
static const struct {
    const char *section, *json;
} AROUND[] = {
    {"EnvVar", "{name: v}"},
    {"Volume", "{name: v}"},
    {"Profile", "{type: RuntimeDefault}"},
    {"Sysctl", "{name: net.ipv4.tcp_syncookies}"},
    {"DataSource", "{kind: PersistentVolumeClaim}"},
    {"TopologySpreadConstraint", "{labelSelector: {}, topologyKey: zone}"},
    {"PodAffinityTerm", "{labelSelector: {}, topologyKey: zone}"},
    {"ContainerStatus", "{name: c}"},
};

/* The values that mean something there; all others are made by type. */
static const struct {
    const char *section, *field, *json;
} VALUES[] = {
    {"PodSpec", "nodeName", "node-1"},
    {"PodSpec", "priorityClassName", "high"},
    {"PodSpec", "dnsPolicy", "ClusterFirst"},
    {"PodSpec", "schedulerName", "of-the-tenant"},
    {"PodSpec", "tolerations",
     "[{key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 99999}]"},
    {"Profile", "type", "RuntimeDefault"},
    {"Sysctl", "name", "net.ipv4.tcp_syncookies"},
    {"SELinuxOptions", "type", "container_t"},
    {"Capabilities", "add", "[KILL]"},
    {"TopologySpreadConstraint", "matchLabelKeys", "[app]"},
    {"PodAffinityTerm", "matchLabelKeys", "[app]"},
    {"PodAffinityTerm", "mismatchLabelKeys", "[app]"},
    {"PodAffinityTerm", "namespaceSelector", "{}"},
    {"NodeSelectorTerm", "matchFields", "[{key: metadata.name, operator: In, values: [node-1]}]"},
    {"NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
     "{nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}"},
    {"ContainerStatus", "name", "c"},
    {"EnvVarSource", "fieldRef", "{fieldPath: metadata.name}"},
    {"DownwardAPIVolumeFile", "fieldRef", "{fieldPath: metadata.name}"},
    {"DataSource", "kind", "PersistentVolumeClaim"},
    {"PersistentVolumeClaimSpec", "storageClassName", "fast"},
    {"Secret", "type", "kubernetes.io/service-account-token"},
};

struct walk {
    struct fixture *f;
    const char *kind;
    struct config privileged, baseline;
    struct {
        const char *name, *section; /* of the object it holds or lists; NULL: the last one */
        bool list;
    } path[DEPTH_MAX];
    size_t depth, visited[ROWS_MAX], failed, tried;
    bool as_ephemeral;
};

static cJSON *yaml(struct walk *w, const char *text)
{
    return doc(w->f, text);
}

static struct str path_text(struct walk *w)
{
    struct str ret = str_c(w->kind);

    for (size_t i = 0; i < w->depth; i++)
        ret = arena_printf(w->f->a, "%.*s.%s%s", STR_F(ret), w->path[i].name,
                           w->path[i].list ? "[]" : "");
    return ret;
}

static void fail_row(struct walk *w, const char *what, const cJSON *got)
{
    print_error("%.*s: %s%s%.*s\n", STR_F(path_text(w)), what, got ? ": " : "",
                STR_F(got ? json_text(w->f->a, got) : STR("")));
    w->failed++;
}

/* ---- a value of a type ---- */

static const char *text_at(uint32_t offset)
{
    return schema_text(&SCHEMA_BUILTIN, offset);
}

static cJSON *value_of(struct walk *w, uint32_t node);

static cJSON *object_of(struct walk *w, const struct schema_node *n)
{
    cJSON *ret = json_new_object(w->f->a);

    for (uint32_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &SCHEMA_BUILTIN.fields[n->first_field + i];

        if (text_at(field->name)[0])
            json_set(w->f->a, ret, text_at(field->name), value_of(w, field->node));
    }
    return ret;
}

static cJSON *value_of(struct walk *w, uint32_t node)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);
    struct arena *a = w->f->a;
    struct str words = str_c(n->keys ? text_at(n->keys) : "x");
    cJSON *ret;

    switch (n->kind) {
    case SCHEMA_OBJECT:
        return object_of(w, n);
    case SCHEMA_LIST:
        ret = json_new_array(a);
        json_append(ret, value_of(w, n->elem));
        return ret;
    case SCHEMA_MAP:
        ret = json_new_object(a);
        json_set(a, ret, "k", value_of(w, n->elem));
        return ret;
    case SCHEMA_BOOL:
        return json_new_bool(a, true);
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_INT_OR_STRING:
        return json_new_i64(a, 3);
    case SCHEMA_QUANTITY:
        return json_new_string(a, STR("1"));
    case SCHEMA_BYTES:
        return json_new_string(a, STR("eA=="));
    default:
        return json_new_string(a, str_cut(&words, '\n'));
    }
}

static cJSON *value_at(struct walk *w, const struct translate_field *row, uint32_t node)
{
    for (size_t i = 0; i < COUNT(VALUES); i++)
        if (!strcmp(VALUES[i].section, row->section) && !strcmp(VALUES[i].field, row->field))
            return yaml(w, VALUES[i].json);
    if (row->treatment == TREAT_UP_REWRITE)
        return json_new_string(w->f->a, STR("pod p-aaaaaaaaaaaaaaaa of team-research"));
    return value_of(w, node);
}

/* ---- an object with it ---- */

static cJSON *around(struct walk *w, const char *section)
{
    for (size_t i = 0; section && i < COUNT(AROUND); i++)
        if (!strcmp(AROUND[i].section, section))
            return yaml(w, AROUND[i].json);
    return json_new_object(w->f->a);
}

/* The object that has the last field of the path, made where it is not there. */
static cJSON *parent_in(struct walk *w, cJSON *object)
{
    for (size_t i = 0; i + 1 < w->depth; i++) {
        cJSON *next = json_get(object, w->path[i].name);

        if (!next)
            next =
                json_set(w->f->a, object, w->path[i].name,
                         w->path[i].list ? json_new_array(w->f->a) : around(w, w->path[i].section));
        if (w->path[i].list && !json_first(next))
            json_append(next, around(w, w->path[i].section));
        object = w->path[i].list ? json_first(next) : next;
    }
    return object;
}

static bool covers(const cJSON *have, const cJSON *want)
{
    if (!json_is_object(want))
        return json_equal(have, want);
    json_each(member, want)
    {
        if (!json_is_object(have) || !json_get(have, member->string) ||
            !covers(json_get(have, member->string), member))
            return false;
    }
    return true;
}

/* Something at the path below object, and, with want, something that holds it. */
static bool found_from(struct walk *w, size_t from, const cJSON *object, const cJSON *want)
{
    const cJSON *at = json_get(object, w->path[from].name);

    if (!at || json_is_null(at))
        return false;
    if (from + 1 == w->depth)
        return !want || covers(at, want);
    if (!w->path[from].list)
        return found_from(w, from + 1, at, want);
    json_each(item, at)
    {
        if (found_from(w, from + 1, item, want))
            return true;
    }
    return false;
}

static bool found(struct walk *w, const cJSON *object, const cJSON *want)
{
    return object && found_from(w, 0, object, want);
}

static bool is_pod(const struct walk *w)
{
    return !strcmp(w->kind, "Pod");
}

static bool is_pools(const struct translate_field *row)
{
    static const char *const fields[] = {"priorityClassName", "runtimeClassName", "schedulerName"};

    for (size_t i = 0; i < COUNT(fields); i++)
        if (!strcmp(row->field, fields[i]))
            return true;
    return false;
}

static cJSON *plain(struct walk *w, const struct translate_field *row)
{
    cJSON *ret =
        yaml(w, "{metadata: {name: p, namespace: ml, uid: u, labels: {app: a}}, spec: {}}");
    const char *spec = "{containers: [{name: c, image: i}]}";

    if (is_pod(w) && is_pools(row))
        spec = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: '1'}}}]}";
    else if (is_pod(w) && w->as_ephemeral)
        spec = "{containers: [{name: c}], ephemeralContainers: [{name: e}]}";
    if (is_pod(w))
        json_set(w->f->a, ret, "spec", yaml(w, spec));
    return ret;
}

/* ---- down ---- */

static int pod_down(struct walk *w, const cJSON *v, cJSON **ret)
{
    struct fixture *f = w->f;
    struct pool_choice choice;

    if (pool_resolve(f->a, f->tenant.config, STR("ml"), v, NULL, &choice, &f->err))
        return -1;
    if (w->as_ephemeral)
        return translate_ephemeral(f->a, &f->tenant, &choice, v, NULL, ret, &f->err);
    return translate_pod(f->a, &f->tenant, &choice, v, NULL, ret, &f->err);
}

static int down(struct walk *w, const cJSON *v, cJSON **ret)
{
    struct fixture *f = w->f;

    *ret = NULL;
    err_clear(&f->err);
    if (is_pod(w))
        return pod_down(w, v, ret);
    if (!strcmp(w->kind, "Service"))
        return translate_service(f->a, &f->tenant, v, ret, &f->err);
    if (!strcmp(w->kind, "PersistentVolumeClaim"))
        return translate_pvc(f->a, &f->tenant, v, NULL, ret, &f->err);
    *ret = !strcmp(w->kind, "ConfigMap") ? translate_config_map(f->a, &f->tenant, v)
                                         : translate_secret(f->a, &f->tenant, v);
    return 0;
}

struct tried {
    cJSON *value, *without, *with; /* the host objects; NULL: refused */
    struct str refusal;
};

static struct tried try_value(struct walk *w, const struct translate_field *row, uint32_t node)
{
    struct tried t = {.value = value_at(w, row, node)};
    cJSON *v = plain(w, row), *parent = parent_in(w, v);

    if (down(w, v, &t.without))
        t.without = NULL;
    json_set(w->f->a, parent, row->field, t.value);
    if (down(w, v, &t.with)) {
        t.refusal = arena_str(w->f->a, w->f->err.message);
        t.with = NULL;
    }
    return t;
}

static bool names_field(struct walk *w, struct str refusal, const struct translate_field *row)
{
    return str_contains(refusal, str_c(row->field)) ||
           str_contains(refusal, str_c(w->path[w->depth - 2].name));
}

static void check_privileged(struct walk *w, const struct translate_field *row, uint32_t node)
{
    struct tried t = try_value(w, row, node);

    if (found(w, t.with, NULL))
        fail_row(w, "is sent at level baseline", t.with);
    w->f->tenant.config = &w->privileged;
    t = try_value(w, row, node);
    if (!found(w, t.with, NULL))
        fail_row(w, "is not sent at level privileged", t.with);
    w->f->tenant.config = &w->baseline;
}

static void check_refused(struct walk *w, const struct translate_field *row, const struct tried *t)
{
    if (t->with)
        fail_row(w, "is not refused", t->with);
    else if (!names_field(w, t->refusal, row))
        fail_row(w, arena_cstr(w->f->a, t->refusal), NULL);
}

/* Of an object that is let through: what the row promises, or NULL. */
static const char *broken_promise(struct walk *w, const struct translate_field *row,
                                  const struct tried *t)
{
    bool same = t->without && json_equal(t->without, t->with);
    bool sent = found(w, t->with, t->value), there = found(w, t->with, NULL);

    switch (row->treatment) {
    case TREAT_PASS:
        return sent ? NULL : "is not sent as it is";
    case TREAT_REWRITE:
        return !sent && there ? NULL : "is not rewritten";
    case TREAT_MOVE:
        return !sent && !same ? NULL : "does not go down as another field";
    case TREAT_OWN:
        return same && there ? NULL : "is not Sublet's own";
    case TREAT_DROP:
        return same && !there ? NULL : "has an effect";
    default:
        return "has another treatment";
    }
}

static void check_down(struct walk *w, const struct translate_field *row, uint32_t node)
{
    struct tried t;
    const char *broken;

    if (row->treatment == TREAT_PRIVILEGED) {
        check_privileged(w, row, node);
        return;
    }
    t = try_value(w, row, node);
    if (row->treatment == TREAT_REFUSE) {
        check_refused(w, row, &t);
    } else if (!t.with) {
        fail_row(w, arena_cstr(w->f->a, t.refusal), NULL);
    } else {
        broken = broken_promise(w, row, &t);
        if (broken)
            fail_row(w, broken, t.with);
    }
}

/* ---- up ---- */

static cJSON *status_up(struct walk *w, const cJSON *host, const cJSON *v)
{
    struct fixture *f = w->f;
    cJSON *status;

    if (is_pod(w))
        status = translate_pod_status_up(f->a, &f->tenant, host, v, true);
    else if (!strcmp(w->kind, "Service"))
        status = translate_service_status_up(f->a, host, v);
    else
        status = translate_pvc_status_up(f->a, &f->tenant, host, v);
    return json_object(f->a, JSON("status", status ? status : json_new_object(f->a)));
}

static void check_up(struct walk *w, const struct translate_field *row, uint32_t node)
{
    cJSON *value = value_at(w, row, node);
    cJSON *host = yaml(w, "{metadata: {name: p-aaaaaaaaaaaaaaaa}, status: {}}"), *up;
    const cJSON *v = yaml(
        w, "{metadata: {name: p, namespace: ml, generation: 7}, status: {qosClass: Own, old: x, "
           "resourceClaimStatuses: [{name: own}]},\n"
           " spec: {containers: [{name: c}], initContainers: [{name: c}],\n"
           "  ephemeralContainers: [{name: c}]}}");
    bool same, there;

    json_set(w->f->a, parent_in(w, host), row->field, value);
    up = status_up(w, host, v);
    same = found(w, up, value);
    there = found(w, up, NULL);
    if (row->treatment == TREAT_UP && !same)
        fail_row(w, "does not come up", up);
    else if (row->treatment == TREAT_UP_REWRITE && (same || !there))
        fail_row(w, "is not translated", up);
    else if (row->treatment == TREAT_UP_OWN && (same || !there))
        fail_row(w, "is not the virtual cluster's", up);
    else if (row->treatment == TREAT_UP_NONE && there)
        fail_row(w, "comes up", up);
}

/* ---- the walk ---- */

static const struct schema_node *object_in(uint32_t node, bool *list)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);

    *list = n->kind == SCHEMA_LIST;
    return *list ? schema_node(&SCHEMA_BUILTIN, n->elem) : n;
}

static void walk_section(struct walk *w, const char *section, const struct schema_node *n);

static void walk_field(struct walk *w, const char *section, const char *name, uint32_t node)
{
    const struct translate_field *row = translate_field(section, str_c(name));
    const struct schema_node *child;
    bool status;

    assert_true(w->depth < DEPTH_MAX);
    w->path[w->depth].name = name;
    status = !strcmp(w->path[0].name, "status");
    w->path[w->depth].section = row && row->treatment == TREAT_INSIDE ? row->text : NULL;
    child = object_in(node, &w->path[w->depth++].list);
    if (w->depth == 2)
        w->as_ephemeral = !strcmp(name, "ephemeralContainers");
    if (!row) {
        fail_row(w, "has no row in tbl/fields.h", NULL);
    } else {
        w->visited[row - TRANSLATE_FIELDS]++;
        if (row->treatment == TREAT_INSIDE && child->kind != SCHEMA_OBJECT)
            fail_row(w, "has no fields", NULL);
        else if (row->treatment == TREAT_INSIDE)
            walk_section(w, row->text, child);
        else if (status != (row->treatment >= TREAT_UP))
            fail_row(w, "goes the other way", NULL);
        else
            (status ? check_up : check_down)(w, row, node);
        w->tried += row->treatment != TREAT_INSIDE;
    }
    w->depth--;
}

static void walk_section(struct walk *w, const char *section, const struct schema_node *n)
{
    for (uint32_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &SCHEMA_BUILTIN.fields[n->first_field + i];
        const char *name = text_at(field->name);

        if (!*name || (!w->depth && (!strcmp(name, "apiVersion") || !strcmp(name, "kind"))))
            continue;
        walk_field(w, section, name, field->node);
    }
}

static void load(struct walk *w, const char *level, struct config *ret)
{
    struct fixture *f = w->f;

    use_config(f, arena_cstr(f->a, arena_printf(f->a,
                                                "%spolicy: {podSecurity: %s, "
                                                "storageClasses: [fast, slow]}\n",
                                                POOL, level)));
    *ret = f->config;
}

static void every_field(void **state)
{
    static const char *const kinds[] = {"Pod", "Service", "PersistentVolumeClaim", "ConfigMap",
                                        "Secret"};
    struct walk w = {.f = *state};

    assert_true(TRANSLATE_N_FIELDS <= ROWS_MAX);
    load(&w, "privileged", &w.privileged);
    load(&w, "baseline", &w.baseline);
    w.f->tenant.config = &w.baseline;
    w.f->tenant.dns_ip = STR("10.96.0.7");
    for (size_t i = 0; i < COUNT(kinds); i++) {
        uint32_t root = schema_builtin_root(STR(""), STR("v1"), str_c(kinds[i]));

        w.kind = kinds[i];
        walk_section(&w, kinds[i], schema_node(&SCHEMA_BUILTIN, root));
    }
    for (size_t i = 0; i < TRANSLATE_N_FIELDS; i++) {
        const struct translate_field *row = &TRANSLATE_FIELDS[i];

        if (w.visited[i])
            continue;
        print_error("%s.%s: there is no such field, or it has two rows\n", row->section,
                    row->field);
        w.failed++;
    }
    assert_int_equal(w.failed, 0);
    assert_true(w.tried > 800);
}

static void paths(void **state)
{
    static const struct {
        const char *kind, *path, *section, *field;
    } cases[] = {
        {"Pod", "spec.subdomain", "PodSpec", "subdomain"},
        {"Pod", "spec.containers[0].env[12].valueFrom.secretKeyRef.name", "KeySelector", "name"},
        {"Pod", "spec.tolerations[1].key", "PodSpec", "tolerations"},
        {"Pod", "metadata.labels", "ObjectMeta", "labels"},
        {"Service", "spec.ports[0]", "ServiceSpec", "ports"},
        {"Secret", "data.tls.crt", "Secret", "data"},
        {"Pod", "spec.newer", NULL, NULL},
        {"Node", "spec", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct translate_field *row =
            translate_field_at(str_c(cases[i].kind), str_c(cases[i].path));

        assert_true(!row == !cases[i].section);
        if (row) {
            assert_string_equal(row->section, cases[i].section);
            assert_string_equal(row->field, cases[i].field);
        }
    }
}

static int setup(void **state)
{
    *state = fixture_new("");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_field, setup, teardown),
        cmocka_unit_test_setup_teardown(paths, setup, teardown),
    };

    return cmocka_run_group_tests_name("translate/fields", tests, NULL, NULL);
}
