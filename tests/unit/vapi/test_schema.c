/* SPDX-License-Identifier: Apache-2.0
 *
 * The generated table and the walks over it: look-ups, facts that others stand on, pruning,
 * defaults, strict errors, and the limits of normalising. */

#include "test.h"

#include <sublet/spelling.h>

static uint32_t root(const char *group, const char *version, const char *kind)
{
    return schema_builtin_root(str_c(group), str_c(version), str_c(kind));
}

/* The field at a dotted path; "[]" enters a list. */
static const struct schema_field *field_at(uint32_t node, const char *path)
{
    const struct schema_field *field = NULL;
    struct str rest = str_c(path);

    while (rest.p) {
        struct str name = str_cut(&rest, '.');

        if (str_eqc(name, "[]")) {
            node = schema_node(&SCHEMA_BUILTIN, node)->elem;
            continue;
        }
        field = schema_field(&SCHEMA_BUILTIN, node, name);
        if (!field)
            fail_msg("no field %.*s in %s", STR_F(name), path);
        node = field->node;
    }
    return field;
}

static const struct schema_node *node_of(const struct schema_field *field)
{
    return schema_node(&SCHEMA_BUILTIN, field->node);
}

static const char *text(uint32_t offset)
{
    return schema_text(&SCHEMA_BUILTIN, offset);
}

static void roots(void **state)
{
    (void)state;
    assert_int_not_equal(root("", "v1", "Pod"), 0);
    assert_int_not_equal(root("apps", "v1", "Deployment"), 0);
    assert_int_not_equal(root("autoscaling", "v2", "HorizontalPodAutoscaler"), 0);
    assert_int_not_equal(root("policy", "v1", "Eviction"), 0);
    assert_int_not_equal(root("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), 0);
    assert_int_not_equal(root("apiregistration.k8s.io", "v1", "APIService"), 0);
    assert_int_equal(root("", "v1", "Deployment"), 0);
    assert_int_equal(root("apps", "v1beta1", "Deployment"), 0);
    assert_int_equal(root("", "", ""), 0);
    assert_int_equal(root("zzz", "v1", "Pod"), 0);
}

/* Upstream registers the options and Status in every group. */
static void common_kinds_are_in_every_group(void **state)
{
    uint32_t options = root("meta.k8s.io", "v1", "DeleteOptions");

    (void)state;
    assert_int_not_equal(options, 0);
    assert_int_equal(root("", "v1", "DeleteOptions"), options);
    assert_int_equal(root("batch", "v1", "DeleteOptions"), options);
    assert_int_equal(root("example.com", "v1alpha1", "DeleteOptions"), options);
    assert_int_not_equal(root("", "v1", "Status"), 0);
}

static void every_row_is_in_order(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SCHEMA_BUILTIN.n_nodes; i++) {
        const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, i);

        assert_true(n->elem < SCHEMA_BUILTIN.n_nodes);
        for (uint32_t f = 0; n->kind == SCHEMA_OBJECT && f < n->n_fields; f++) {
            const struct schema_field *field = &SCHEMA_BUILTIN.fields[n->first_field + f];

            assert_true(n->first_field + f < SCHEMA_BUILTIN.n_fields);
            assert_true(field->node < SCHEMA_BUILTIN.n_nodes);
            if (f && !(field->flags & FIELD_INLINE))
                assert_true(strcmp(text(field[-1].name), text(field->name)) < 0);
            if (field->flags & FIELD_INLINE)
                assert_null(schema_field(&SCHEMA_BUILTIN, i, str_c(text(field->name))));
            else
                assert_ptr_equal(schema_field(&SCHEMA_BUILTIN, i, str_c(text(field->name))), field);
            if (field->pb)
                assert_ptr_equal(schema_field_pb(&SCHEMA_BUILTIN, i, field->pb), field);
        }
    }
}

