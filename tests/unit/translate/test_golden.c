/* SPDX-License-Identifier: Apache-2.0 */
/* Whole documents, in and out: each file of data/ holds a configuration, a virtual object, and what
 * must come of it. SUBLET_UPDATE_GOLDEN=1 writes the results instead; the diff is for people. */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "allowed.h"
#include "test.h"

static struct str read_file(struct arena *a, const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = arena_alloc(a, 1 << 20);
    size_t n;

    assert_non_null(file);
    n = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return (struct str){text, n};
}

static void write_file(const char *path, struct str text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.n, file), text.n);
    assert_int_equal(fclose(file), 0);
}

/* What a real kube-apiserver (v1.36.3) made of the result, defaults and all, needs no update from
 * us. */
static void check_at_rest(struct fixture *f, const char *path, const cJSON *wanted)
{
    struct str kind = json_str(json_get(wanted, "kind"));
    cJSON *host = NULL, *patch;

    if (access(path, R_OK) != 0)
        return;
    assert_ok(json_parse(f->a, read_file(f->a, path), &host, &f->err));
    patch = str_eqc(kind, "Pod") ? translate_pod_update(f->a, host, wanted, true)
                                 : translate_service_update(f->a, host, wanted);
    if (patch)
        fail_msg("%s: would be updated for ever: %s", path, json_text(f->a, patch).p);
    assert_null(translate_pod_resize(f->a, host, wanted, true));
}

/* The result of one case: by the kind of its object. */
static cJSON *translate_case(struct fixture *f, const cJSON *input)
{
    const cJSON *object = json_get(input, "object"), *labels = json_get(input, "namespaceLabels");
    struct str kind = json_str(json_get(object, "kind"));
    struct pool_choice choice;
    cJSON *ret = NULL;

    f->tenant.dns_ip = json_str(json_get(input, "dnsIP"));
    f->tenant.namespaces = translate_namespaces_of(f->a, json_get(input, "namespaces"));
    if (str_eqc(kind, "Pod")) {
        assert_ok(pool_resolve(f->a, &f->config, json_str_at(object, "metadata.namespace"), object,
                               labels, &choice, &f->err));
        assert_ok(translate_pod(f->a, &f->tenant, &choice, object, json_get(input, "services"),
                                &ret, &f->err));
        assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    } else if (str_eqc(kind, "Service")) {
        assert_ok(translate_service(f->a, &f->tenant, object, &ret, &f->err));
        assert_allowed(allowed_service(f->a, &f->tenant, ret));
    } else if (str_eqc(kind, "PersistentVolumeClaim")) {
        assert_ok(translate_pvc(f->a, &f->tenant, object, NULL, &ret, &f->err));
    } else if (str_eqc(kind, "Node")) {
        ret = translate_node_up(f->a, &f->tenant, object);
    } else if (str_eqc(kind, "Secret")) {
        ret = translate_secret(f->a, &f->tenant, object);
    } else {
        ret = translate_config_map(f->a, &f->tenant, object);
    }
    return ret;
}

static void check_case(const char *name)
{
    struct fixture *f = fixture_new("");
    const char *in = arena_cstr(f->a, arena_printf(f->a, "%s/%s.in.yaml", DATA_DIR, name));
    const char *out = arena_cstr(f->a, arena_printf(f->a, "%s/%s.out.json", DATA_DIR, name));
    cJSON *input = NULL, *got;
    struct buf text = BUF_INIT(0), yaml = BUF_INIT(0);

    print_message("%s\n", name);
    assert_ok(yaml_parse(f->a, read_file(f->a, in), NULL, NULL, &input, &f->err));
    if (json_get(input, "config")) {
        yaml_print(&yaml, json_get(input, "config"));
        assert_ok(config_load(f->a, buf_str(&yaml), 0, NULL, NULL, &f->config, &f->err));
    }
    got = translate_case(f, input);
    json_print_pretty(&text, got);
    if (text.n && text.p[text.n - 1] != '\n')
        buf_char(&text, '\n');
    if (getenv("SUBLET_UPDATE_GOLDEN"))
        write_file(out, buf_str(&text));
    check_at_rest(f, arena_cstr(f->a, arena_printf(f->a, "%s/%s.host.json", DATA_DIR, name)), got);
    assert_str(buf_str(&text), arena_cstr(f->a, read_file(f->a, out)));
    buf_fini(&text);
    buf_fini(&yaml);
    fixture_free(f);
}

static void golden(void **state)
{
    DIR *dir = opendir(DATA_DIR);
    size_t n = 0;

    (void)state;
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        struct str name = str_c(entry->d_name), tail = STR(".in.yaml");
        char base[256];

        if (!str_has_suffix(name, tail))
            continue;
        snprintf(base, sizeof base, "%.*s", (int)(name.n - tail.n), name.p);
        check_case(base);
        n++;
    }
    closedir(dir);
    assert_true(n >= 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
