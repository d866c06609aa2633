/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit log by itself: which rule decides, what a policy may not say, the line of an event, and
 * files that are rotated. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <sublet/audit.h>
#include <sublet/clock.h>

#define HEAD "apiVersion: audit.k8s.io/v1\nkind: Policy\n"

static struct audit_policy *policy(const char *text)
{
    struct audit_policy *p = NULL;
    struct err err;

    err_init(&err, NULL);
    if (audit_policy_parse(str_c(text), &p, &err))
        fail_msg("%.*s", STR_F(err.message));
    return p;
}

/* ---- what a policy may not say ---- */

static void refuses(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]",
         "audit policy: apiVersion: want audit.k8s.io/v1"},
        {"apiVersion: audit.k8s.io/v1\nkind: Event\nrules: [{level: None}]",
         "audit policy: kind: want Policy"},
        {HEAD, "audit policy: rules: want at least one rule"},
        {HEAD "rules: []", "audit policy: rules: want at least one rule"},
        {HEAD "rules: [{}]",
         "audit policy: rules[0].level: want one of None, Metadata, Request, RequestResponse"},
        {HEAD "rules: [{level: None}, {level: metadata}]",
         "audit policy: rules[1].level: want one of None, Metadata, Request, RequestResponse"},
        {HEAD "rules: [{level: None, user: [a]}]", "audit policy: rules[0].user: unknown key"},
        {HEAD "rules: [{level: None, users: a}]",
         "audit policy: rules[0].users: want a list of strings"},
        {HEAD "rules: [{level: None, nonResourceURLs: [healthz]}]",
         "audit policy: rules[0].nonResourceURLs[0]: non-resource URL rules must begin with a '/' "
         "character"},
        {HEAD "rules: [{level: None, nonResourceURLs: [/a*/b]}]",
         "audit policy: rules[0].nonResourceURLs[0]: non-resource URL wildcards '*' must be the "
         "final character of the rule"},
        {HEAD "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
         "audit policy: rules[0].nonResourceURLs: rules cannot apply to both regular resources and "
         "non-resource URLs"},
        {HEAD "rules: [{level: None, resources: [{resourceNames: [x]}]}]",
         "audit policy: rules[0].resources[0].resourceNames: using resourceNames requires at least "
         "one resource"},
        {HEAD "rules: [{level: None, resources: [{group: apps/v1}]}]",
         "audit policy: rules[0].resources[0].group: want the name of an API group, without a "
         "version"},
        {HEAD "omitStages: [Later]\nrules: [{level: None}]",
         "audit policy: omitStages[0]: allowed stages are "
         "RequestReceived,ResponseStarted,ResponseComplete,Panic"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena *a = arena_new(0);
        struct audit_policy *p = NULL;
        struct err err;

        err_init(&err, a);
        assert_int_equal(audit_policy_parse(str_c(cases[i].text), &p, &err), -1);
        assert_null(p);
        assert_string_equal(arena_cstr(a, err.message), cases[i].message);
        arena_free(a);
    }
}

/* ---- which rule decides ---- */

static const char RULES[] = HEAD
    "omitStages: [RequestReceived]\n"
    "rules:\n"
    "- {level: Metadata, users: [ann], verbs: [get, list]}\n"
    "- {level: Request, userGroups: [ops], resources: [{group: '', resources: [pods]}]}\n"
    "- {level: RequestResponse, resources: [{group: '', resources: [pods/log, '*/scale']}]}\n"
    "- {level: Request, resources: [{group: apps, resources: ['deployments/*']}],"
    " omitManagedFields: true}\n"
    "- {level: Metadata, namespaces: [''], resources: [{group: '*', resources: ['*'],"
    " resourceNames: [one]}]}\n"
    "- {level: Metadata, nonResourceURLs: ['/api*', /version], omitStages: [ResponseComplete]}\n"
    "- {level: None, namespaces: [quiet]}\n"
    "- {level: Metadata, resources: [{group: batch}]}\n";

