/* SPDX-License-Identifier: Apache-2.0 */
/* TokenReviews and SubjectAccessReviews, as kube-apiserver's own components delegate them. Must
 * never take a silent or a refusing host for a permission, nor keep a token: it is known by its
 * SHA-256.
 *
 *   fleet_reviews_ask() --> TokenReview --authenticated--> SubjectAccessReview --> a verdict, kept
 */
#include "reviews.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/encode.h>
#include <sublet/host.h>
#include <sublet/json_build.h>

#define REVIEWS_MAGIC  0x72657669u
#define MOST_KEPT      256
#define MOST_NEW       16  /* under way of tokens that were not permitted before, */
#define MOST_UNDER_WAY 144 /* and of all: more than there are streams and tenants that fetch */
#define PERMITTED_MS   10000
#define REFUSED_MS     2000
#define TIMEOUT_MS     10000

#define TOKEN_PATH  "/apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS_PATH "/apis/authorization.k8s.io/v1/subjectaccessreviews"

struct kept {
    unsigned char hash[32];
    enum review_verdict verdict;
    int64_t since_ms, until_ms; /* until_ms 0: none was kept here */
};
struct review {
    LIST_ENTRY(review) all;
    struct reviews *reviews;
    unsigned char hash[32];
    struct str ns; /* on the heap; empty: the path */
    struct host_call *call;
    bool again;
    review_done_cb done;
    void *ctx;
};
struct reviews {
    unsigned magic;
    struct reviews_options o;
    struct kept kept[MOST_KEPT];
    unsigned next; /* of kept: the oldest one */
    unsigned n_under_way, n_new;
    LIST_HEAD(, review) under_way;
};

struct reviews *fleet_reviews_new(const struct reviews_options *options)
{
    struct reviews *r = NEW(struct reviews);

    r->magic = REVIEWS_MAGIC;
    r->o = *options;
    r->o.path = mem_str(options->path);
    r->o.audience = mem_str(options->audience);
    return r;
}

struct reviews *fleet_reviews_free(struct reviews *r)
{
    if (!r)
        return NULL;
    assert(r->magic == REVIEWS_MAGIC && LIST_EMPTY(&r->under_way));
    mem_free(r->o.path.p);
    mem_free(r->o.audience.p);
    r->magic = 0;
    return mem_free(r);
}

/* --- verdicts that are kept --- */

/* Of a token and what it is for. */
static void hash_of(struct str token, struct str ns, unsigned char out[32])
{
    struct arena *a = arena_new(0);

    sha256(arena_concat(a, 3, (struct str[]){ns, STR(" "), token}), out);
    arena_free(a);
}

bool fleet_reviews_recall(const struct reviews *r, struct str token, struct str ns,
                          enum review_verdict *ret, int64_t *ret_ms)
{
    int64_t now = clock_mono_ms(r->o.clock);
    unsigned char hash[32];

    hash_of(token, ns, hash);
    for (size_t i = 0; i < MOST_KEPT; i++) {
        const struct kept *k = &r->kept[i];

        if (now >= k->until_ms || memcmp(k->hash, hash, sizeof(hash)) != 0)
            continue;
        *ret = k->verdict;
        *ret_ms = k->since_ms;
        return true;
    }
    return false;
}

static void keep(struct reviews *r, const struct review *v, enum review_verdict verdict)
{
    struct kept *k = &r->kept[r->next];

    r->next = (r->next + 1) % MOST_KEPT;
    memcpy(k->hash, v->hash, sizeof(k->hash));
    k->verdict = verdict;
    k->since_ms = clock_mono_ms(r->o.clock);
    k->until_ms = k->since_ms + (verdict == REVIEW_ALLOWED ? PERMITTED_MS : REFUSED_MS);
}

/* --- requests to the host --- */

static void release(struct review *v)
{
    LIST_REMOVE(v, all);
    v->reviews->n_under_way--;
    v->reviews->n_new -= !v->again;
    mem_free(v->ns.p);
    mem_free(v);
}

static void finish(struct review *v, enum review_verdict verdict, struct str why)
{
    review_done_cb done = v->done;
    void *ctx = v->ctx;

    if (verdict != REVIEW_UNKNOWN)
        keep(v->reviews, v, verdict);
    release(v);
    done(ctx, verdict, why);
}

