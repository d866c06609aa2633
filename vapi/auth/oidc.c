/* SPDX-License-Identifier: Apache-2.0
 *
 * Issuers and their keys.
 *
 *   EMPTY --a token comes--> FETCHING --ok--> READY --key unknown, or keys too old--.
 *     ^                       |    ^                                                |
 *     '------ failed ---------'    '------------- (the keys stay in use) -----------'
 *   FETCHING does not begin again before FLOOR_MS.
 *
 * A worker fetches, the loop decides. Must never fetch because of a token that could not be valid
 * anyway (expired, of another audience), nor more often than the floor, whatever clients send; and
 * never let waiting requests grow without bound. */
#include "oidc.h"

#include <assert.h>
#include <string.h>

#include <uv.h>

#include <sublet/encode.h>
#include <sublet/log.h>

#define OIDC_MAGIC    0x6f696463u
#define JOB_MAGIC     0x6f696a62u
#define FLOOR_MS      10000 /* upstream's interval between attempts of discovery */
#define KEYS_OLD_MS   (3600 * 1000)
#define MOST_WAITING  256
#define VERIFIED_SIZE 256 /* a power of two */

struct issuer {
    const struct config_issuer *config;
    struct key_set *keys;
    struct job *job; /* a worker runs it */
    bool tried;
    /* Monotonic: the end of the last attempt, and of the last success. */
    int64_t tried_ms, fetched_ms;
    struct auth_wait *waiting;
};

/* A fetch; it outlives the issuer when that closes first. */
struct job {
    unsigned magic;
    uv_work_t work;
    struct oidc *oidc; /* NULL: the result is not needed any more */
    struct issuer *issuer;
    struct arena *arena;
    struct config_issuer config; /* strings in arena */
    oidc_get_cb get;
    void *ctx;
    atomic_bool cancelled;
    struct key_set *keys; /* NULL: failed, and err has the reason */
    struct err err;
};

/* Tokens whose signature was valid, by hash: verifying one costs more than answering a GET. */
struct verified {
    unsigned char hash[32];
    const struct key_set *keys; /* the keys that verified it; NULL: none */
};

struct oidc {
    unsigned magic;
    struct oidc_options o;
    struct issuer *issuers;
    size_t n_waiting;
    struct verified verified[VERIFIED_SIZE];
};

struct oidc *oidc_new(const struct oidc_options *options)
{
    struct oidc *o = NEW(struct oidc);

    o->magic = OIDC_MAGIC;
    o->o = *options;
    if (!o->o.get)
        o->o.get = oidc_http_get;
    o->issuers = mem_alloc((options->n_issuers + 1) * sizeof(*o->issuers));
    for (size_t i = 0; i < options->n_issuers; i++)
        o->issuers[i].config = &options->issuers[i];
    return o;
}

struct oidc *oidc_free(struct oidc *o)
{
    if (!o)
        return NULL;
    assert(o->magic == OIDC_MAGIC && !o->n_waiting);
    for (size_t i = 0; i < o->o.n_issuers; i++) {
        struct issuer *issuer = &o->issuers[i];

        if (issuer->job) {
            issuer->job->oidc = NULL;
            atomic_store(&issuer->job->cancelled, true);
            uv_cancel((uv_req_t *)&issuer->job->work);
        }
        key_set_free(issuer->keys);
    }
    mem_free(o->issuers);
    o->magic = 0;
    return mem_free(o);
}

/* ---- waiting ---- */

void auth_wait_end(struct auth_wait *w)
{
    if (!w->prev)
        return;
    *w->prev = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->prev = NULL;
    --*w->count;
}

/* again() may end other waits, but never adds to this list. */
static void wake_all(struct issuer *issuer)
{
    struct auth_wait *woken = issuer->waiting;

    issuer->waiting = NULL;
    if (woken)
        woken->prev = &woken;
    while (woken) {
        struct auth_wait *w = woken;

        auth_wait_end(w);
        w->again(w->ctx);
    }
}

/* ---- fetching ---- */

static void job_free(struct job *job)
{
    key_set_free(job->keys);
    arena_free(job->arena);
    job->magic = 0;
    mem_free(job);
}

static void fetch(uv_work_t *work)
{
    struct job *job = work->data;

    assert(job->magic == JOB_MAGIC);
    if (oidc_fetch_keys(&job->config, job->get, job->ctx, &job->cancelled, &job->keys, &job->err))
        job->keys = NULL;
}

static void take_keys(struct oidc *o, struct issuer *issuer, struct job *job)
{
    issuer->tried = true;
    issuer->tried_ms = clock_mono_ms(o->o.clock);
    if (!job->keys) {
        log_warn("keys of an issuer not fetched issuer=\"%.*s\" error=\"%.*s\"",
                 STR_F(issuer->config->url), STR_F(job->err.message));
        return;
    }
    /* Tokens verified by the previous keys must be verified again by the current ones. */
    memset(o->verified, 0, sizeof(o->verified));
    key_set_free(issuer->keys);
    issuer->keys = job->keys;
    issuer->fetched_ms = issuer->tried_ms;
    job->keys = NULL;
    log_info("keys of an issuer fetched issuer=\"%.*s\" keys=%zu", STR_F(issuer->config->url),
             key_set_size(issuer->keys));
}

