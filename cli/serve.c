/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet serve` and `sublet host`: one control plane. Opens store, keys, API, and syncer or
 * embedded host in this order and closes them in the reverse one; prints one line when ready. A
 * signal makes it end in order; being killed at any instant loses no answered write.
 *
 *   OPENING --> STARTING --ready--> SERVING --SIGTERM--> CLOSING: syncer, API, store --> end
 *      ^             '--- failed, or a SIGTERM before -------^                  |
 *      '------------- in a new epoch (--force) ---------------------------------'
 */
#include "arguments.h"
#include "cli.h"
#include "control.h"
#include "trim.h"

#include <assert.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include <sublet/config_kubeconfig.h>
#include <sublet/dns.h>
#include <sublet/file.h>
#include <sublet/kinds.h>
#include <sublet/log.h>
#include <sublet/metrics.h>
#include <sublet/read_only.h>
#include <sublet/store_identity.h>
#include <sublet/syncer.h>

#define SERVE_MAGIC 0x73657276u
#define FORCE_HELP                                                                                 \
    "\nfor this start alone:\n"                                                                    \
    "  --force\n        takes the Lease on the host from another process, though that may live "   \
    "or\n        have newer data: then this data goes on in a new epoch, as a restored backup "    \
    "does\n"
#define QUIET_MS 2000 /* then freed memory goes back to the kernel */

enum serve_phase { SERVE_STARTING, SERVE_SERVING, SERVE_CLOSING };

struct serve {
    unsigned magic;
    enum serve_phase phase;
    bool ending;
    struct arena *arena;
    uv_loop_t loop;
    uv_signal_t signals[2];
    struct config config;
    struct trim *trim;
    struct store *store;
    struct control *control; /* NULL: no copy of the store can be requested */
    struct str kubeconfig;   /* its path */
    bool kubeconfig_due;     /* it could not be written at start */
    const char *lost;        /* why only reads are served; NULL: the cluster's identity is whole */
    struct pki *pki;
    struct vapi *api;
    struct dns_resolv resolv;
    struct dns *dns;                     /* NULL: the tenant has none */
    struct syncer *syncer;               /* NULL: a control plane without a host */
    const struct embedded_options *host; /* NULL: a virtual cluster */
    struct embedded *embedded;           /* what makes a host of it */
    struct store_predecessor after;      /* epoch "": the life of the store goes on */
    bool again;                          /* it is opened again, in a new life */
    int code;
};

/* --- closing, from the top down --- */

static void serve_close(struct serve *s);

static void on_store_closed(void *ctx)
{
    struct serve *s = ctx;

    assert(s->magic == SERVE_MAGIC);
    s->store = NULL;
    serve_close(s);
}

static void on_api_closed(void *ctx)
{
    struct serve *s = ctx;

    s->api = NULL;
    s->pki = pki_free(s->pki);
    serve_close(s);
}

static void on_syncer_closed(void *ctx)
{
    struct serve *s = ctx;

    s->syncer = NULL;
    serve_close(s);
}

static void on_embedded_closed(void *ctx)
{
    struct serve *s = ctx;

    s->embedded = NULL;
    serve_close(s);
}

static void on_dns_closed(void *ctx)
{
    struct serve *s = ctx;

    s->dns = NULL;
    serve_close(s);
}

static void on_control_closed(void *ctx)
{
    struct serve *s = ctx;

    s->control = NULL;
    serve_close(s);
}

static void serve_close(struct serve *s)
{
    s->phase = SERVE_CLOSING;
    if (s->control) {
        control_close(s->control, on_control_closed, s);
    } else if (s->dns) {
        dns_close(s->dns, on_dns_closed, s);
    } else if (s->embedded) {
        embedded_close(s->embedded, on_embedded_closed, s);
    } else if (s->syncer) {
        syncer_close(s->syncer, on_syncer_closed, s);
    } else if (s->api) {
        vapi_close(s->api, on_api_closed, s);
    } else if (s->store) {
        s->pki = pki_free(s->pki);
        store_close(s->store, on_store_closed, s);
    } else {
        trim_close(s->trim);
        for (size_t i = 0; i < 2; i++)
            uv_close((uv_handle_t *)&s->signals[i], NULL);
    }
}

static void serve_fail(struct serve *s, const struct err *err)
{
    fprintf(stderr, "sublet: %.*s\n", STR_F(err->message));
    s->code = 1;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct serve *s = handle->data;

    assert(s->magic == SERVE_MAGIC);
    (void)number;
    /* A part that is being opened is closed once it is open. */
    s->ending = true;
    if (s->phase == SERVE_SERVING)
        serve_close(s);
}

static void on_new_life(void *ctx, const struct store_predecessor *after)
{
    struct serve *s = ctx;

    assert(s->magic == SERVE_MAGIC);
    if (s->phase != SERVE_SERVING)
        return;
    s->after = *after;
    s->again = true;
    serve_close(s);
}

/* --- ready --- */

static struct str server_url(struct serve *s, struct arena *a)
{
    struct str address = s->config.listen_address;
    struct str host = str_sub(address, 0, str_rfind(address, ':'));

    if (s->config.kubeconfig_server.n)
        return s->config.kubeconfig_server;
    if (s->config.api_address.n)
        host = s->config.api_address;
    if (!host.n || str_eqc(host, "0.0.0.0") || str_eqc(host, "[::]"))
        host = s->config.listen_names.n ? s->config.listen_names.items[0] : STR("127.0.0.1");
    return arena_printf(a, "https://%.*s:%u", STR_F(host), vapi_port(s->api));
}

static int make_kubeconfig(struct serve *s, struct arena *a, const struct config_kubeconfig *more,
                           struct str *ret, struct err *err)
{
    static const struct str masters[] = {{"system:masters", 14}};
    const struct config *c = &s->config;
    struct pki_kubeconfig want = {
        .name = c->kubeconfig_context.n ? c->kubeconfig_context : c->name,
        .server = server_url(s, a),
        .cn = STR("admin"),
        .organizations = masters,
        .n_organizations = COUNT(masters),
    };

    if (more) {
        want.name = more->context.n ? more->context : want.name;
        want.server = more->server.n ? more->server : want.server;
        want.authority = more->certificate_authority;
        want.insecure = more->insecure;
    }
    if (more && more->account.n) {
        want.cn = more->account;
        want.bearer = true;
    }
    return pki_kubeconfig(s->pki, a, &want, ret, err);
}

/* Each has a client certificate of its own, or tokens that the syncer adds. */
static int publish_kubeconfigs(struct serve *s, struct arena *a, struct str first, struct err *err)
{
    struct str text;

    syncer_publish_kubeconfig(s->syncer, first);
    for (size_t i = 0; i < s->config.n_kubeconfigs; i++) {
        if (make_kubeconfig(s, a, &s->config.kubeconfigs[i], &text, err))
            return -1;
        syncer_publish_kubeconfig_more(s->syncer, i, text);
    }
    return 0;
}

/* Writes a new client certificate at each start: the previous kubeconfig stays valid until its own
 * expires. */
static int write_kubeconfig(void *ctx, struct err *err)
{
    struct serve *s = ctx;
    struct arena *a = arena_new(0);
    struct str text;
    int failed = make_kubeconfig(s, a, NULL, &text, err) || file_replace(s->kubeconfig, text, err);

    if (!failed)
        s->kubeconfig_due = false;
    if (!failed && s->syncer)
        failed = publish_kubeconfigs(s, a, text, err);
    arena_free(a);
    return failed ? -1 : 0;
}

static void kubeconfig_life(void *ctx, int64_t *ret_from, int64_t *ret_end)
{
    struct serve *s = ctx;

    pki_lifetime(s->pki, PKI_KUBECONFIG, ret_from, ret_end);
    if (s->kubeconfig_due)
        *ret_from = *ret_end = 0;
}

/* The previous kubeconfig is valid until it expires: on a full disk that is enough to serve. */
static bool has_kubeconfig(struct serve *s, const struct err *failure)
{
    s->kubeconfig_due = !access(s->kubeconfig.p, R_OK);
    if (s->kubeconfig_due)
        log_error("kubeconfig: the last one stays, and it is tried again: %.*s",
                  STR_F(failure->message));
    return s->kubeconfig_due;
}

static void on_ready(void *ctx, const struct err *err)
{
    struct serve *s = ctx;
    struct vapi_renewal renewal = {"kubeconfig", s, kubeconfig_life, write_kubeconfig};
    struct err failure;

    assert(s->magic == SERVE_MAGIC);
    if (err)
        serve_fail(s, err);
    if (err || s->ending) {
        serve_close(s);
        return;
    }
    if (s->syncer)
        syncer_start(s->syncer);
    if (s->embedded)
        embedded_start(s->embedded);
    err_init(&failure, s->arena);
    s->kubeconfig = arena_printf(s->arena, "%.*s/kubeconfig%s", STR_F(s->config.data_dir),
                                 s->lost ? ".read-only" : "");
    if (write_kubeconfig(s, &failure) && !has_kubeconfig(s, &failure)) {
        serve_fail(s, &failure);
        serve_close(s);
        return;
    }
    vapi_add_renewal(s->api, &renewal);
    s->phase = SERVE_SERVING;
    printf("sublet: %.*s ready at %.*s, kubeconfig %.*s\n", STR_F(s->config.name),
           STR_F(server_url(s, s->arena)), STR_F(s->kubeconfig));
    fflush(stdout);
}

/* --- opening --- */

/* A disk that takes nothing takes no new epoch either. */
static void check_new_life(struct serve *s)
{
    struct store_identity identity;

    store_identity(s->store, &identity);
    if (!s->after.epoch[0] || strcmp(identity.epoch, s->after.epoch) > 0)
        return;
    log_error("store: no new epoch could be begun: --force has no effect");
    s->config.lease_force = false;
}

static int open_store(struct serve *s, struct err *err)
{
    const char *path = arena_cstr(s->arena, s->config.data_dir);
    struct store_options options = {
        .path = path,
        .max_objects = (size_t)s->config.max_objects,
        .max_bytes = (size_t)s->config.max_bytes,
        .history_events = (size_t)s->config.history_events,
        .history_bytes = (size_t)s->config.history_bytes,
        .history_seconds = s->config.history_ms / 1000,
        .history_memory = (size_t)s->config.history_memory,
        .readable = kinds_stored_readable,
        .after = &s->after,
    };

    mkdir(path, 0700); /* store_open() reports the error */
    if (store_open(&s->loop, &options, &s->store, err))
        return -1;
    check_new_life(s);
    return 0;
}

/* Of "https://name:port/path", where the name may be an address in brackets. */
static struct str host_of(struct str url)
{
    struct str rest = str_from(url, str_find(url, ':') + 3);

    rest = str_sub(rest, 0, str_find(rest, '/'));
    if (rest.n && rest.p[0] == '[')
        return str_sub(rest, 1, str_find(rest, ']') - 1);
    return str_sub(rest, 0, str_find(rest, ':'));
}

/* Answers with the reason when there is none. */
static bool has_syncer(struct serve *s, control_answer_cb answer, void *answer_ctx)
{
    struct err err;

    if (s->syncer && s->phase == SERVE_SERVING)
        return true;
    err_init(&err, NULL);
    err_set(&err, &ERR_UNAVAILABLE, "%s",
            s->phase == SERVE_SERVING ? "it has no host cluster" : "it is not ready");
    answer(answer_ctx, STR(""), &err);
    return false;
}

static void run_explain(void *ctx, struct str body, control_answer_cb answer, void *answer_ctx)
{
    struct serve *s = ctx;

    if (has_syncer(s, answer, answer_ctx))
        syncer_explain(s->syncer, body, answer, answer_ctx);
}

static void run_compare(void *ctx, struct str body, control_answer_cb answer, void *answer_ctx)
{
    struct serve *s = ctx;

    if (has_syncer(s, answer, answer_ctx))
        syncer_compare_host(s->syncer, str_eqc(body, "repair"), answer, answer_ctx);
}

struct certs_answer {
    control_answer_cb answer;
    void *ctx;
};

static void on_certificates(void *ctx, const cJSON *list, const struct err *err)
{
    struct certs_answer *to = ctx;
    struct arena *a = arena_new(0);

    to->answer(to->ctx, err ? STR("") : json_text(a, list), err);
    arena_free(a);
    mem_free(to);
}

static void run_certs(void *ctx, struct str body, control_answer_cb answer, void *answer_ctx)
{
    int what = str_word_index("check|renew|rotate-ca|retire-ca", body);
    struct certs_answer *to;
    struct serve *s = ctx;
    struct err err;

    if (what < 0 || s->phase != SERVE_SERVING || s->lost) {
        err_init(&err, NULL);
        err_set(&err, &ERR_UNAVAILABLE, "%s", what < 0 ? "unknown order" : "it is not ready");
        answer(answer_ctx, STR(""), &err);
        return;
    }
    to = NEW(struct certs_answer);
    *to = (struct certs_answer){answer, answer_ctx};
    vapi_certificates(s->api, (enum vapi_certificates_order)what, on_certificates, to);
}

static const struct control_handler CONTROL_HANDLERS[] = {
    {"explain", run_explain}, {"compare", run_compare}, {"certs", run_certs}, {0}};

/* A cluster serves without it as well. */
static int open_control(struct serve *s)
{
    struct err err;

    err_init(&err, s->arena);
    if (control_open(&s->loop, s->store, s->config.data_dir, CONTROL_HANDLERS, s, &s->control,
                     &err))
        log_warn("sublet backup, explain and check will not work while this runs: %.*s",
                 STR_F(err.message));
    return 0;
}

/* Checks that config_load() cannot make: the room that reads certificates is above it. */
static int check_bundles(struct serve *s, struct err *err)
{
    for (size_t i = 0; i < s->config.n_kubeconfigs; i++) {
        struct str pem = s->config.kubeconfigs[i].certificate_authority;

        if (pem.n && pki_check_bundle(pem, err))
            return err_wrap(err, "config: kubeconfig.additionalSecrets[%zu].certificateAuthority",
                            i);
    }
    for (size_t i = 0; i < s->config.n_issuers; i++) {
        struct str pem = s->config.issuers[i].certificate_authority;

        if (pem.n && pki_check_bundle(pem, err))
            return err_wrap(err, "config: authentication.jwt[%zu].issuer.certificateAuthority", i);
    }
    return 0;
}

/* Under which names clients and pods reach this API. */
static int open_pki(struct serve *s, struct err *err)
{
    struct config *c = &s->config;
    struct str domain = c->cluster_domain, address = c->listen_address;
    struct str host = str_sub(address, 0, str_rfind(address, ':'));
    struct str ns = c->service_namespace.n ? c->service_namespace : c->host_namespace;
    struct str names[16 + 64] = {
        STR("localhost"),
        STR("127.0.0.1"),
        STR("::1"),
        STR("kubernetes"),
        STR("kubernetes.default"),
        STR("kubernetes.default.svc"),
        arena_printf(s->arena, "kubernetes.default.svc.%.*s", STR_F(domain)),
        c->name,
        arena_printf(s->arena, "%.*s.%.*s", STR_F(c->name), STR_F(ns)),
        arena_printf(s->arena, "%.*s.%.*s.svc", STR_F(c->name), STR_F(ns)),
    };
    size_t n = 10;

    if (host.n && !str_eqc(host, "0.0.0.0") && !str_eqc(host, "[::]"))
        names[n++] = host;
    if (c->api_address.n)
        names[n++] = c->api_address;
    if (c->kubeconfig_server.n)
        names[n++] = host_of(c->kubeconfig_server);
    for (size_t i = 0; i < c->listen_names.n && i < 64; i++)
        names[n++] = c->listen_names.items[i];
    struct pki_options options = {
        .clock = &CLOCK_SYSTEM,
        .rng = &RNG_SYSTEM,
        .names = names,
        .n_names = n,
        .issuer = arena_printf(s->arena, "https://kubernetes.default.svc.%.*s", STR_F(domain)),
        .life_s = c->certificate_life_ms / 1000,
    };
    return check_bundles(s, err) || pki_open(s->store, &options, &s->pki, err) ? -1 : 0;
}

/* ---- an identity that is lost ----
 * The data can be read and copied all the same. Must never write, nor act on the host: with another
 * uid its objects would be foreign, and with another CA or token key all credentials invalid. */

static void check_identity(struct serve *s)
{
    const char *what = pki_lost(s->pki);

    if (!what && syncer_uid_is_lost(s->store))
        what = "uid of the cluster";
    if (!what)
        return;
    s->lost = arena_printf(s->arena,
                           "the stored %s cannot be read, and only reads are served; restore the "
                           "store from a backup",
                           what)
                  .p;
    log_error("store: %s", s->lost);
}

static const char *identity_check(void *ctx)
{
    return ((struct serve *)ctx)->lost;
}

static void bar_writes(struct serve *s)
{
    vapi_add_check(s->api, "identity", identity_check, s);
    vapi_set_read_only(s->api, s->lost);
}

#define POLICY_LIMIT (1u << 20)

static int read_audit_policy(struct serve *s, struct err *err)
{
    struct config *c = &s->config;

    if (!c->audit_policy_file.n)
        return 0;
    if (c->audit_policy.n)
        return err_set(err, &ERR_BAD_REQUEST,
                       "config: audit: give either policy or policyFile, not both");
    return file_read(s->arena, c->audit_policy_file, POLICY_LIMIT, &c->audit_policy, err);
}

#define RESOLV_CONF  "/etc/resolv.conf"
#define RESOLV_LIMIT (64u << 10)

/* Without the file only the options name resolvers to forward to. */
static void read_resolv_conf(struct serve *s)
{
    struct config *c = &s->config;
    struct str text = STR("");
    struct err err;

    err_init(&err, s->arena);
    if (c->dns_listen.n && file_read(s->arena, STR(RESOLV_CONF), RESOLV_LIMIT, &text, &err))
        log_warn("dns: %.*s", STR_F(err.message));
    dns_resolv_parse(s->arena, text, &s->resolv);
    if (!c->dns_searches.n)
        c->dns_searches = s->resolv.searches;
}

static void write_dns_metrics(void *ctx, struct buf *out)
{
    struct serve *s = ctx;

    if (s->dns)
        dns_write_metrics(s->dns, out);
}

static int open_dns(struct serve *s, struct err *err)
{
    struct dns_options options = {
        .loop = &s->loop,
        .store = s->store,
        .config = &s->config,
        .resolv = &s->resolv,
        .clock = &CLOCK_SYSTEM,
        .rng = &RNG_SYSTEM,
    };

    if (s->host || !s->config.dns_listen.n)
        return 0;
    if (dns_open(&options, &s->dns, err))
        return -1;
    vapi_add_metrics(s->api, write_dns_metrics, s);
    return 0;
}

static int open_api(struct serve *s, struct err *err)
{
    struct vapi_options options = {
        .loop = &s->loop,
        .store = s->store,
        .pki = s->pki,
        .config = &s->config,
        .clock = &CLOCK_SYSTEM,
        .rng = &RNG_SYSTEM,
        .version = STR(KUBERNETES_VERSION),
    };

    if (vapi_new(&options, &s->api, err))
        return -1;
    check_identity(s);
    if (s->lost)
        bar_writes(s);
    else if (s->host && embedded_new(s->api, s->host, &s->embedded, err))
        return -1;
    else if (!s->host && s->config.host_namespace.n &&
             syncer_new(s->api, &s->config, &s->syncer, err))
        return -1;
    if (s->syncer)
        syncer_on_new_life(s->syncer, on_new_life, s);
    return open_dns(s, err) || vapi_start(s->api, on_ready, s, err) ? -1 : 0;
}

static int serve_open(struct serve *s, struct err *err)
{
    return read_audit_policy(s, err) || open_store(s, err) || open_control(s) || open_pki(s, err) ||
                   open_api(s, err)
               ? -1
               : 0;
}

/* Many watchers are many descriptors; one arena keeps an idle tenant's heap small. */
static void prepare_process(void)
{
    struct rlimit files;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is an error of the store, not the end */
    umask(077);
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    mallopt(M_ARENA_MAX, 1);
    /* Memory that requests allocate and free stays in the heap while they come; then trim.c gives
     * it back. */
    mallopt(M_TRIM_THRESHOLD, 8 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

static void serve_run(struct serve *s)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    struct err err;

    uv_loop_init(&s->loop);
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&s->loop, &s->signals[i]);
        s->signals[i].data = s;
        uv_signal_start(&s->signals[i], on_signal, numbers[i]);
    }
    s->trim = trim_new(&s->loop, QUIET_MS, mem_trim);
    err_init(&err, s->arena);
    read_resolv_conf(s);
    if (serve_open(s, &err)) {
        serve_fail(s, &err);
        serve_close(s);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_loop_close(&s->loop);
}

int cli_run(struct arena *a, const struct config *config, const struct embedded_options *host)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct serve *s = NEW(struct serve);
    struct store_predecessor after = {0};
    int code;

    for (int i = 0; i < 4; i++) {
        if (str_eqc(config->log_level, names[i]))
            log_set_level((enum log_level)i);
    }
    prepare_process();
    do {
        *s = (struct serve){
            .magic = SERVE_MAGIC, .arena = a, .config = *config, .host = host, .after = after};
        serve_run(s);
        after = s->after;
    } while (s->again && !s->ending && !s->code);
    code = s->code;
    s->magic = 0;
    mem_free(s);
    return code;
}

int cmd_serve(int argc, char **argv)
{
    struct arena *a;
    struct config config;
    int code = 2;
    bool force = arguments_take_switch(&argc, argv, "--force");

    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            struct buf text = BUF_INIT(0);

            config_help(&text, "serve");
            buf_addc(&text, FORCE_HELP);
            printf("%.*s", STR_F(buf_str(&text)));
            buf_fini(&text);
            return 0;
        }
    }
    a = arena_new(0);
    if (!cli_config(a, argc, argv, &config) && !cli_need_namespace(&config)) {
        config.lease_force = force;
        code = cli_run(a, &config, NULL);
    }
    arena_free(a);
    return code;
}
