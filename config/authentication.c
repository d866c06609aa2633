/* SPDX-License-Identifier: Apache-2.0 */
/* `authentication:` of the configuration: which identities beside the cluster's own are accepted.
 * The keys and their rules are those of kube-apiserver's AuthenticationConfiguration
 * (apiserver.config.k8s.io/v1; validation: pkg/apis/apiserver/validation). Must never accept what
 * would be ignored later: a rule that is not applied admits a user it should refuse. */

#include "impl.h"

#define MOST_ISSUERS 64 /* as upstream */
#define MOST_RULES   64

static const char NO_EXPRESSIONS[] =
    "CEL expressions are not evaluated by this version: use claim (with prefix or requiredValue)";

static int refuse_expression(const struct place *at, const cJSON *value, void *into)
{
    (void)into;
    if (json_is_string(value) && !json_str(value).n)
        return 0;
    return place_error(at, "%s", NO_EXPRESSIONS);
}

static int refuse_list(const struct place *at, const cJSON *value, void *into)
{
    (void)into;
    if (json_is_array(value) && !json_count(value))
        return 0;
    return place_error(at, "%s", NO_EXPRESSIONS);
}

/* ---- issuer ---- */

/* An https URL without user, query or fragment. */
static int check_url(const struct place *at, struct str url)
{
    struct str rest = url, authority;

    if (!url.n)
        return place_error(at, "must not be empty");
    if (!str_has_prefix(url, STR("https://")))
        return place_error(at, "URL scheme must be https");
    for (size_t i = 0; i < url.n; i++) {
        if ((unsigned char)url.p[i] <= ' ' || (unsigned char)url.p[i] >= 0x7f)
            return place_error(at, "a URL holds no blanks and no characters beyond ASCII");
    }
    rest = str_from(rest, sizeof("https://") - 1);
    authority = str_sub(rest, 0, str_find(rest, '/'));
    if (!authority.n)
        return place_error(at, "the URL names no host");
    if (str_find(authority, '@') < authority.n)
        return place_error(at, "URL must not contain a username or password");
    if (str_find(url, '?') < url.n)
        return place_error(at, "URL must not contain a query");
    if (str_find(url, '#') < url.n)
        return place_error(at, "URL must not contain a fragment");
    return 0;
}

static int read_url(const struct place *at, const cJSON *value, void *into)
{
    struct config_issuer *issuer = into;

    return place_string(at, value, &issuer->url) || check_url(at, issuer->url) ? -1 : 0;
}

static int read_discovery_url(const struct place *at, const cJSON *value, void *into)
{
    struct config_issuer *issuer = into;

    if (place_string(at, value, &issuer->discovery_url))
        return -1;
    return issuer->discovery_url.n ? check_url(at, issuer->discovery_url) : 0;
}

static int read_authority(const struct place *at, const cJSON *value, void *into)
{
    struct str pem;

    if (place_string(at, value, &pem))
        return -1;
    if (pem.n && !str_contains(pem, STR("-----BEGIN CERTIFICATE-----")))
        return place_error(at, "want certificates as PEM text");
    ((struct config_issuer *)into)->certificate_authority = pem;
    return 0;
}

static int read_audiences(const struct place *at, const cJSON *value, void *into)
{
    struct str_list list;

    if (config_read_list(at->arena, at->path, value, &list, at->err))
        return -1;
    for (size_t i = 0; i < list.n; i++) {
        struct str_list before = {list.items, i};

        if (!list.items[i].n)
            return place_error(at, "[%zu] must not be empty", i);
        if (str_list_has(before, list.items[i]))
            return place_error(at, "\"%.*s\" is given twice", STR_F(list.items[i]));
    }
    ((struct config_issuer *)into)->audiences = list;
    return 0;
}

/* There is only one policy; it must be given when there are several audiences. */
static int read_match_policy(const struct place *at, const cJSON *value, void *into)
{
    struct str word;

    if (place_string(at, value, &word))
        return -1;
    if (word.n && !str_eqc(word, "MatchAny"))
        return config_wrong_word(at->err, at->path, word, "MatchAny");
    ((struct config_issuer *)into)->match_any = word.n > 0;
    return 0;
}

static int read_egress(const struct place *at, const cJSON *value, void *into)
{
    struct str word;

    (void)into;
    if (place_string(at, value, &word))
        return -1;
    return word.n ? place_error(at, "there is no egress selector here") : 0;
}

