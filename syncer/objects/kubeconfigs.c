/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig of this virtual cluster's admin in Secrets of the host: `<name>-kubeconfig`, under
 * key `value`, where Cluster API, Flux and Argo CD look for it, and under the keys of vCluster's
 * Secret, beside its parts; and those of `kubeconfig.additionalSecrets`, which may be in other
 * namespaces, and may have the token of a service account instead of the admin's certificate. The
 * token in a Secret stays until four fifths of its life are over, also over restarts; without the
 * account the Secret is empty. Must never write into a Secret there that was not made for it. */

#include <sublet/config_kubeconfig.h>
#include <sublet/encode.h>
#include <sublet/pki.h>

#include <assert.h>

#include "core/leader.h"
#include "objects/objects.h"

struct kubeconfig_secret {
    struct publication what; /* with a duty of its own: a failure ends with its own success */
    struct publisher *publisher;
    struct str text; /* heap; of an account: a token has to be appended */
    struct kubeconfigs *all;
    const struct config_kubeconfig *config; /* NULL: `<name>-kubeconfig` */
    const char *account_duty;
    int64_t issued, renew; /* wall clock, seconds: of its token, and when it is replaced; 0: none */
};

/* Tokens are valid by the wall clock, which is set and jumps behind a machine that slept. */
enum { LOOK_MS = 60000 };

struct kubeconfigs {
    struct syncer *syncer;
    struct store_watch *accounts; /* NULL: no Secret is of a service account */
    bool looks;                   /* the next look at the tokens is deferred */
    size_t n;                     /* the first is `<name>-kubeconfig` */
    struct kubeconfig_secret items[1 + CONFIG_MOST_KUBECONFIGS];
};

static bool is_of_account(const struct kubeconfig_secret *one)
{
    return one->config && one->config->account.n;
}

/* --- tokens --- */

static int64_t now_s(const struct kubeconfigs *k)
{
    return clock_wall_s(vapi_clock(k->syncer->api));
}

static void look(void *ctx);

static void arm(struct kubeconfigs *k)
{
    bool any = false;

    for (size_t i = 0; i < k->n; i++)
        any |= k->items[i].renew != 0;
    if (!any || k->looks)
        return;
    k->looks = true;
    syncer_defer_for(k->syncer, look, k, LOOK_MS);
}

/* One that was issued later than now is not valid yet: the clock was set back. */
static void look(void *ctx)
{
    struct kubeconfigs *k = ctx;
    int64_t now = now_s(k);

    k->looks = false;
    if (syncer_is_closing(k->syncer))
        return;
    for (size_t i = 0; i < k->n; i++) {
        struct kubeconfig_secret *one = &k->items[i];

        if (one->renew && (one->renew <= now || one->issued > now)) {
            one->renew = 0; /* until it is written */
            sync_publisher_want(one->publisher);
        }
    }
    arm(k);
}

/* When a token of these claims is replaced. */
static int64_t renewal_of(const struct token_claims *claims)
{
    return claims->issued + (claims->expires - claims->issued) * 4 / 5;
}

/* The one that the Secret has, if it is of this account and this configuration. STR_NULL: none. */
static struct str kept_token(struct kubeconfig_secret *one, struct arena *a, const cJSON *existing,
                             const struct store_object *account)
{
    const struct pki *pki = vapi_pki(one->all->syncer->api);
    struct token_claims claims;
    struct str jwt;
    struct err err;

    err_init(&err, a);
    if (!base64_decode(a, json_str(json_get(existing, "token")), &jwt) || !jwt.n ||
        pki_verify_token(pki, a, jwt, &claims, &err))
        return STR_NULL;
    if (!str_eq(claims.service_account_uid, account->uid) || claims.bound_kind.n ||
        claims.n_audiences != 1 || !str_eq(claims.audiences[0], pki_issuer(pki)) ||
        claims.expires - claims.issued != one->config->token_s ||
        renewal_of(&claims) <= now_s(one->all) || claims.issued > now_s(one->all))
        return STR_NULL;
    one->issued = claims.issued;
    one->renew = renewal_of(&claims);
    return jwt;
}

