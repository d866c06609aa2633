/* SPDX-License-Identifier: Apache-2.0 */
/* A whole tenant over a simulated host, in one loop, for the tests of this folder: see sim.h. */
#include "sim.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/kinds.h>
#include <sublet/log.h>
#include <sublet/store_admin.h>

#include "engine.h"
#include "../quoted.h"

/* Of the moment's time, but for what the test jumps. */
#define PATIENCE_MS 180000
#define LOOK_MS     5

/* --- time --- */

static uv_loop_t *loop_of(void *ctx, unsigned i)
{
    (void)i;
    return &((struct sim *)ctx)->loop;
}

static void on_endless(void *ctx, unsigned i)
{
    (void)i;
    fail_msg("seed %llu: it works without end at one moment",
             (unsigned long long)((struct sim *)ctx)->seed);
}

static struct schedule schedule_of(struct sim *s)
{
    return (struct schedule){&s->moment, 1, loop_of, NULL, on_endless, s};
}

void sim_run_ms(struct sim *s, unsigned ms)
{
    const struct schedule schedule = schedule_of(s);

    schedule_run_us(&schedule, (int64_t)ms * 1000);
}

void sim_step(struct sim *s)
{
    const struct schedule schedule = schedule_of(s);

    schedule_step(&schedule, LOOK_MS * 1000);
}

void sim_until(struct sim *s, bool (*is)(struct sim *s), const char *what)
{
    for (unsigned ms = 0; !is(s); ms += LOOK_MS) {
        if (ms > PATIENCE_MS && s->explain)
            s->explain(s);
        if (ms > PATIENCE_MS)
            fail_msg("seed %llu: waited in vain for %s (last refusal: %s)",
                     (unsigned long long)s->seed, what, s->refusal);
        sim_run_ms(s, LOOK_MS);
    }
}

bool sim_leads(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_HELD;
}

bool sim_is_superseded(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_SUPERSEDED;
}

void sim_on_report(struct syncer *syncer, struct str report)
{
    struct sim *s = syncer->new_life_ctx;

    snprintf(s->report, sizeof(s->report), "%.*s", STR_F(report));
}

bool sim_has_report(struct sim *s)
{
    return s->report[0];
}

static bool flag_is_up(struct sim *s)
{
    return s->flag;
}

static void wait_flag(struct sim *s, const char *what)
{
    sim_until(s, flag_is_up, what);
    s->flag = false;
}

/* --- up and down --- */

static void on_ready(void *ctx, const struct err *err)
{
    struct sim *s = ctx;

    if (err)
        fail_msg("start: %.*s", STR_F(err->message));
    s->flag = true;
}

static void on_closed(void *ctx)
{
    ((struct sim *)ctx)->flag = true;
}

static void on_new_life(void *ctx, const struct store_predecessor *after)
{
    ((struct sim *)ctx)->after = *after;
}

static void open_syncer(struct sim *s, struct err *err)
{
    struct host_options options = {.loop = &s->loop,
                                   .clock = &s->clock,
                                   .rng = &s->rng,
                                   .timeout_ms = 2000,
                                   .dry_qps = s->config.host_dry_qps,
                                   .backoff_ms = 1,
                                   .backoff_max_ms = 20,
                                   .transport = fake_host_transport(s->host)};
    struct host *host;

    if (host_open(&options, &host, err) ||
        syncer_new_with(s->api, &s->config, host, &s->syncer, err))
        fail_msg("%.*s", STR_F(err->message));
    syncer_on_new_life(s->syncer, on_new_life, s);
}

void sim_open(struct sim *s)
{
    struct store_options so = {.path = s->dir,
                               .readable = kinds_stored_readable,
                               .max_bytes = (size_t)s->config.max_bytes,
                               .max_objects = 100000,
                               .executor = &s->executor.base,
                               .rng = &s->rng,
                               .after = &s->after};
    struct str name = STR("localhost");
    struct pki_options po = {.clock = &s->clock,
                             .rng = &s->rng,
                             .names = &name,
                             .n_names = 1,
                             .issuer = STR("https://kubernetes.default.svc.cluster.local")};
    struct vapi_options vo = {.loop = &s->loop,
                              .config = &s->config,
                              .clock = &s->clock,
                              .rng = &s->rng,
                              .version = STR("v1.36.3")};
    struct err err;

    err_init(&err, s->arena);
    if (store_open(&s->loop, &so, &s->store, &err) || pki_open(s->store, &po, &s->pki, &err))
        fail_msg("%.*s", STR_F(err.message));
    vo.store = s->store;
    vo.pki = s->pki;
    if (vapi_new(&vo, &s->api, &err))
        fail_msg("%.*s", STR_F(err.message));
    open_syncer(s, &err);
    if (vapi_start(s->api, on_ready, s, &err))
        fail_msg("%.*s", STR_F(err.message));
    wait_flag(s, "the API");
    syncer_start(s->syncer);
    syncer_publish_kubeconfig(s->syncer, STR("kubeconfig"));
}