static void decides(void **state)
{
    static const struct {
        const char *user, *group, *verb, *api, *resource, *sub, *ns, *name, *path;
        enum audit_level level;
        unsigned omit;
        bool managed;
    } cases[] = {
        {"ann", "x", "get", "", "pods", "", "n", "p", "", AUDIT_LEVEL_METADATA, 1, false},
        {"ann", "x", "get", NULL, NULL, "", "", "", "/version", AUDIT_LEVEL_METADATA, 1, false},
        {"bob", "ops", "get", "", "pods", "", "n", "p", "", AUDIT_LEVEL_REQUEST, 1, false},
        {"bob", "ops", "get", "", "pods", "log", "n", "p", "", AUDIT_LEVEL_REQUEST_RESPONSE, 1,
         false},
        {"bob", "x", "get", "", "pods", "", "n", "p", "", AUDIT_LEVEL_NONE, 1, false},
        {"bob", "x", "get", "", "rcs", "scale", "n", "p", "", AUDIT_LEVEL_REQUEST_RESPONSE, 1,
         false},
        {"bob", "x", "get", "apps", "deployments", "", "n", "p", "", AUDIT_LEVEL_REQUEST, 1, true},
        {"bob", "x", "get", "apps", "deployments", "status", "n", "p", "", AUDIT_LEVEL_REQUEST, 1,
         true},
        {"bob", "x", "get", "", "nodes", "", "", "one", "", AUDIT_LEVEL_METADATA, 1, false},
        {"bob", "x", "get", "", "nodes", "", "", "two", "", AUDIT_LEVEL_NONE, 1, false},
        {"bob", "x", "get", NULL, NULL, "", "", "", "/apis/apps", AUDIT_LEVEL_METADATA, 5, false},
        {"bob", "x", "get", NULL, NULL, "", "", "", "/metrics", AUDIT_LEVEL_NONE, 1, false},
        {"bob", "x", "get", "batch", "jobs", "", "quiet", "j", "", AUDIT_LEVEL_NONE, 1, false},
        {"bob", "x", "get", "batch", "jobs", "status", "n", "j", "", AUDIT_LEVEL_METADATA, 1,
         false},
        {NULL, NULL, "get", "batch", "jobs", "", "n", "j", "", AUDIT_LEVEL_METADATA, 1, false},
    };
    struct audit_policy *p = policy(RULES);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str group = str_c(cases[i].group);
        struct user user = {.name = str_c(cases[i].user), .groups = &group, .n_groups = 1};
        struct attributes what = {
            .verb = cases[i].verb,
            .group = str_c(cases[i].api),
            .resource = str_c(cases[i].resource),
            .subresource = str_c(cases[i].sub),
            .ns = str_c(cases[i].ns),
            .name = str_c(cases[i].name),
            .path = str_c(cases[i].path),
        };
        struct audit_decision d;

        audit_decide(p, cases[i].user ? &user : NULL, &what, &d);
        if (d.level != cases[i].level || d.omit_stages != cases[i].omit ||
            d.omit_managed_fields != cases[i].managed)
            fail_msg("case %zu: level %d, omit %x", i, (int)d.level, d.omit_stages);
    }
    audit_policy_free(p);
}

/* ---- the line ---- */

static void prints(void **state)
{
    static const struct str groups[] = {{"g1", 2}, {"g\"2", 3}}, ips[] = {{"::1", 3}};
    static const struct audit_annotation notes[] = {{{"b", 1}, {"2\n", 2}}, {{"a", 1}, {"1", 1}}};
    struct user user = {.name = STR("ann"), .uid = STR("u1"), .groups = groups, .n_groups = 2};
    struct audit_event e = {
        .decision = {.level = AUDIT_LEVEL_REQUEST},
        .id = STR("id-1"),
        .uri = STR("/api/v1/pods?watch=1&x=<"),
        .verb = STR("watch"),
        .user_agent = STR("curl\r\n/8"),
        .source_ips = ips,
        .n_source_ips = 1,
        .user = &user,
        .has_ref = true,
        .resource = STR("pods"),
        .version = STR("v1"),
        .code = 200,
        .request_object = STR("{\"a\":1}\n"),
        .annotations = notes,
        .n_annotations = 2,
        .received_us = 1700000000000001,
    };
    struct buf out = BUF_INIT(0);
    struct arena *a = arena_new(0);

    (void)state;
    audit_event_print(&out, &e, AUDIT_RESPONSE_STARTED, 1700000000123456);
    assert_string_equal(
        arena_cstr(a, buf_str(&out)),
        "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Request\","
        "\"auditID\":\"id-1\",\"stage\":\"ResponseStarted\",\"requestURI\":"
        "\"/api/v1/"
        "pods?watch=1\\u0026x=\\u003c\",\"verb\":\"watch\",\"user\":{\"username\":\"ann\","
        "\"uid\":\"u1\",\"groups\":[\"g1\",\"g\\\"2\"]},\"sourceIPs\":[\"::1\"],\"userAgent\":"
        "\"curl\\r\\n/8\",\"objectRef\":{\"resource\":\"pods\",\"apiVersion\":\"v1\"},"
        "\"responseStatus\":{\"metadata\":{},\"code\":200},\"requestObject\":{\"a\":1},"
        "\"requestReceivedTimestamp\":\"2023-11-14T22:13:20.000001Z\",\"stageTimestamp\":"
        "\"2023-11-14T22:13:20.123456Z\",\"annotations\":{\"a\":\"1\",\"b\":\"2\\n\"}}\n");
    arena_free(a);
    buf_fini(&out);
}