static struct str new_token(struct kubeconfig_secret *one, struct arena *a,
                            const struct store_object *account, struct err *err)
{
    struct syncer *s = one->all->syncer;
    struct pki *pki = vapi_pki(s->api);
    struct str audience = pki_issuer(pki), jwt;
    char id[37];
    struct token_claims claims = {.ns = one->config->account_ns,
                                  .service_account = one->config->account,
                                  .service_account_uid = arena_str(a, account->uid),
                                  .audiences = &audience,
                                  .n_audiences = 1,
                                  .issued = now_s(one->all)};

    rng_uuid(vapi_rng(s->api), id);
    claims.id = str_c(id);
    claims.not_before = claims.issued;
    claims.expires = claims.issued + one->config->token_s;
    if (pki_sign_token(pki, a, &claims, &jwt, err))
        return STR_NULL;
    one->issued = claims.issued;
    one->renew = renewal_of(&claims);
    return jwt;
}

/* STR_NULL: there is no such account, or no token of it, which is a standing notice. */
static struct str token_of(struct kubeconfig_secret *one, struct arena *a, const cJSON *existing)
{
    struct syncer *s = one->all->syncer;
    const struct config_kubeconfig *c = one->config;
    const struct resource *r = syncer_resource(s, "", "serviceaccounts");
    const struct store_object *account = store_get(s->store, r->storage, c->account_ns, c->account);
    struct str jwt = STR_NULL;
    struct err err;

    err_init(&err, a);
    one->renew = 0;
    if (account)
        jwt = kept_token(one, a, existing, account);
    if (account && !jwt.n)
        jwt = new_token(one, a, account, &err);
    sync_dialogue_note(s, one->account_duty, jwt.n ? NULL : "KubeconfigAccountMissing",
                       jwt.n ? STR("")
                             : STR("a further Secret with a kubeconfig on the host cluster is "
                                   "empty: the service account that it is for does not exist"),
                       jwt.n ? STR_NULL
                             : arena_printf(a, "%.*s/%.*s%s%.*s", STR_F(c->account_ns),
                                            STR_F(c->account), err.kind ? ": " : "",
                                            STR_F(err.message)));
    arm(one->all);
    return jwt;
}

/* --- accounts --- */

static void account_changed(struct kubeconfigs *k, const struct store_object *o)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct kubeconfig_secret *one = &k->items[i];

        if (is_of_account(one) && (!o || (str_eq(one->config->account, o->name) &&
                                          str_eq(one->config->account_ns, o->ns))))
            sync_publisher_renew(one->publisher);
    }
}

static void on_accounts(void *ctx);

static void watch_accounts(struct kubeconfigs *k)
{
    struct store *store = k->syncer->store;
    struct err err;
    int failed;

    k->accounts = store_watch_close(k->accounts);
    err_init(&err, NULL);
    failed = store_watch_open(store, syncer_resource(k->syncer, "", "serviceaccounts")->storage,
                              store_revision(store), on_accounts, k, &k->accounts, &err);
    assert(!failed); /* the current revision is never compacted */
}

/* A change of one that is there is none of its uid. */
static void on_accounts(void *ctx)
{
    struct kubeconfigs *k = ctx;
    const struct store_event *e;
    bool expired = false;

    while ((e = store_watch_next(k->accounts, &expired))) {
        if (e->type == STORE_ADDED || e->type == STORE_DELETED)
            account_changed(k, e->object);
        if (e->type == STORE_DELETED)
            sync_kubeconfig_accounts_make(k->syncer);
    }
    if (!expired)
        return;
    watch_accounts(k);
    sync_kubeconfig_accounts_make(k->syncer);
    account_changed(k, NULL);
}

/* --- what is in the Secrets --- */

/* The base64 behind a key of the kubeconfig that pki_kubeconfig() wrote, as Secrets have it too. */
static struct str part_of(struct str kubeconfig, struct str key)
{
    while (kubeconfig.p) {
        struct str line = str_trim(str_cut(&kubeconfig, '\n'));

        if (str_has_prefix(line, key))
            return str_trim(str_from(line, key.n));
    }
    return STR_NULL;
}