static void look_ups(void **state)
{
    uint32_t pod = root("", "v1", "Pod");
    uint32_t labels = field_at(pod, "metadata.labels")->node;

    (void)state;
    assert_null(schema_field(&SCHEMA_BUILTIN, pod, STR("Spec")));
    assert_null(schema_field(&SCHEMA_BUILTIN, pod, STR("")));
    assert_null(schema_field(&SCHEMA_BUILTIN, pod, ((struct str){"spec\0x", 6})));
    assert_null(schema_field_pb(&SCHEMA_BUILTIN, pod, 99));
    assert_null(schema_field_pb(&SCHEMA_BUILTIN, pod, 0));
    assert_int_equal(schema_child(&SCHEMA_BUILTIN, pod, STR("spec")), field_at(pod, "spec")->node);
    assert_int_equal(schema_child(&SCHEMA_BUILTIN, pod, STR("nope")), 0);
    assert_int_equal(
        schema_node(&SCHEMA_BUILTIN, schema_child(&SCHEMA_BUILTIN, labels, STR("x")))->kind,
        SCHEMA_STRING);
    assert_string_equal(text(node_of(field_at(pod, "spec"))->type_name),
                        "io.k8s.api.core.v1.PodSpec");
}

/* What patches and server-side apply read from the table. */
static void facts_of_fields(void **state)
{
    uint32_t pod = root("", "v1", "Pod"), service = root("", "v1", "Service");
    const struct schema_field *containers = field_at(pod, "spec.containers");
    const struct schema_field *ports = field_at(pod, "spec.containers.[].ports");
    const struct schema_field *budget =
        field_at(root("policy", "v1", "PodDisruptionBudget"), "spec.selector");

    (void)state;
    assert_int_equal(node_of(containers)->list_type, LIST_MAP);
    assert_string_equal(text(node_of(containers)->keys), "name");
    assert_int_equal(containers->patch, PATCH_MERGE);
    assert_string_equal(text(containers->patch_key), "name");
    assert_int_equal(containers->flags, FIELD_REQUIRED | FIELD_PRINTED);

    assert_string_equal(text(ports->patch_key), "containerPort");
    assert_memory_equal(text(node_of(ports)->keys), "containerPort\0protocol\0", 24);
    assert_true(field_at(pod, "spec.containers.[].ports.[].protocol")->flags & FIELD_HAS_DEFAULT);
    assert_string_equal(text(field_at(service, "spec.ports.[].protocol")->default_json), "\"TCP\"");

    assert_int_equal(field_at(pod, "spec.volumes")->patch, PATCH_MERGE | PATCH_RETAIN_KEYS);
    assert_int_equal(budget->patch, PATCH_WHOLE);
    assert_int_equal(node_of(budget)->list_type, LIST_ATOMIC);
    assert_int_equal(node_of(field_at(pod, "metadata.finalizers"))->list_type, LIST_SET);
    assert_int_equal(node_of(field_at(pod, "spec.containers.[].command"))->list_type, LIST_ATOMIC);
    assert_int_equal(node_of(field_at(pod, "spec.nodeSelector"))->list_type, LIST_ATOMIC);
    assert_int_equal(node_of(field_at(pod, "metadata.labels"))->list_type, LIST_MAP);
    assert_true(field_at(pod, "metadata.creationTimestamp")->flags & FIELD_OMITZERO);
    assert_int_equal(field_at(pod, "spec.containers")->pb, 2);
}

static cJSON *parse(struct arena *a, const char *json)
{
    struct err err;
    cJSON *node;

    err_init(&err, a);
    if (json_parse(a, str_c(json), &node, &err))
        fail_msg("%s: %.*s", json, STR_F(err.message));
    return node;
}

static void drops_unknown_fields(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *pod = parse(
        a, "{\"spec\":{\"x\":1,\"containers\":[{\"name\":\"a\",\"y\":[]}],\"volumes\":[{\"z\":1,"
           "\"emptyDir\":{}}]},\"metadata\":{\"labels\":{\"any\":\"1\"}},\"\":2}");

    struct err err;

    (void)state;
    err_init(&err, a);
    assert_int_equal(schema_normalise(a, &SCHEMA_BUILTIN, root("", "v1", "Pod"), pod, NULL, &err),
                     0);
    assert_str(json_text(a, pod),
               "{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{}}],\"volumes\":"
               "[{\"emptyDir\":{},\"name\":\"\"}]},\"metadata\":{\"labels\":{\"any\":\"1\"}},"
               "\"status\":{}}");
    arena_free(a);
}

