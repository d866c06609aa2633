/* SPDX-License-Identifier: Apache-2.0 */
/* What a container on the host finds in its environment about an API: the kubelet's rules
 * (pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables) over a host whose Service
 * default/kubernetes is 10.96.0.1:443. */

#include "allowed.h"
#include "test.h"

#define HOST_IP "10.96.0.1"

/* pkg/kubelet/envvars of that Service. */
static const char *const HOST_ENV[][2] = {
    {"KUBERNETES_SERVICE_HOST", HOST_IP},
    {"KUBERNETES_SERVICE_PORT", "443"},
    {"KUBERNETES_SERVICE_PORT_HTTPS", "443"},
    {"KUBERNETES_PORT", "tcp://" HOST_IP ":443"},
    {"KUBERNETES_PORT_443_TCP", "tcp://" HOST_IP ":443"},
    {"KUBERNETES_PORT_443_TCP_PROTO", "tcp"},
    {"KUBERNETES_PORT_443_TCP_PORT", "443"},
    {"KUBERNETES_PORT_443_TCP_ADDR", HOST_IP},
};
enum { N_HOST_ENV = COUNT(HOST_ENV) };

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

static struct str value_of(const cJSON *env, struct str name)
{
    struct str ret = json_str(json_get_str(env, name));

    for (size_t i = 0; !json_get_str(env, name) && i < N_HOST_ENV; i++) {
        if (str_eqc(name, HOST_ENV[i][0]))
            ret = str_c(HOST_ENV[i][1]);
    }
    return ret;
}

/* $(NAME) is the value so far, or the host's. */
static struct str expand(struct fixture *f, const cJSON *env, struct str text)
{
    struct str rest = text, ret = STR("");
    size_t at;

    while ((at = str_find(rest, '$')) < rest.n) {
        struct str tail = str_from(rest, at + 2), name = str_cut(&tail, ')');

        ret = arena_printf(f->a, "%.*s%.*s%.*s", STR_F(ret), STR_F(str_sub(rest, 0, at)),
                           STR_F(value_of(env, name)));
        rest = tail;
    }
    return arena_printf(f->a, "%.*s%.*s", STR_F(ret), STR_F(rest));
}

/* Every reference to a ConfigMap is optional here, and none is there: such a variable is left out.
 */
static cJSON *environment(struct fixture *f, const cJSON *container)
{
    cJSON *ret = json_new_object(f->a);

    json_each(one, json_get(container, "env"))
    {
        struct str value = json_str(json_get(one, "value"));

        if (!json_get(one, "valueFrom"))
            json_set_str(f->a, ret, arena_cstr(f->a, json_str(json_get(one, "name"))),
                         expand(f, ret, value));
    }
    for (size_t i = 0; i < N_HOST_ENV; i++) {
        if (!json_get(ret, HOST_ENV[i][0]))
            json_set_str(f->a, ret, HOST_ENV[i][0], str_c(HOST_ENV[i][1]));
    }
    return ret;
}

static const char SPEC[] =
    "initContainers: [{name: i, image: i}, {name: s, image: i, restartPolicy: Always}], "
    "containers: [{name: c, image: i, env: [%s]}], ephemeralContainers: [{name: e, image: i}]";

/* The environments of all containers of a pod whose main container has these variables. */
static cJSON *environments(struct fixture *f, const char *env)
{
    static const struct pool_choice none;
    const cJSON *pod;
    cJSON *down = NULL, *more = NULL, *ret = json_new_object(f->a);
    char spec[1024], text[1200];
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

    snprintf(spec, sizeof spec, SPEC, env);
    snprintf(text, sizeof text, "{metadata: {name: p, namespace: ml, uid: u}, spec: {%s}}", spec);
    pod = doc(f, text);
    assert_ok(translate_pod(f->a, &f->tenant, &none, pod, NULL, &down, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, down));
    assert_ok(translate_ephemeral(f->a, &f->tenant, &none, pod, down, &more, &f->err));
    for (size_t i = 0; i < COUNT(lists); i++) {
        json_each(container, json_get(json_get(i < 2 ? down : more, "spec"), lists[i]))
        {
            json_set(f->a, ret, arena_cstr(f->a, json_str(json_get(container, "name"))),
                     environment(f, container));
        }
    }
    assert_int_equal(json_count(ret), 4);
    return ret;
}