void sim_close(struct sim *s)
{
    syncer_close(s->syncer, on_closed, s);
    wait_flag(s, "the syncer to close");
    s->syncer = NULL;
    vapi_close(s->api, on_closed, s);
    wait_flag(s, "the API to close");
    s->pki = pki_free(s->pki);
    store_close(s->store, on_closed, s);
    wait_flag(s, "the store to close");
}

uint64_t sim_shaken(uint64_t seed)
{
    const char *shake = getenv("SHAKE");

    return seed + (shake ? strtoull(shake, NULL, 10) << 32 : 0);
}

/* Its directory has a name of the real world's chance, which a sim that failed has not left. */
static void enter(struct sim *s)
{
    moment_enter(NULL);
    snprintf(s->dir, sizeof(s->dir), "/tmp/sim-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    moment_init(&s->moment, sim_shaken(s->seed));
    moment_enter(&s->moment);
    s->clock = moment_clock(&s->moment);
    s->rng = moment_rng(&s->moment);
    executor_init(&s->executor, &s->moment, &s->loop, s, &s->dead);
}

struct sim *sim_new(uint64_t seed, const char *config)
{
    struct sim *s = NEW(struct sim);
    struct buf text = BUF_INIT(0);
    struct err err;

    log_set_level(getenv("SHOW") ? LOG_DEBUG : LOG_ERROR);
    s->seed = seed;
    s->arena = arena_new(0);
    buf_addc(&text, "name: sim\nhost: {namespace: team}\nlisten: {address: \"127.0.0.1:0\"}\n"
                    "network: {apiAddress: \"10.9.9.9\"}\n");
    buf_addc(&text, config ? config : "");
    err_init(&err, s->arena);
    if (config_load(s->arena, buf_str(&text), 0, NULL, NULL, &s->config, &err))
        fail_msg("%.*s", STR_F(err.message));
    buf_fini(&text);
    enter(s);
    s->config.data_dir = str_c(s->dir);
    uv_loop_init(&s->loop);
    s->host = fake_host_new(&s->loop, seed);
    fake_host_put(s->host, "nodes", "{\"metadata\":{\"name\":\"node-0\"}}");
    fake_host_put(s->host, "nodes", "{\"metadata\":{\"name\":\"node-1\"}}");
    sim_open(s);
    return s;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static void on_copied(void *ctx, const struct err *err)
{
    if (err)
        fail_msg("backup: %.*s", STR_F(err->message));
    ((struct sim *)ctx)->flag = true;
}

static const char *path_of(struct sim *s, const char *file)
{
    return arena_printf(s->arena, "%s.%s", s->dir, file).p;
}

void sim_backup(struct sim *s, const char *file)
{
    const char *path = path_of(s, file);

    s->backups[s->n_backups++] = path;
    store_backup(s->store, path, on_copied, s);
    wait_flag(s, "the backup");
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void sim_stop_and_restore(struct sim *s, const char *file)
{
    struct err err;

    sim_close(s);
    remove_tree(s->dir);
    err_init(&err, s->arena);
    if (store_restore(path_of(s, file), s->dir, &err))
        fail_msg("restore: %.*s", STR_F(err.message));
}

static void copy_dir(const char *from, const char *to)
{
    static const char *const names[] = {"state.db", "state.db-wal"};
    char path[2][256], bytes[65536];

    for (size_t i = 0; i < COUNT(names); i++) {
        FILE *in, *out;
        size_t n;

        snprintf(path[0], sizeof(path[0]), "%s/%s", from, names[i]);
        snprintf(path[1], sizeof(path[1]), "%s/%s", to, names[i]);
        in = fopen(path[0], "r");
        out = in ? fopen(path[1], "w") : NULL;
        while (out && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
            assert_int_equal(fwrite(bytes, 1, n, out), n);
        if (in)
            fclose(in);
        if (out)
            fclose(out);
    }
}

void sim_copy(struct sim *s, const char *name)
{
    const char *to = path_of(s, name);

    assert_int_equal(mkdir(to, 0700), 0);
    copy_dir(s->dir, to);
    s->backups[s->n_backups++] = to;
}

/* Renamed, not copied: each has the inode of its lock. */
void sim_swap(struct sim *s, const char *name)
{
    const char *other = path_of(s, name), *aside = path_of(s, "aside");

    assert_int_equal(rename(s->dir, aside), 0);
    assert_int_equal(rename(other, s->dir), 0);
    assert_int_equal(rename(aside, other), 0);
}

void sim_free(struct sim *s)
{
    sim_close(s);
    fake_host_free(s->host);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    moment_enter(NULL);
    remove_tree(s->dir);
    for (size_t i = 0; i < s->n_backups; i++)
        remove_tree(s->backups[i]);
    arena_free(s->arena);
    mem_free(s);
}

static void rescan(struct sim *s)
{
    for (size_t id = 0; id < s->syncer->n_kinds; id++)
        syncer_rescan(s->syncer, (enum sync_id)id);
}

void sim_jump(struct sim *s, int64_t seconds)
{
    s->moment.now_us += seconds * 1000000;
    rescan(s);
}

void sim_spoil_host(struct sim *s)
{
    *fake_host_faults(s->host) = (struct fake_faults){.refuse = 100,
                                                      .lose = 100,
                                                      .busy = 100,
                                                      .fail = 100,
                                                      .cut = 20,
                                                      .expire = 100,
                                                      .max_delay_ms = 20};
}

void sim_mend_host(struct sim *s)
{
    *fake_host_faults(s->host) = (struct fake_faults){0};
    sim_jump(s, 80);
}

static bool is_away(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_AWAY;
}

void sim_wait_for_no_leader(struct sim *s)
{
    sim_until(s, is_away, "the Lease to be missing");
    sim_jump(s, s->config.lease_duration_ms / 1000 + 1);
    sync_lease_wake(s->syncer->lease);
    sim_until(s, sim_leads, "the Lease");
}

void sim_set_clock(struct sim *s, int64_t seconds)
{
    s->moment.jump_us += seconds * 1000000;
    rescan(s);
}

/* --- the tenant --- */

static const struct resource *find_resource(struct sim *s, const char *name)
{
    struct str plural = str_c(name), group = STR("");
    size_t dot = str_find(plural, '.');
    const struct resource *r;

    if (dot < plural.n) {
        group = str_from(plural, dot + 1);
        plural = str_sub(plural, 0, dot);
    }
    r = registry_find_group_resource(vapi_registry(s->api), group, plural);
    assert_non_null(r);
    return r;
}

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    struct sim *s = ctx;

    (void)object;
    s->writes--;
    if (err)
        snprintf(s->refusal, sizeof(s->refusal), "%.*s", STR_F(err->message));
}

void sim_create(struct sim *s, const char *resource, const char *ns, const char *json)
{
    struct arena *a = arena_new(0);

    s->writes++;
    vapi_create(s->api, find_resource(s, resource), str_c(ns), quoted_json(a, str_c(json)),
                on_written, s);
    arena_free(a);
}

void sim_patch(struct sim *s, const char *resource, const char *ns, const char *name,
               const char *json)
{
    struct arena *a = arena_new(0);
    struct str sub = str_c(resource), plural = str_cut(&sub, '/');

    s->writes++;
    vapi_patch(s->api, find_resource(s, arena_cstr(a, plural)), sub.n ? sub : STR_NULL, str_c(ns),
               str_c(name), quoted_json(a, str_c(json)), on_written, s);
    arena_free(a);
}

void sim_delete(struct sim *s, const char *resource, const char *ns, const char *name,
                int64_t grace_s)
{
    struct vapi_delete options = {.grace_seconds = grace_s};

    s->writes++;
    vapi_delete(s->api, find_resource(s, resource), str_c(ns), str_c(name), &options, on_written,
                s);
}

static bool all_written(struct sim *s)
{
    return s->writes == 0;
}

void sim_writes_done(struct sim *s)
{
    sim_until(s, all_written, "writes to be answered");
}

struct list {
    struct arena *arena;
    cJSON *items;
};

static bool on_object(void *ctx, const struct store_object *o)
{
    struct list *l = ctx;

    json_append(l->items, vapi_tree(l->arena, o));
    return true;
}

cJSON *sim_list(struct sim *s, struct arena *a, const char *resource, const char *ns)
{
    struct list l = {a, json_new_array(a)};
    struct err err;

    err_init(&err, a);
    if (store_scan(s->store, find_resource(s, resource)->storage, *ns ? str_c(ns) : STR_NULL,
                   STR_NULL, STR_NULL, 0, on_object, &l, &err))
        fail_msg("%.*s", STR_F(err.message));
    return l.items;
}

cJSON *sim_get(struct sim *s, struct arena *a, const char *resource, const char *ns,
               const char *name)
{
    const struct store_object *o =
        store_get(s->store, find_resource(s, resource)->storage, str_c(ns), str_c(name));

    return o ? vapi_tree(a, o) : NULL;
}