static void on_fetched(uv_work_t *work, int status)
{
    struct job *job = work->data;
    struct oidc *o = job->oidc;
    struct issuer *issuer = job->issuer;

    (void)status; /* cancelled: only after o was freed */
    assert(job->magic == JOB_MAGIC);
    if (o) {
        assert(o->magic == OIDC_MAGIC);
        issuer->job = NULL;
        take_keys(o, issuer, job);
    }
    job_free(job);
    if (o)
        wake_all(issuer);
}

static void fetch_start(struct oidc *o, struct issuer *issuer)
{
    struct job *job = NEW(struct job);
    int failed;

    job->magic = JOB_MAGIC;
    job->oidc = o;
    job->issuer = issuer;
    job->arena = arena_new(0);
    job->config = (struct config_issuer){
        .url = arena_str(job->arena, issuer->config->url),
        .discovery_url = arena_str(job->arena, issuer->config->discovery_url),
        .certificate_authority = arena_str(job->arena, issuer->config->certificate_authority),
    };
    job->get = o->o.get;
    job->ctx = o->o.ctx;
    job->work.data = job;
    err_init(&job->err, job->arena);
    issuer->job = job;
    failed = uv_queue_work(o->o.loop, &job->work, fetch, on_fetched);
    assert(!failed); /* only without a function */
}

static bool may_fetch(const struct oidc *o, const struct issuer *issuer)
{
    return !issuer->job &&
           (!issuer->tried || clock_mono_ms(o->o.clock) - issuer->tried_ms >= FLOOR_MS);
}

/* ---- tokens ---- */

static struct issuer *find_issuer(const struct oidc *o, const struct jws *jws)
{
    /* Google's tokens once came without the scheme (go-oidc, oidc.go of apiserver). */
    struct str issuer = json_str(json_get(jws->claims, "iss"));
    struct str name =
        str_eqc(issuer, "accounts.google.com") ? STR("https://accounts.google.com") : issuer;

    for (size_t i = 0; o && i < o->o.n_issuers; i++) {
        if (str_eq(o->issuers[i].config->url, name))
            return &o->issuers[i];
    }
    return NULL;
}

bool oidc_is_issuer(const struct oidc *o, const struct jws *jws)
{
    return find_issuer(o, jws) != NULL;
}

static bool signature_good(struct oidc *o, const struct issuer *issuer, const struct jws *jws)
{
    struct str parts[] = {jws->text, jws->signature};
    unsigned char hash[32];
    struct verified *v;

    if (!issuer->keys)
        return false;
    sha256_parts(2, parts, hash);
    v = &o->verified[hash[0] % VERIFIED_SIZE];
    if (v->keys == issuer->keys && !memcmp(v->hash, hash, sizeof(hash)))
        return true;
    if (!key_set_verifies(issuer->keys, jws))
        return false;
    memcpy(v->hash, hash, sizeof(hash));
    v->keys = issuer->keys;
    return true;
}

bool oidc_await(struct oidc *o, const struct jws *jws, struct auth_wait *w)
{
    struct issuer *issuer = find_issuer(o, jws);
    int64_t now;
    struct err err;

    if (!issuer || !jws->algorithm)
        return false;
    err_init(&err, NULL);
    if (oidc_check_claims(issuer->config, jws->claims, clock_wall_s(o->o.clock), &err))
        return false;
    now = clock_mono_ms(o->o.clock);
    if (signature_good(o, issuer, jws)) {
        if (now - issuer->fetched_ms >= KEYS_OLD_MS && may_fetch(o, issuer))
            fetch_start(o, issuer);
        return false;
    }
    if (o->n_waiting >= MOST_WAITING || (!issuer->job && !may_fetch(o, issuer)))
        return false;
    if (!issuer->job)
        fetch_start(o, issuer);

    w->count = &o->n_waiting;
    w->next = issuer->waiting;
    w->prev = &issuer->waiting;
    if (w->next)
        w->next->prev = &w->next;
    issuer->waiting = w;
    o->n_waiting++;
    return true;
}

int oidc_authenticate(struct oidc *o, struct arena *a, const struct jws *jws, struct user *ret,
                      struct err *err)
{
    struct issuer *issuer = find_issuer(o, jws);

    assert(o->magic == OIDC_MAGIC && issuer);
    if (!jws->algorithm)
        return err_set(err, &ERR_UNAUTHORIZED,
                       "oidc: verify token: oidc: id token signed with unsupported algorithm");
    if (!issuer->keys)
        return err_set(err, &ERR_UNAUTHORIZED, "oidc: authenticator not initialized");
    if (oidc_check_claims(issuer->config, jws->claims, clock_wall_s(o->o.clock), err))
        return -1;
    if (!signature_good(o, issuer, jws))
        return err_set(err, &ERR_UNAUTHORIZED,
                       "oidc: verify token: failed to verify signature: failed to verify id token "
                       "signature");
    return oidc_map_user(issuer->config, a, jws->claims, ret, err);
}