static cJSON *kubeconfig_data(void *ctx, struct arena *a, const cJSON *existing)
{
    static const struct {
        const char *key, *from;
    } parts[] = {
        {"certificate-authority", "certificate-authority-data:"},
        {"client-certificate", "client-certificate-data:"},
        {"client-key", "client-key-data:"},
    };
    struct kubeconfig_secret *one = ctx;
    struct str kubeconfig = one->text, whole;
    cJSON *data = json_new_object(a);

    if (is_of_account(one)) {
        struct str token = token_of(one, a, existing);

        if (!token.n)
            return data;
        kubeconfig = arena_printf(a, "%.*s%.*s\n", STR_F(kubeconfig), STR_F(token));
        json_set_str(a, data, "token", base64_encode(a, token));
    }
    whole = base64_encode(a, kubeconfig);
    json_set_str(a, data, "value", whole);
    json_set_str(a, data, "config", whole);
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct str part = part_of(kubeconfig, str_c(parts[i].from));

        if (part.n)
            json_set_str(a, data, parts[i].key, part);
    }
    return data;
}

#define OF_A_KUBECONFIG                                                                            \
    .id = SYNC_SECRETS, .kind = "Secret", .data = kubeconfig_data,                                 \
    .failed = "KubeconfigNotPublished", .foreign = "KubeconfigSecretExists"

static const struct publication KUBECONFIG = {
    OF_A_KUBECONFIG, .duty = "kubeconfig",
    .failed_message =
        "the Secret with this virtual cluster's kubeconfig cannot be written on the host cluster",
    .foreign_message = "the Secret for this virtual cluster's kubeconfig exists on the host "
                       "cluster and is not this virtual cluster's"};

/* The names of the Secrets and their namespaces are the operator's: a tenant is not shown them. */
static const struct publication MORE = {
    OF_A_KUBECONFIG, .whole = true, .mark = "sublet.dev/kubeconfig",
    .failed_message = "a further Secret with this virtual cluster's kubeconfig cannot be written "
                      "on the host cluster",
    .foreign_message = "a further Secret for this virtual cluster's kubeconfig exists on the host "
                       "cluster and is not made for it"};

struct kubeconfigs *sync_kubeconfigs_new(struct syncer *s)
{
    struct arena *a = arena_new(0);
    struct kubeconfigs *k = NEW(struct kubeconfigs);
    struct str name = arena_printf(a, "%.*s-kubeconfig", STR_F(s->config->name));

    k->syncer = s;
    k->items[0].what = KUBECONFIG;
    k->items[0].publisher = sync_publisher_new(s, &k->items[0].what, STR(""), name, &k->items[0]);
    for (size_t i = 0; i < s->config->n_kubeconfigs; i++) {
        const struct config_kubeconfig *config = &s->config->kubeconfigs[i];
        struct kubeconfig_secret *one = &k->items[1 + i];

        one->what = MORE;
        one->all = k;
        one->config = config;
        one->what.duty = arena_printf(s->arena, "kubeconfig.additionalSecrets[%zu]", i).p;
        one->account_duty = arena_printf(s->arena, "%s.serviceAccount", one->what.duty).p;
        one->publisher = sync_publisher_new(s, &one->what, config->ns, config->name, one);
    }
    k->n = 1 + s->config->n_kubeconfigs;
    arena_free(a);
    return k;
}

static void publish(struct kubeconfig_secret *one, struct str text)
{
    mem_free(one->text.p);
    one->text = mem_str(text);
    sync_publisher_want(one->publisher);
}

void syncer_publish_kubeconfig(struct syncer *s, struct str kubeconfig)
{
    publish(&s->kubeconfigs->items[0], kubeconfig);
    sync_kubeconfig_accounts_clear(s);
    sync_kubeconfig_accounts_make(s);
}

void syncer_publish_kubeconfig_more(struct syncer *s, size_t i, struct str kubeconfig)
{
    struct kubeconfigs *k = s->kubeconfigs;

    if (is_of_account(&k->items[1 + i]) && !k->accounts)
        watch_accounts(k);
    publish(&k->items[1 + i], kubeconfig);
}

void sync_kubeconfigs_renew(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        sync_publisher_renew(k->items[i].publisher);
}

void sync_kubeconfigs_kick(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        sync_publisher_kick(k->items[i].publisher);
}

void sync_kubeconfigs_close(struct kubeconfigs *k)
{
    k->accounts = store_watch_close(k->accounts);
    for (size_t i = 0; i < k->n; i++)
        sync_publisher_close(k->items[i].publisher);
}

struct kubeconfigs *sync_kubeconfigs_free(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        mem_free(k->items[i].text.p);
    mem_free(k);
    return NULL;
}
