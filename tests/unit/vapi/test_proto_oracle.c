/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes upstream's own samples of every served kind: testdata/HEAD of the Go module k8s.io/api
 * holds each kind with every field set as JSON and as protobuf. SUBLET_K8S_API names the module's
 * folder. */

#include "cases.h"

#include <dirent.h>
#include <unistd.h>

#include <sublet/proto.h>

static const char *const GROUPS[] = {
    "admissionregistration.k8s.io.v1",
    "apps.v1",
    "authentication.k8s.io.v1",
    "authorization.k8s.io.v1",
    "autoscaling.v1",
    "autoscaling.v2",
    "batch.v1",
    "core.v1",
    "certificates.k8s.io.v1",
    "coordination.k8s.io.v1",
    "discovery.k8s.io.v1",
    "events.k8s.io.v1",
    "flowcontrol.apiserver.k8s.io.v1",
    "networking.k8s.io.v1",
    "node.k8s.io.v1",
    "policy.v1",
    "rbac.authorization.k8s.io.v1",
    "resource.k8s.io.v1",
    "scheduling.k8s.io.v1",
    "storage.k8s.io.v1",
};

/* What no client sends as a body: discovery and the event of a watch, which has no kind. */
static const char *const NOT_BODIES[] = {"APIGroup", "APIVersions", "WatchEvent"};

enum { KINDS_MIN = 80 };

static struct str read_file(struct arena *a, const char *folder, const char *name)
{
    struct str path = arena_printf(a, "%s/%s", folder, name);
    FILE *f = fopen(path.p, "rb");
    struct buf b = BUF_INIT(0);
    char chunk[4096];
    size_t n;

    if (!f)
        fail_msg("cannot read %s: %s", path.p, strerror(errno));
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_add(&b, (struct str){chunk, n});
    fclose(f);

    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static bool is_served(struct str name)
{
    for (size_t i = 0; i < COUNT(NOT_BODIES); i++) {
        if (str_contains(name, str_c(NOT_BODIES[i])))
            return false;
    }
    for (size_t i = 0; i < COUNT(GROUPS); i++) {
        struct str group = str_c(GROUPS[i]);
        struct str kind = str_from(name, group.n + 1);

        if (str_has_prefix(name, group) && name.p[group.n] == '.' &&
            str_find(kind, '.') == kind.n - 5)
            return true;
    }
    return false;
}

static void compare(struct arena *a, const char *name, const cJSON *got, const cJSON *want)
{
    if (json_equal(got, want))
        return;
    print_difference(a, name, got, want);
    fail();
}

/* The JSON form gives the very bytes of the protobuf form. */
static void check_bytes(struct arena *a, const char *name, const cJSON *object, struct str want)
{
    struct str bytes;
    cJSON *back;
    struct err err;

    err_init(&err, a);
    assert_true(proto_encode(a, object, &bytes));
    if (proto_decode(a, bytes, &back, &err))
        fail_msg("%s: what was encoded is not read: %.*s", name, STR_F(err.message));
    compare(a, name, back, object);
    if (!str_eq(bytes, want))
        fail_msg("%s: %zu bytes were encoded, upstream's are %zu", name, bytes.n, want.n);
}

/* The protobuf form gives the JSON form, and normalising the JSON form changes nothing. */
static void check_kind(const char *folder, const char *json_name)
{
    struct arena *a = arena_new(0);
    struct str base = str_sub(str_c(json_name), 0, strlen(json_name) - 5);
    struct str text = read_file(a, folder, json_name);
    struct str body = read_file(a, folder, arena_printf(a, "%.*s.pb", STR_F(base)).p);
    cJSON *want, *again, *got;
    struct err err;

    err_init(&err, a);
    assert_int_equal(json_parse(a, text, &want, &err), 0);
    assert_int_equal(json_parse(a, text, &again, &err), 0);
    if (proto_decode(a, body, &got, &err))
        fail_msg("%s: %.*s", json_name, STR_F(err.message));
    compare(a, json_name, got, want);
    check_bytes(a, json_name, want, body);

    struct str version = json_str(json_get(again, "apiVersion")), group = STR("");
    if (str_find(version, '/') < version.n)
        group = str_cut(&version, '/');
    uint32_t node = schema_builtin_root(group, version, json_str(json_get(again, "kind")));
    struct strict_errors strict = {.arena = a};

    assert_int_not_equal(node, 0);
    if (schema_normalise(a, &SCHEMA_BUILTIN, node, again, &strict, &err))
        fail_msg("%s: %.*s", json_name, STR_F(err.message));
    if (strict.n)
        fail_msg("%s: %.*s", json_name, STR_F(strict.text[0]));
    compare(a, json_name, again, want);
    arena_free(a);
}

static void every_served_kind(void **state)
{
    const char *module = getenv("SUBLET_K8S_API");
    char folder[4096];
    struct dirent *entry;
    size_t kinds = 0;
    DIR *dir;

    (void)state;
    if (!module)
        fail_msg("SUBLET_K8S_API must name the folder of the Go module k8s.io/api "
                 "(go mod download -json k8s.io/api@v0.36.3)");
    snprintf(folder, sizeof folder, "%s/testdata/HEAD", module);
    dir = opendir(folder);
    if (!dir)
        fail_msg("SUBLET_K8S_API: cannot open %s: %s", folder, strerror(errno));
    while ((entry = readdir(dir))) {
        struct str name = str_c(entry->d_name);

        if (!str_has_suffix(name, STR(".json")) || !is_served(name))
            continue;
        check_kind(folder, entry->d_name);
        kinds++;
    }
    closedir(dir);
    print_message("%zu kinds\n", kinds);
    assert_true(kinds >= KINDS_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_served_kind)};

    return cmocka_run_group_tests_name("proto_oracle", tests, NULL, NULL);
}
