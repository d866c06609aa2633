/* SPDX-License-Identifier: Apache-2.0 */
/* See api_harness.h. The client is libcurl on a worker thread, so that the loop under test runs as
 * it does in the program. Must never wait by time. */
#include "api_harness.h"

#include "test.h"

#include <ctype.h>
#include <curl/curl.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

struct harness {
    uv_loop_t loop;
    char dir[64];
    struct arena *arena;
    struct store *store;
    struct vapi *api;
    struct config config;
    struct clock clock;
    struct rng rng;
    int64_t now_s;
    struct str random;
    bool ready, closed, stopped;
};

/* ---- time and chance ---- */

static int64_t wall(void *ctx)
{
    struct harness *h = ctx;

    return h->now_s * 1000000;
}

static int64_t mono(void *ctx)
{
    struct harness *h = ctx;

    return h->now_s * 1000;
}

static void fill(void *ctx, void *out, size_t n)
{
    struct harness *h = ctx;
    unsigned char *p = out;

    if (!h->random.n) {
        RNG_SYSTEM.fill(RNG_SYSTEM.ctx, out, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)h->random.p[i % h->random.n];
}

void harness_set_time(struct harness *h, int64_t unix_seconds)
{
    h->now_s = unix_seconds;
}

void harness_set_random(struct harness *h, struct str bytes)
{
    h->random = bytes;
}

/* ---- up and down ---- */

static void on_ready(void *ctx, const struct err *err)
{
    struct harness *h = ctx;

    if (err)
        print_error("start: %.*s\n", STR_F(err->message));
    assert_null(err);
    h->ready = true;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

void harness_run_until(struct harness *h, const bool *done)
{
    while (!*done)
        uv_run(&h->loop, UV_RUN_ONCE);
}

struct harness *harness_new_with(const struct vapi_hooks *hooks)
{
    return harness_new_for(hooks, NULL);
}

struct harness *harness_new_for(const struct vapi_hooks *hooks, const struct config *config)
{
    struct harness *h = NEW(struct harness);
    struct err err;
    struct store_options so = {0};
    struct vapi_options vo;

    STANDIN = (struct standin){0};
    h->arena = arena_new(0);
    h->now_s = 1800000000;
    h->clock = (struct clock){wall, mono, h};
    h->rng = (struct rng){fill, h};
    snprintf(h->dir, sizeof(h->dir), "/tmp/api-test-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    uv_loop_init(&h->loop);
    err_init(&err, h->arena);
    so.path = h->dir;
    assert_int_equal(store_open(&h->loop, &so, &h->store, &err), 0);

    if (config)
        h->config = *config;
    h->config.listen_address = STR("127.0.0.1:0");
    vo = (struct vapi_options){&h->loop,  h->store, NULL,          &h->config,
                               &h->clock, &h->rng,  STR("v1.36.3")};
    assert_int_equal(vapi_new(&vo, &h->api, &err), 0);
    if (hooks)
        vapi_set_hooks(h->api, hooks);
    assert_int_equal(vapi_start(h->api, on_ready, h, &err), 0);
    harness_run_until(h, &h->ready);
    return h;
}

struct harness *harness_new(void)
{
    return harness_new_with(NULL);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

void harness_stop(struct harness *h)
{
    if (!h->stopped)
        vapi_close(h->api, on_closed, &h->closed);
    h->stopped = true;
    harness_run_until(h, &h->closed);
}

void harness_free(struct harness *h)
{
    bool store_closed = false;

    harness_stop(h);
    store_close(h->store, on_closed, &store_closed);
    harness_run_until(h, &store_closed);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    nftw(h->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_free(h->arena);
    mem_free(h);
}

struct vapi *harness_api(struct harness *h)
{
    return h->api;
}

struct arena *harness_arena(struct harness *h)
{
    return h->arena;
}

struct store *harness_store(struct harness *h)
{
    return h->store;
}

const struct resource *harness_resource(struct harness *h, const char *group, const char *plural)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(h->api), str_c(group), str_c(plural));

    assert_non_null(r);
    return r;
}

/* ---- requests ---- */

struct request {
    uv_work_t work;
    const char *method, *type, *const *headers;
    char url[2048];
    struct str body;
    struct buf got, lines;
    long status;
    CURLcode rc;
    bool done;
};

static size_t on_bytes(char *p, size_t size, size_t n, void *ctx)
{
    buf_add(ctx, (struct str){p, size * n});
    return size * n;
}

static void perform(uv_work_t *work)
{
    struct request *r = work->data;
    CURL *curl = curl_easy_init();
    struct curl_slist *list = NULL;
    char type[256];

    curl_easy_setopt(curl, CURLOPT_URL, r->url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, r->method);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &r->got);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &r->lines);
    if (r->body.p) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, r->body.p);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)r->body.n);
    }
    if (!strcmp(r->method, "HEAD"))
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L); /* else it waits for what never comes */
    snprintf(type, sizeof(type), "content-type: %s", r->type ? r->type : "application/json");
    list = curl_slist_append(list, type);
    list = curl_slist_append(list, "user-agent: tests/1");
    list = curl_slist_append(list, "expect:");
    for (size_t i = 0; r->headers && r->headers[i]; i++)
        list = curl_slist_append(list, r->headers[i]);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    r->rc = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &r->status);
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
}