static const struct place_key ISSUER_KEYS[] = {
    {"url", read_url},
    {"discoveryURL", read_discovery_url},
    {"certificateAuthority", read_authority},
    {"audiences", read_audiences},
    {"audienceMatchPolicy", read_match_policy},
    {"egressSelectorType", read_egress},
    {0},
};

/* A slash at the end makes no other URL of it. */
static struct str without_slashes(struct str url)
{
    while (url.n && url.p[url.n - 1] == '/')
        url.n--;
    return url;
}

static int read_issuer(const struct place *at, const cJSON *value, void *into)
{
    struct config_issuer *issuer = into;

    if (place_object(at, value, ISSUER_KEYS, issuer))
        return -1;
    if (!issuer->url.n)
        return place_error(at, "url is needed");
    if (issuer->discovery_url.n &&
        str_eq(without_slashes(issuer->url), without_slashes(issuer->discovery_url)))
        return place_error(at, "discoveryURL must be different from url");
    if (!issuer->audiences.n)
        return place_error(at, "at least one of audiences is needed");
    if (issuer->audiences.n > 1 && !issuer->match_any)
        return place_error(at, "audienceMatchPolicy must be MatchAny for multiple audiences");
    return 0;
}

/* ---- claims ---- */

struct claim_draft {
    struct config_claim claim;
    bool prefixed;
};

static int read_claim(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct claim_draft *)into)->claim.claim);
}

static int read_prefix(const struct place *at, const cJSON *value, void *into)
{
    struct claim_draft *d = into;

    d->prefixed = true;
    return place_string(at, value, &d->claim.prefix);
}

static const struct place_key CLAIM_KEYS[] = {
    {"claim", read_claim},
    {"prefix", read_prefix},
    {"expression", refuse_expression},
    {0},
};

static int read_prefixed(const struct place *at, const cJSON *value, struct config_claim *ret)
{
    struct claim_draft d = {.prefixed = false};

    if (place_object(at, value, CLAIM_KEYS, &d))
        return -1;
    if (d.claim.claim.n && !d.prefixed)
        return place_error(at, "prefix is needed with claim; \"\" for none");
    *ret = d.claim;
    return 0;
}

static int read_username(const struct place *at, const cJSON *value, void *into)
{
    return read_prefixed(at, value, &((struct config_issuer *)into)->username);
}

static int read_groups(const struct place *at, const cJSON *value, void *into)
{
    return read_prefixed(at, value, &((struct config_issuer *)into)->groups);
}

static const struct place_key UID_KEYS[] = {
    {"claim", read_claim},
    {"expression", refuse_expression},
    {0},
};

static int read_uid(const struct place *at, const cJSON *value, void *into)
{
    struct claim_draft d = {.prefixed = false};

    if (place_object(at, value, UID_KEYS, &d))
        return -1;
    ((struct config_issuer *)into)->uid_claim = d.claim.claim;
    return 0;
}

static const struct place_key MAPPING_KEYS[] = {
    {"username", read_username},
    {"groups", read_groups},
    {"uid", read_uid},
    {"extra", refuse_list}, /* upstream knows it by expression only */
    {0},
};

static int read_mappings(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, MAPPING_KEYS, into);
}

static int read_rule_claim(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct config_claim_rule *)into)->claim);
}

static int read_rule_value(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct config_claim_rule *)into)->value);
}

static int refuse_message(const struct place *at, const cJSON *value, void *into)
{
    struct str text;

    (void)into;
    if (place_string(at, value, &text))
        return -1;
    return text.n ? place_error(at, "may not be specified when claim is set") : 0;
}

static const struct place_key RULE_KEYS[] = {
    {"claim", read_rule_claim},
    {"requiredValue", read_rule_value},
    {"expression", refuse_expression},
    {"message", refuse_message},
    {0},
};

static int read_rules(const struct place *at, const cJSON *value, void *into)
{
    struct config_issuer *issuer = into;
    struct config_claim_rule *rules;
    size_t n = 0;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    if (json_count(value) > MOST_RULES)
        return place_error(at, "at most %d", MOST_RULES);
    rules = arena_alloc(at->arena, (json_count(value) + 1) * sizeof *rules);
    json_each(item, value)
    {
        struct place inner = place_item(at, n);

        if (place_object(&inner, item, RULE_KEYS, &rules[n]))
            return -1;
        if (!rules[n].claim.n)
            return place_error(&inner, "claim is needed");
        for (size_t i = 0; i < n; i++) {
            if (str_eq(rules[i].claim, rules[n].claim))
                return place_error(&inner, "claim is that of [%zu] already", i);
        }
        n++;
    }
    issuer->rules = rules;
    issuer->n_rules = n;
    return 0;
}