static void strips_managed_fields(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"{\"metadata\":{\"name\":\"a\",\"managedFields\":[{}]}}",
         "{\"metadata\":{\"name\":\"a\"}}"},
        {"{\"items\":[{\"metadata\":{\"managedFields\":[]}}]}", "{\"items\":[{\"metadata\":{}}]}"},
        {"{\"rows\":[{\"object\":{\"metadata\":{\"managedFields\":[]}}}]}",
         "{\"rows\":[{\"object\":{\"metadata\":{}}}]}"},
        {"{\"data\":{\"managedFields\":\"mine\"}}", "{\"data\":{\"managedFields\":\"mine\"}}"},
        {"{ \"untouched\": 1.0 }", "{ \"untouched\": 1.0 }"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(arena_cstr(a, audit_without_managed_fields(a, str_c(cases[i].in))),
                            cases[i].out);
    arena_free(a);
}

/* ---- files ---- */

static int64_t NOW_US = 1700000000000000;

static int64_t next_ms(void *ctx)
{
    (void)ctx;
    return NOW_US += 1000;
}

static int64_t mono(void *ctx)
{
    (void)ctx;
    return 0;
}

static const struct clock TICKING = {next_ms, mono, NULL};

struct directory {
    char path[64];
    size_t logs;                  /* rotated */
    size_t bytes, lines, longest; /* of all of them, and of the current one */
};

static void read_file(int dir, const char *name, struct directory *d)
{
    int fd = openat(dir, name, O_RDONLY);
    char *text = mem_alloc(1u << 20);
    ssize_t n = read(fd, text, 1u << 20);

    assert_true(n >= 0);
    for (ssize_t i = 0; i < n; i++)
        d->lines += text[i] == '\n';
    if (n)
        assert_true(text[0] == 'l' && text[n - 1] == '\n'); /* whole lines */
    d->bytes += (size_t)n;
    d->longest = (size_t)n > d->longest ? (size_t)n : d->longest;
    mem_free(text);
    close(fd);
}

static void look(struct directory *d)
{
    DIR *dir = opendir(d->path);
    struct dirent *entry;

    d->logs = d->bytes = d->lines = d->longest = 0;
    while ((entry = readdir(dir)) != NULL) {
        struct str name = str_c(entry->d_name);

        if (!str_has_prefix(name, STR("audit")))
            continue;
        d->logs += name.n > sizeof("audit.log") - 1;
        read_file(dirfd(dir), entry->d_name, d);
    }
    closedir(dir);
}

static void clean(struct directory *d)
{
    DIR *dir = opendir(d->path);
    struct dirent *entry;

    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(d->path);
}

static void write_lines(struct directory *d, struct audit_log_options *options, size_t n)
{
    struct arena *a = arena_new(0);
    struct audit_log *log;
    struct err err;

    err_init(&err, a);
    options->path = arena_printf(a, "%s/audit.log", d->path);
    options->clock = &TICKING;
    if (audit_log_open(options, &log, &err))
        fail_msg("%.*s", STR_F(err.message));
    for (size_t i = 0; i < n; i++) {
        audit_log_write(log, arena_printf(a, "line %06zu\n", i)); /* 12 bytes */
        while (!audit_log_has_room(log))
            usleep(100);
    }
    audit_log_close(log);
    arena_free(a);
}