/* The same quantity in another spelling, and nothing else, is spelled as it is now. */
static void amounts_are_spelled_alike(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *before = parse(
        a,
        "{\"metadata\":{\"labels\":{\"l\":\"1Gi\"}},\"spec\":{\"containers\":[{\"image\":\"1Gi\","
        "\"resources\":{\"limits\":{\"memory\":\"1Gi\",\"cpu\":\"1\"}}},{\"name\":\"b\"}]}}");
    cJSON *now = parse(
        a, "{\"metadata\":{\"labels\":{\"l\":\"1024Mi\"}},\"spec\":{\"containers\":[{\"image\":"
           "\"1024Mi\",\"resources\":{\"limits\":{\"memory\":\"1024Mi\",\"cpu\":\"2\"}}}]}}");
    struct str was = json_text(a, before);

    (void)state;
    assert_str(
        json_text(a, schema_respell(a, &SCHEMA_BUILTIN, root("", "v1", "Pod"), before, now)),
        "{\"metadata\":{\"labels\":{\"l\":\"1Gi\"}},\"spec\":{\"containers\":[{\"image\":\"1Gi\","
        "\"resources\":{\"limits\":{\"memory\":\"1024Mi\",\"cpu\":\"1\"}}},{\"name\":\"b\"}]}}");
    assert_true(str_eq(json_text(a, before), was));
    arena_free(a);
}

static void defaults_below_what_is_there(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *pod = parse(
        a,
        "{\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":1},{\"protocol\":\"UDP\"}]}]}}");

    (void)state;
    schema_default(a, &SCHEMA_BUILTIN, root("", "v1", "Pod"), pod);
    assert_str(json_text(a, pod),
               "{\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":1,\"protocol\":"
               "\"TCP\"},{\"protocol\":\"UDP\"}]}]}}");
    arena_free(a);
}

static void strict_errors_once_and_few(void **state)
{
    struct arena *a = arena_new(0);
    struct strict_errors strict = {.arena = a};

    (void)state;
    strict_add(NULL, "unknown field", STR("x"));
    strict_add(&strict, "unknown field", STR("a.b"));
    strict_add(&strict, "unknown field", STR("a.b"));
    strict_add(&strict, "duplicate field", STR("a.b"));
    strict_add(&strict, "unknown field", STR("q\"\\\n\x01\x7f\xc3\xa9"));
    assert_int_equal(strict.n, 3);
    assert_str(strict.text[0], "unknown field \"a.b\"");
    assert_str(strict.text[1], "duplicate field \"a.b\"");
    assert_str(strict.text[2], "unknown field \"q\\\"\\\\\\n\\x01\\x7f\xc3\xa9\"");
    for (int i = 0; i < 1000; i++)
        strict_add(&strict, "unknown field", arena_printf(a, "f%d", i));
    assert_int_equal(strict.n, 100);
    arena_free(a);
}

static void check_order(struct strict_errors *strict, const char *json, const char *want)
{
    strict_order(strict, str_c(json));
    assert_str(strict_join(strict), want);
}