static void send_review(struct review *v, struct arena *a, const char *path, cJSON *review,
                        host_done_cb done)
{
    const struct host_request q = {.method = "POST",
                                   .path = str_c(path),
                                   .body = json_text(a, review),
                                   .timeout_ms = TIMEOUT_MS};

    v->call = host_send(v->reviews->o.host, &q, done, v);
}

/* The answer's status, or NULL: *why is the reason. */
/* NULL: there is none, and the review is finished. */
static const cJSON *status_of(struct review *v, struct arena *a, const struct host_answer *answer,
                              const struct err *err)
{
    const cJSON *status = NULL;
    cJSON *tree;

    assert(v->reviews->magic == REVIEWS_MAGIC);
    v->call = NULL;
    if (!err && !json_parse(a, answer->body, &tree, NULL))
        status = json_get(tree, "status");
    if (json_is_object(status))
        return status;
    finish(v, REVIEW_UNKNOWN, err ? err->message : STR("the answer of the host is no review"));
    return NULL;
}

static void on_access(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct review *v = ctx;
    struct arena *a = arena_new(0);
    const cJSON *status = status_of(v, a, answer, err);

    if (status && json_true(json_get(status, "allowed")))
        finish(v, REVIEW_ALLOWED, STR(""));
    else if (status)
        finish(v, REVIEW_FORBIDDEN, json_str_at(status, "reason"));
    arena_free(a);
}

static struct json_member attributes_of(struct review *v, struct arena *a)
{
    if (!v->ns.n)
        return JSON("nonResourceAttributes",
                    json_object(a, JSON("path", v->reviews->o.path), JSON("verb", "get")));
    return JSON("resourceAttributes",
                json_object(a, JSON("namespace", v->ns), JSON("verb", "create"),
                            JSON("version", "v1"), JSON("resource", "pods")));
}

/* What a TokenReview knows of the user, as a SubjectAccessReview has it. */
static void ask_access(struct review *v, struct arena *a, const cJSON *user)
{
    cJSON *spec =
        json_object(a, JSON("user", json_str_at(user, "username")),
                    JSON_NONEMPTY("uid", json_str_at(user, "uid")),
                    JSON("groups", json_copy(a, json_get(user, "groups"))),
                    JSON("extra", json_copy(a, json_get(user, "extra"))), attributes_of(v, a));

    send_review(v, a, ACCESS_PATH,
                json_object(a, JSON("apiVersion", "authorization.k8s.io/v1"),
                            JSON("kind", "SubjectAccessReview"), JSON("spec", spec)),
                on_access);
}

/* An authenticator that knows no audiences names none: its tokens are the API server's. */
static bool is_for_us(const struct reviews *r, const cJSON *status)
{
    return !r->o.audience.n || json_list_has(json_get(status, "audiences"), r->o.audience);
}

static void on_token(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct review *v = ctx;
    struct arena *a = arena_new(0);
    const cJSON *status = status_of(v, a, answer, err);

    if (status && json_true(json_get(status, "authenticated")) && is_for_us(v->reviews, status))
        ask_access(v, a, json_get(status, "user"));
    else if (status)
        finish(v, REVIEW_UNAUTHENTICATED, STR(""));
    arena_free(a);
}

struct review *fleet_reviews_ask(struct reviews *r, struct str token, struct str ns, bool again,
                                 review_done_cb done, void *ctx)
{
    struct review *v;
    struct arena *a;
    cJSON *spec;

    assert(r->magic == REVIEWS_MAGIC);
    if (r->n_under_way >= MOST_UNDER_WAY || (!again && r->n_new >= MOST_NEW))
        return NULL;
    v = NEW(struct review);
    *v = (struct review){.reviews = r, .ns = mem_str(ns), .again = again, .done = done, .ctx = ctx};
    hash_of(token, ns, v->hash);
    r->n_under_way++;
    r->n_new += !again;
    LIST_INSERT_HEAD(&r->under_way, v, all);
    a = arena_new(0);
    spec = json_object(a, JSON("token", token));
    if (r->o.audience.n)
        json_append(json_set(a, spec, "audiences", json_new_array(a)),
                    json_new_string(a, r->o.audience));
    send_review(v, a, TOKEN_PATH,
                json_object(a, JSON("apiVersion", "authentication.k8s.io/v1"),
                            JSON("kind", "TokenReview"), JSON("spec", spec)),
                on_token);
    arena_free(a);
    return v;
}

void fleet_review_cancel(struct review *v)
{
    if (!v)
        return;
    host_cancel(v->call);
    release(v);
}