static void assert_no_host(struct fixture *f, const cJSON *all)
{
    struct str text = json_text(f->a, all);

    if (str_contains(text, STR(HOST_IP)))
        fail_msg("the host's address reaches a container: %s", text.p);
}

static void all_names_are_the_tenants(void **state)
{
    static const char *const containers[] = {"i", "s", "c", "e"};
    struct fixture *f = *state;
    cJSON *all = environments(f, "");

    assert_no_host(f, all);
    for (size_t i = 0; i < 4; i++) {
        cJSON *env = json_get(all, containers[i]);

        json_remove(env, "NVIDIA_VISIBLE_DEVICES");
        for (size_t k = 0; k < N_HOST_ENV; k++)
            assert_non_null(json_get(env, HOST_ENV[k][0]));
        assert_str(json_str(json_get(env, "KUBERNETES_PORT_443_TCP_ADDR")), "10.96.7.7");
    }
}

/* Programs that read the names of port 443 reach the tenant's API on the port it has. */
static void another_port_leaves_no_name_to_the_host(void **state)
{
    struct fixture *f = *state;
    cJSON *env;

    f->tenant.api_port = 8443;
    env = environments(f, "");
    assert_no_host(f, env);
    env = json_get(env, "c");
    assert_str(json_str(json_get(env, "KUBERNETES_PORT")), "tcp://10.96.7.7:8443");
    assert_str(json_str(json_get(env, "KUBERNETES_PORT_8443_TCP_PORT")), "8443");
    assert_str(json_str(json_get(env, "KUBERNETES_PORT_443_TCP")), "tcp://10.96.7.7:8443");
    assert_str(json_str(json_get(env, "KUBERNETES_PORT_443_TCP_PORT")), "8443");
}

/* client-go then says that it is in no cluster, which is true. */
static void an_unknown_address_is_empty(void **state)
{
    struct fixture *f = *state;
    cJSON *env;

    f->tenant.api_ip = STR("");
    env = environments(f, "");
    assert_no_host(f, env);
    for (size_t k = 0; k < N_HOST_ENV; k++)
        assert_str(json_str(json_get(json_get(env, "c"), HOST_ENV[k][0])), "");
}

static void the_tenants_own_variables_win(void **state)
{
    struct fixture *f = *state;
    cJSON *env = environments(f, "{name: KUBERNETES_SERVICE_HOST, value: api.example}, "
                                 "{name: URL, value: https://$(KUBERNETES_SERVICE_HOST)}");

    assert_no_host(f, env);
    env = json_get(env, "c");
    assert_str(json_str(json_get(env, "KUBERNETES_SERVICE_HOST")), "api.example");
    assert_str(json_str(json_get(env, "URL")), "https://api.example");
    assert_str(json_str(json_get(env, "KUBERNETES_SERVICE_PORT")), "443");
}

/* Ways to have one of the names and leave it to the host. */
static void no_variable_makes_way_for_the_hosts(void **state)
{
    static const char *const cases[] = {
        "{name: KUBERNETES_PORT_443_TCP_ADDR, valueFrom: {configMapKeyRef: {name: m, key: k, "
        "optional: true}}}",
        "{name: X, value: $(KUBERNETES_PORT_443_TCP_ADDR)}, {name: KUBERNETES_PORT_443_TCP_ADDR, "
        "value: x}",
        "{name: X, value: $(KUBERNETES_SERVICE_HOST)}, {name: KUBERNETES_SERVICE_HOST, value: ''}",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_no_host(f, environments(f, cases[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_names_are_the_tenants, setup, teardown),
        cmocka_unit_test_setup_teardown(another_port_leaves_no_name_to_the_host, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unknown_address_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(the_tenants_own_variables_win, setup, teardown),
        cmocka_unit_test_setup_teardown(no_variable_makes_way_for_the_hosts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