static const struct place_key JWT_KEYS[] = {
    {"issuer", read_issuer},
    {"claimMappings", read_mappings},
    {"claimValidationRules", read_rules},
    {"userValidationRules", refuse_list},
    {0},
};

static int read_jwt(const struct place *at, const cJSON *value, struct config_issuer *ret)
{
    if (place_object(at, value, JWT_KEYS, ret))
        return -1;
    if (!ret->url.n)
        return place_error(at, "issuer is needed");
    if (!ret->username.claim.n)
        return place_error(at, "claimMappings.username.claim is needed");
    return 0;
}

/* Two authenticators of one issuer, or of one discovery document, would contradict each other. */
static int check_others(const struct place *at, const struct config *config,
                        const struct config_issuer *issuers, size_t n)
{
    struct str own = arena_printf(at->arena, "https://kubernetes.default.svc.%.*s",
                                  STR_F(config->cluster_domain));

    if (str_eq(issuers[n].url, own))
        return place_error(at, "issuer.url is that of the cluster's own service accounts");
    for (size_t i = 0; i < n; i++) {
        if (str_eq(issuers[i].url, issuers[n].url))
            return place_error(at, "issuer.url is that of [%zu] already", i);
        if (issuers[n].discovery_url.n &&
            str_eq(issuers[i].discovery_url, issuers[n].discovery_url))
            return place_error(at, "issuer.discoveryURL is that of [%zu] already", i);
    }
    return 0;
}

static int read_jwts(const struct place *at, const cJSON *value, void *into)
{
    struct config *config = into;
    struct config_issuer *issuers;
    size_t n = 0;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    if (json_count(value) > MOST_ISSUERS)
        return place_error(at, "at most %d", MOST_ISSUERS);
    issuers = arena_alloc(at->arena, (json_count(value) + 1) * sizeof *issuers);
    json_each(item, value)
    {
        struct place inner = place_item(at, n);

        if (read_jwt(&inner, item, &issuers[n]) || check_others(&inner, config, issuers, n))
            return -1;
        n++;
    }
    config->issuers = issuers;
    config->n_issuers = n;
    return 0;
}

/* ---- anonymous ---- */

struct anonymous_draft {
    struct config *config;
    bool enabled;
};

static int read_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct anonymous_draft *)into)->enabled);
}

static int read_path(const struct place *at, const cJSON *value, void *into)
{
    struct str *path = into;

    if (place_string(at, value, path))
        return -1;
    return path->n && path->p[0] == '/' ? 0 : place_error(at, "want a path such as /livez");
}

static const struct place_key CONDITION_KEYS[] = {{"path", read_path}, {0}};

static int read_conditions(const struct place *at, const cJSON *value, void *into)
{
    struct anonymous_draft *d = into;
    struct str *paths;
    size_t n = 0;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    paths = arena_alloc(at->arena, (json_count(value) + 1) * sizeof *paths);
    json_each(item, value)
    {
        struct place inner = place_item(at, n);

        if (place_object(&inner, item, CONDITION_KEYS, &paths[n]))
            return -1;
        if (!paths[n++].n)
            return place_error(&inner, "path is needed");
    }
    d->config->anonymous_paths = (struct str_list){paths, n};
    return 0;
}

static const struct place_key ANONYMOUS_KEYS[] = {
    {"enabled", read_enabled},
    {"conditions", read_conditions},
    {0},
};

static int read_anonymous(const struct place *at, const cJSON *value, void *into)
{
    struct anonymous_draft d = {.config = into};

    if (place_object(at, value, ANONYMOUS_KEYS, &d))
        return -1;
    if (!d.enabled && d.config->anonymous_paths.n)
        return place_error(at, "enabled should be set to true when conditions are defined");
    d.config->anonymous_refused = !d.enabled;
    return 0;
}

static const struct place_key AUTHENTICATION_KEYS[] = {
    {"jwt", read_jwts},
    {"anonymous", read_anonymous},
    {0},
};

int config_load_authentication(struct arena *a, const cJSON *tree, struct config *config,
                               struct err *err)
{
    struct place at = {a, STR("config: authentication"), err};
    const cJSON *value = json_get(tree, "authentication");

    if (!value || json_is_null(value))
        return 0;
    return place_object(&at, value, AUTHENTICATION_KEYS, config);
}