static void strict_errors_in_order_of_the_text(void **state)
{
    struct arena *a = arena_new(0);
    struct strict_errors one = {.arena = a}, two = {.arena = a}, three = {.arena = a};

    (void)state;
    strict_add(&one, "duplicate field", STR("u.x"));
    strict_add(&one, "duplicate field", STR("d"));
    strict_add(&one, "duplicate field", STR("l[1].e.d"));
    strict_add(&one, "duplicate field", STR("q\"k"));
    strict_add(&one, "unknown field", STR("u"));
    strict_add(&one, "unknown field", STR("nowhere"));
    strict_add(&one, "unknown field", STR("b"));
    check_order(&one,
                " {\"d\" : [\"]},\\\"\"], \"u\":{\"x\":1,\"x\":-2e3} "
                ",\"l\":[{},{\"e\":{\"d\":1,\"d\":true}}],"
                "\"b\":null,\"q\\u0022k\":{}, \"d\":2,\"d\":3,\"q\\\"k\":1}\n",
                "unknown field \"u\", duplicate field \"l[1].e.d\", unknown field \"b\", "
                "duplicate field \"d\", duplicate field \"q\\\"k\", unknown field \"nowhere\"");
    strict_add_line(&two, STR("line 3: key \"a\" already set in map"));
    strict_add_line(&two, STR("line 4: key \"a\" already set in map"));
    strict_add(&two, "unknown field", STR("b"));
    assert_str(strict_join(&two),
               "yaml: unmarshal errors:\n  line 3: key \"a\" already set in map\n  "
               "line 4: key \"a\" already set in map, unknown field \"b\"");
    /* Not JSON: all stay. */
    strict_add(&three, "unknown field", STR("b"));
    strict_add(&three, "unknown field", STR("a"));
    check_order(&three, "{\"a\":[{\"", "unknown field \"a\", unknown field \"b\"");
    arena_free(a);
}

static int normalise(struct arena *a, const char *json, struct err *err)
{
    err_init(err, a);
    return schema_normalise(a, &SCHEMA_BUILTIN, root("apps", "v1", "Deployment"), parse(a, json),
                            NULL, err);
}

/* The words kubectl's users know. */
static void type_errors(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;

    (void)state;
    assert_int_equal(
        normalise(
            a, "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"spec\":{\"replicas\":\"x\"}}",
            &err),
        -1);
    assert_ptr_equal(err.kind, &ERR_BAD_REQUEST);
    assert_str(err.message,
               "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot "
               "unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32");
    assert_int_equal(normalise(a, "{\"spec\":[]}", &err), -1);
    assert_str(err.message,
               "json: cannot unmarshal array into Go struct field Deployment.spec of type "
               "v1.DeploymentSpec");
    arena_free(a);
}

/* A server decodes into its types: what they do not have is reported and dropped. */
static void unknown_fields_are_dropped(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *object = parse(a, "{\"spec\":{\"newer\":{\"a\":null,\"b\":[]}}}");
    struct strict_errors strict = {.arena = a};
    struct err err;

    (void)state;
    err_init(&err, a);
    assert_int_equal(
        schema_normalise(a, &SCHEMA_BUILTIN, root("", "v1", "Pod"), object, &strict, &err), 0);
    assert_null(json_path(object, "spec.newer"));
    assert_int_equal(strict.n, 1);
    assert_str(strict.text[0], "unknown field \"spec.newer\"");
    arena_free(a);
}

/* Zero values make {} a hundred bytes: the arena's limit must hold. */
static void growth_is_bounded(void **state)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct buf b = BUF_INIT(0);
    struct err err;
    cJSON *object;

    (void)state;
    err_init(&err, a);
    buf_addc(&b, "{\"spec\":{\"containers\":[{}");
    for (int i = 0; i < 400000; i++)
        buf_addc(&b, ",{}");
    buf_addc(&b, "]}}");
    assert_int_equal(json_parse(a, buf_str(&b), &object, &err), 0);
    assert_int_equal(
        schema_normalise(a, &SCHEMA_BUILTIN, root("", "v1", "Pod"), object, NULL, &err), -1);
    assert_str(err.message, "the object is too large");
    buf_fini(&b);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots),
        cmocka_unit_test(common_kinds_are_in_every_group),
        cmocka_unit_test(every_row_is_in_order),
        cmocka_unit_test(look_ups),
        cmocka_unit_test(facts_of_fields),
        cmocka_unit_test(drops_unknown_fields),
        cmocka_unit_test(amounts_are_spelled_alike),
        cmocka_unit_test(defaults_below_what_is_there),
        cmocka_unit_test(strict_errors_once_and_few),
        cmocka_unit_test(strict_errors_in_order_of_the_text),
        cmocka_unit_test(type_errors),
        cmocka_unit_test(unknown_fields_are_dropped),
        cmocka_unit_test(growth_is_bounded),
    };

    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