static void on_performed(uv_work_t *work, int status)
{
    struct request *r = work->data;

    (void)status;
    r->done = true;
}

struct request *ask_begin(struct harness *h, const char *method, const char *path, const char *type,
                          struct str body, const char *const *headers)
{
    struct request *r = ARENA_NEW(h->arena, struct request);

    *r = (struct request){.method = method, .type = type, .headers = headers, .body = body};
    snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u%s", vapi_port(h->api), path);
    r->work.data = r;
    uv_queue_work(&h->loop, &r->work, perform, on_performed);
    return r;
}

struct answer ask_end(struct harness *h, struct request *r)
{
    struct answer a = {0};

    harness_run_until(h, &r->done);
    if (r->rc != CURLE_OK)
        print_error("%s %s: %s\n", r->method, r->url, curl_easy_strerror(r->rc));
    assert_int_equal(r->rc, CURLE_OK);

    a.status = (int)r->status;
    a.body = arena_str(h->arena, buf_str(&r->got));
    a.headers = str_c(arena_cstr(h->arena, buf_str(&r->lines)));
    if (json_parse(h->arena, a.body, &a.json, NULL))
        a.json = NULL;
    if (getenv("SHOW"))
        print_message("%s %s -> %d %.*s\n", r->method, r->url, a.status, STR_F(a.body));
    buf_fini(&r->got);
    buf_fini(&r->lines);
    return a;
}

void ask_forget(struct harness *h, struct request *r)
{
    harness_run_until(h, &r->done);
    buf_fini(&r->got);
    buf_fini(&r->lines);
}

struct answer ask(struct harness *h, const char *method, const char *path, const char *type,
                  struct str body, const char *const *headers)
{
    return ask_end(h, ask_begin(h, method, path, type, body, headers));
}

struct answer get(struct harness *h, const char *path)
{
    return ask(h, "GET", path, NULL, STR_NULL, NULL);
}

struct answer post(struct harness *h, const char *path, const char *json)
{
    return ask(h, "POST", path, NULL, str_c(json), NULL);
}

struct answer put(struct harness *h, const char *path, const char *json)
{
    return ask(h, "PUT", path, NULL, str_c(json), NULL);
}

struct answer merge(struct harness *h, const char *path, const char *json)
{
    return ask(h, "PATCH", path, "application/merge-patch+json", str_c(json), NULL);
}

struct answer delete_(struct harness *h, const char *path, const char *json)
{
    return ask(h, "DELETE", path, NULL, str_c(json), NULL);
}

bool has_header(const struct answer *a, const char *line)
{
    return str_contains(a->headers, str_c(line));
}