static void puts_files_aside(void **state)
{
    struct directory d = {.path = "/tmp/test-audit-XXXXXX"};
    struct audit_log_options options = {.max_bytes = 1000, .buffer_bytes = 4096};

    (void)state;
    assert_non_null(mkdtemp(d.path));
    write_lines(&d, &options, 1000);
    look(&d);
    assert_int_equal(d.lines, 1000);
    assert_int_equal(d.bytes, 12000);
    assert_in_range(d.longest, 900, 1000);
    assert_in_range(d.logs, 12, 13);
    /* A restart goes on where it was, and removes but the newest. */
    options.max_backups = 3;
    write_lines(&d, &options, 200);
    look(&d);
    assert_int_equal(d.logs, 3);
    assert_in_range(d.longest, 900, 1000);
    clean(&d);
}

static void keeps_strangers(void **state)
{
    static const char *const names[] = {"audit-notes.log", "audit-2026-01-02T15-04-05.000.log.gz",
                                        "audit-2026-01-02T15-04-05x000.log"};
    struct directory d = {.path = "/tmp/test-audit-XXXXXX"};
    struct audit_log_options options = {
        .max_bytes = 500, .max_backups = 1, .max_age_days = 1, .buffer_bytes = 4096};
    int dir;

    (void)state;
    assert_non_null(mkdtemp(d.path));
    dir = open(d.path, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < 3; i++)
        close(openat(dir, names[i], O_CREAT | O_WRONLY, 0600));
    close(openat(dir, "audit-2001-01-02T15-04-05.000.log", O_CREAT | O_WRONLY, 0600));
    write_lines(&d, &options, 300);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(faccessat(dir, names[i], F_OK, 0), 0);
    assert_int_equal(faccessat(dir, "audit-2001-01-02T15-04-05.000.log", F_OK, 0), -1);
    close(dir);
    clean(&d);
}

static void never_follows_a_link(void **state)
{
    struct directory d = {.path = "/tmp/test-audit-XXXXXX"};
    struct arena *a = arena_new(0);
    struct audit_log_options options = {.buffer_bytes = 4096, .clock = &TICKING};
    struct audit_log *log;
    struct err err;

    (void)state;
    assert_non_null(mkdtemp(d.path));
    options.path = arena_printf(a, "%s/audit.log", d.path);
    assert_int_equal(symlink("/tmp/test-audit-elsewhere", options.path.p), 0);
    err_init(&err, a);
    assert_int_equal(audit_log_open(&options, &log, &err), -1);
    assert_true(err.kind == &ERR_UNAVAILABLE);
    clean(&d);
    arena_free(a);
}

/* A reader of our output that stands still: what does not fit is counted, and no request waits. */
static void drops_what_does_not_fit(void **state)
{
    struct audit_log_options options = {.path = STR("-"), .buffer_bytes = 1200, .clock = &TICKING};
    int ends[2], output = dup(STDOUT_FILENO);
    struct audit_log_stats stats;
    struct audit_log *log;
    struct err err;
    char text[4096];
    size_t rest = 0;
    ssize_t n;
    bool room;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    memset(text, 'x', sizeof(text));
    assert_int_equal(write(ends[1], text, sizeof(text)), sizeof(text)); /* it is full */
    dup2(ends[1], STDOUT_FILENO);
    err_init(&err, NULL);
    assert_int_equal(audit_log_open(&options, &log, &err), 0);
    for (size_t i = 0; i < 300; i++)
        audit_log_write(log, STR("line 123456\n"));
    audit_log_stats(log, &stats);
    room = audit_log_has_room(log);
    /* Once it reads, all that was taken comes out. */
    assert_int_equal(read(ends[0], text, sizeof(text)), sizeof(text));
    audit_log_close(log);
    dup2(output, STDOUT_FILENO);
    close(ends[1]);
    while ((n = read(ends[0], text, sizeof(text))) > 0)
        rest += (size_t)n;
    close(ends[0]);
    assert_int_equal(stats.waiting, 1200);
    assert_int_equal(stats.dropped, 200);
    assert_int_equal(rest, 1200);
    assert_false(room);
    close(output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(decides),
        cmocka_unit_test(prints),
        cmocka_unit_test(strips_managed_fields),
        cmocka_unit_test(puts_files_aside),
        cmocka_unit_test(keeps_strangers),
        cmocka_unit_test(never_follows_a_link),
        cmocka_unit_test(drops_what_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
