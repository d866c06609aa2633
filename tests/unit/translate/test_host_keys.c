/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and annotations that the host wrote: which come up, whose they are afterwards, and that
 * none of them goes down again under its own name. */

#include <string.h>

#include "test.h"

#define RECORD "sublet.dev/host-keys"

static int setup(void **state)
{
    *state =
        fixture_new("policy: {labels: {allow: [both.example/], fromHost: [zone, both.example/]},"
                    " annotations: {allow: [both.example/], fromHost: [lb.example/, both.example/,"
                    " nvidia.com/]}}");
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

static bool up(struct fixture *f, cJSON *v, const char *metadata)
{
    cJSON *host = json_new_object(f->a);

    json_set(f->a, host, "metadata", doc(f, metadata));
    return translate_host_keys_up(f->a, &f->tenant, host, v);
}

static cJSON *object(struct fixture *f, const char *metadata)
{
    cJSON *v = json_new_object(f->a);

    json_set(f->a, v, "metadata", doc(f, metadata));
    return v;
}

/* The metadata without the record, which has to be there, or not. */
static void check(struct fixture *f, const cJSON *v, bool recorded, const char *want,
                  const char *file, int line)
{
    cJSON *meta = json_copy(f->a, json_get(v, "metadata")), *notes = json_get(meta, "annotations");

    _assert_int_equal(json_get(notes, RECORD) != NULL, recorded, file, line);
    json_remove(notes, RECORD);
    if (notes && !json_count(notes))
        json_remove(meta, "annotations");
    check_json(f->a, meta, want, file, line);
}
#define is_as(recorded, want) check(f, v, (recorded), (want), __FILE__, __LINE__)

static void listed_keys_come_up(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object(f, "{name: a}");

    assert_true(up(f, v,
                   "{labels: {zone: z1, other: o, sublet.dev/cluster: c}, annotations:"
                   " {lb.example/address: 192.0.2.1, sublet.dev/name: a, other: o,"
                   " nvidia.com/nouse-gputype: x, nvidia.com/seen: once}}"));
    is_as(true, "{name: a, annotations: {lb.example/address: 192.0.2.1, nvidia.com/seen: once},"
                " labels: {zone: z1}}");
    assert_false(up(f, v,
                    "{labels: {zone: z1}, annotations: {lb.example/address: 192.0.2.1,"
                    " nvidia.com/seen: once}}"));
    assert_true(up(f, v, "{labels: {zone: z2}, annotations: {nvidia.com/seen: once}}"));
    is_as(true, "{name: a, annotations: {nvidia.com/seen: once}, labels: {zone: z2}}");
    assert_true(up(f, v, "{labels: {}}"));
    is_as(false, "{name: a}");
    assert_false(up(f, v, "{}"));
}

static void what_is_the_tenants_stays(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object(f, "{name: a, labels: {zone: mine}, annotations: {lb.example/a: mine}}");

    assert_false(up(f, v, "{labels: {zone: z1}, annotations: {lb.example/a: h}}"));
    assert_false(up(f, v, "{}"));

    /* Taken over by the tenant after it came up; what the tenant removes comes up again. */
    v = object(f, "{name: a}");
    assert_true(up(f, v, "{labels: {zone: z1}, annotations: {lb.example/a: h, lb.example/b: h}}"));
    json_set_str(f->a, json_path(v, "metadata.labels"), "zone", STR("mine"));
    json_remove(json_path(v, "metadata.annotations"), "lb.example/a");
    assert_true(up(f, v, "{labels: {zone: z1}, annotations: {lb.example/a: h, lb.example/b: h}}"));
    is_as(true, "{name: a, annotations: {lb.example/b: h, lb.example/a: h}, labels: {zone: mine}}");
    assert_true(up(f, v, "{}"));
    is_as(false, "{name: a, labels: {zone: mine}}");

    /* Without the record nothing is the host's. */
    v = object(f, "{name: a}");
    assert_true(up(f, v, "{annotations: {lb.example/a: h}}"));
    json_remove(json_path(v, "metadata.annotations"), RECORD);
    assert_false(up(f, v, "{}"));
    is_as(false, "{name: a, annotations: {lb.example/a: h}}");
}

static void no_record_that_a_tenant_wrote_harms(void **state)
{
    static const char *const forged[] = {
        "",
        "=",
        ",,,,",
        "l:",
        "l:zone",
        "l:zone=",
        "x:zone=aaaaaaaaaaaaaaaa",
        "zone=aaaaaaaaaaaaaaaa",
        "l:zone=aaaaaaaaaaaaaaaa",
        "l:zone=aaaaaaaaaaaaaaaa,l:zone=bbbbbbbbbbbbbbbb",
        "l:zone=aaaaaaaaaaaaaaaa=",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(forged); i++) {
        cJSON *v = object(f, "{name: a, labels: {zone: mine}, annotations: {k: v}}");

        json_set_str(f->a, json_path(v, "metadata.annotations"), RECORD, str_c(forged[i]));
        assert_true(up(f, v, "{labels: {zone: z1}}"));
        is_as(false, "{name: a, labels: {zone: mine}, annotations: {k: v}}");
    }
}

/* What the tenant wrote, or the admin's patches, is on record there. */
static void what_went_down_does_not_come_up(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object(f, "{name: a}");

    assert_false(up(f, v,
                    "{labels: {both.example/l: x}, annotations: {both.example/a: x,"
                    " sublet.dev/owned: 'l:both.example/l,a:both.example/a'}}"));
    assert_true(up(f, v,
                   "{labels: {both.example/l: x}, annotations: {both.example/a: x,"
                   " sublet.dev/owned: 'a:both.example/a'}}"));
    is_as(true, "{name: a, labels: {both.example/l: x}}");
}

static void what_came_up_does_not_go_down(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object(f, "{name: a, namespace: ml, uid: u, labels: {both.example/own: o}}"), *meta;

    assert_true(
        up(f, v, "{labels: {both.example/l: x, zone: z1}, annotations: {both.example/a: x}}"));
    meta = translate_metadata(f->a, &f->tenant, v, STR("h"));
    assert_null(json_path(meta, "annotations.both.example/a"));
    assert_null(json_get(json_get(meta, "annotations"), "both.example/a"));
    assert_null(json_get(json_get(meta, "annotations"), RECORD));
    assert_null(json_get(json_get(meta, "labels"), "both.example/l"));
    assert_null(json_get(json_get(meta, "labels"), "zone"));
    assert_str(json_str(json_get(json_get(meta, "labels"), "both.example/own")), "o");
    assert_str(json_str(json_get(json_get(meta, "annotations"), "sublet.dev/owned")),
               "l:both.example/own");

    /* A selector of the tenant's by a label that came up finds it. */
    json_each(label, translate_match_labels(f->a, &f->tenant, STR("ml"), doc(f, "{zone: z1}")))
        assert_true(json_equal(json_get(json_get(meta, "labels"), label->string), label));

    /* A value that the tenant has changed is the tenant's, and goes down as such. */
    json_set_str(f->a, json_path(v, "metadata.annotations"), "both.example/a", STR("mine"));
    meta = translate_metadata(f->a, &f->tenant, v, STR("h"));
    assert_str(json_str(json_get(json_get(meta, "annotations"), "both.example/a")), "mine");
}

/* Labels of other kinds than pods are selected by nothing on the host; without a change there the
 * host object is not written again. */
static void configured_kinds_do_not_change(void **state)
{
    struct fixture *f = *state;
    cJSON *v = doc(
        f, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: ml,"
           " uid: u}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}");
    const struct kind_rules *rules = translate_kind_rules(DOWN_DISRUPTION_BUDGETS);
    cJSON *before, *after;

    assert_ok(translate_kind(f->a, &f->tenant, rules, v, &before, &f->err));
    assert_true(
        up(f, v, "{labels: {zone: z1, both.example/l: x}, annotations: {lb.example/a: x}}"));
    assert_ok(translate_kind(f->a, &f->tenant, rules, v, &after, &f->err));
    assert_true(json_equal(before, after));
}

/* ---- names in values ---- */

static struct str shown_as_pool(void *ctx, struct str node)
{
    (void)ctx;
    return str_eqc(node, "gpu-1") ? STR("a100") : STR_NULL;
}

/* What an annotation of the host object of ml/a with this value is in the virtual object. */
static struct str comes_up_as(struct fixture *f, const char *value)
{
    cJSON *v = object(f, "{name: a, namespace: ml}"), *host = json_new_object(f->a);
    char host_name[64];

    translate_name(&f->tenant, STR("ml"), STR("a"), host_name);
    json_set_str(f->a, json_ensure_path(f->a, host, "metadata"), "name", str_c(host_name));
    json_set_str(f->a, json_ensure_path(f->a, host, "metadata.annotations"), "lb.example/a",
                 str_c(value));
    translate_host_keys_up(f->a, &f->tenant, host, v);
    return json_str(json_get(json_path(v, "metadata.annotations"), "lb.example/a"));
}

static void values_have_the_names_of_the_tenant(void **state)
{
    struct fixture *f = *state;
    struct translate_tenant other = f->tenant;
    char own[64], sibling[64], elsewhere[64], anothers[64];

    other.cluster_uid = STR("99999999-2222-3333-4444-555555555555");
    translate_name(&f->tenant, STR("ml"), STR("a"), own);
    translate_name(&f->tenant, STR("ml"), STR("web"), sibling);
    translate_name(&f->tenant, STR("db"), STR("web"), elsewhere);
    translate_name(&other, STR("ml"), STR("web"), anothers);

    assert_str(comes_up_as(f, arena_printf(f->a, "team-research/%s is behind %s", own, sibling).p),
               "ml/a is behind web");
    assert_str(comes_up_as(f, "[{\"name\": \"net\", \"ips\": [\"10.0.0.1\"]}]"),
               "[{\"name\": \"net\", \"ips\": [\"10.0.0.1\"]}]");
    assert_null(comes_up_as(f, elsewhere).p);
    assert_null(comes_up_as(f, arena_printf(f->a, "%s,%s", own, anothers).p).p);
    assert_null(comes_up_as(f, "system:serviceaccount:lb:controller").p);
    assert_null(comes_up_as(f, "system:node:gpu-1").p);
    assert_str(comes_up_as(f, "gpu-1"), "gpu-1");

    /* With sync.nodes perPool the names of nodes are hidden. */
    f->tenant.node_up = shown_as_pool;
    assert_null(comes_up_as(f, "on gpu-1, port 2").p);
    assert_str(comes_up_as(f, "on gpu-10, port 2"), "on gpu-10, port 2");
}

static void keys_do_not_have_names_of_the_host(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object(f, "{name: a, namespace: ml}"), *host = json_new_object(f->a);
    char own[64];

    translate_name(&f->tenant, STR("ml"), STR("a"), own);
    json_set_str(f->a, json_ensure_path(f->a, host, "metadata"), "name", str_c(own));
    json_set_str(f->a, json_ensure_path(f->a, host, "metadata.annotations"),
                 arena_printf(f->a, "lb.example/%s", own).p, STR("x"));
    assert_false(translate_host_keys_up(f->a, &f->tenant, host, v));
}

static cJSON *with_notes(struct fixture *f, size_t n, size_t bytes)
{
    cJSON *host = json_new_object(f->a),
          *notes = json_ensure_path(f->a, host, "metadata.annotations");
    char *value = arena_alloc(f->a, bytes + 1);

    memset(value, 'v', bytes);
    for (size_t i = 0; i < n; i++)
        json_set_str(f->a, notes, arena_printf(f->a, "lb.example/k%03zu", i).p,
                     (struct str){value, bytes});
    return host;
}

static size_t came_up(struct fixture *f, cJSON *v, size_t n, size_t bytes)
{
    const cJSON *notes;

    translate_host_keys_up(f->a, &f->tenant, with_notes(f, n, bytes), v);
    notes = json_path(v, "metadata.annotations");
    return (size_t)json_count(notes) - (json_get(notes, RECORD) ? 1 : 0);
}

static void all_is_bounded(void **state)
{
    struct fixture *f = *state;
    cJSON *v = object(f, "{name: a}"), *full;
    size_t total = 0;

    assert_int_equal(came_up(f, v, 200, 1), 64);
    assert_int_equal(came_up(f, v, 1, 4096), 1);
    assert_int_equal(came_up(f, v, 1, 4097), 0);
    assert_int_equal(came_up(f, v, 64, 4096), 7);
    json_each(note, json_path(v, "metadata.annotations")) total +=
        json_key(note).n + json_str(note).n;
    assert_true(total <= 32 << 10);
    assert_false(up(f, object(f, "{name: a}"),
                    "{labels: {zone: 'not a value', both.example/a: "
                    "a123456789012345678901234567890123456789012345678901234567890123456789}}"));

    /* Next to what the API permits nothing comes up that would make the object invalid. */
    full = json_copy(f->a, with_notes(f, 63, 4096));
    json_set_str(f->a, json_path(full, "metadata.annotations"), "k", STR("v"));
    assert_int_equal(came_up(f, full, 64, 4096), 64);
    full = json_copy(f->a, with_notes(f, 63, 4096));
    assert_true(up(f, full, "{annotations: {lb.example/new: x}}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(listed_keys_come_up, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_the_tenants_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(no_record_that_a_tenant_wrote_harms, setup, teardown),
        cmocka_unit_test_setup_teardown(what_went_down_does_not_come_up, setup, teardown),
        cmocka_unit_test_setup_teardown(what_came_up_does_not_go_down, setup, teardown),
        cmocka_unit_test_setup_teardown(configured_kinds_do_not_change, setup, teardown),
        cmocka_unit_test_setup_teardown(values_have_the_names_of_the_tenant, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_do_not_have_names_of_the_host, setup, teardown),
        cmocka_unit_test_setup_teardown(all_is_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
