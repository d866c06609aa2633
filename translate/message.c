/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the host, with the tenant's names. Why: kubelets, schedulers and admission speak of
 * host objects; a tenant must be able to read that, and must not learn host names from it. The
 * message is all this sees, so it replaces whole words only. */

#include <string.h>

#include "host_keys.h"

/* Longer messages are cut: the API bounds them, but a host's webhook may not. */
enum { TEXT_MAX = 32 * 1024 };

#define HIDDEN "(hidden)"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_hash(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '2' && c <= '7')))
            return false;
    }
    return s.n == HASH_CHARS;
}

/* A volume of a claim, "pvc-<uid>", is longer than other words. */
static bool is_uuid(struct str s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');

        if (dash ? s.p[i] != '-' : !hex)
            return false;
    }
    return true;
}

static bool is_name_of(const struct translate_tenant *t, struct str ns, struct str word,
                       struct str name)
{
    char expect[64];

    translate_name(t, ns, name, expect);
    if (str_eqc(word, expect))
        return true;
    translate_token_secret_name(t, ns, name, expect);
    return str_eqc(word, expect);
}

/* A word that ends in our hash of its beginning is one of our names, as is one that follows from a
 * known name. */
static bool unhash(const struct translate_tenant *t, struct message_names *names, struct str word,
                   struct str *ret)
{
    struct str name = str_sub(word, 0, word.n - HASH_CHARS - 1);
    bool found = false;

    if (is_name_of(t, names->ns, word, name)) {
        *ret = name;
        return true;
    }
    for (size_t i = 0; i < names->n_more; i++) {
        struct message_name *more = &names->more[i];

        if (!names->ready)
            translate_name(t, names->ns, more->name, more->host);
        if (str_eqc(word, more->host)) {
            *ret = more->name;
            found = true;
        }
    }
    names->ready = true;
    return found;
}

/* The host namespace may be a common word: it is replaced only where a namespace is expected. */
static bool at_namespace(struct str text, size_t from, size_t to)
{
    struct str before = str_sub(text, 0, from), head = str_from(text, to);
    char next = head.n ? head.p[0] : 0;

    if (next == '/' || next == '_' || str_has_prefix(head, STR(".svc")))
        return true;
    if (from && text.p[from - 1] == '_')
        return true;
    return str_has_suffix(before, STR("namespace ")) ||
           str_has_suffix(before, STR("namespace \"")) ||
           str_has_suffix(before, STR("namespaces \"")) ||
           str_has_suffix(before, STR("namespace: "));
}

static struct str word_up(const struct translate_tenant *t, struct message_names *names,
                          struct str text, size_t from, size_t to)
{
    struct str word = str_sub(text, from, to - from), found;

    if (!names->program && is_uuid(word))
        return STR(HIDDEN);
    if (names->host_name.n && str_eq(word, names->host_name))
        return names->name;
    if (t->host_namespace.n && str_eq(word, t->host_namespace) && at_namespace(text, from, to))
        return names->ns;
    if (word.n <= HASH_CHARS + 1 || word.p[word.n - HASH_CHARS - 1] != '-' ||
        !is_hash(str_from(word, word.n - HASH_CHARS)))
        return word;
    if (unhash(t, names, word, &found))
        return found;
    names->others = true;
    return word;
}

/* ---- what is the host's own ---- */

static size_t end_of(struct str text, size_t at, const char *stops)
{
    while (at < text.n && text.p[at] && !strchr(stops, text.p[at]))
        at++;
    return at;
}

/* `untolerated taint {sublet.dev/pool: other-team}` names another tenant's pool. */
static size_t taint_end(struct str text, size_t at)
{
    size_t end = str_find(str_from(text, at), '}');

    return at + end < text.n ? at + end + 1 : text.n;
}

/* The end of an IPv4 address with its port that begins at `at`, else at. */
static size_t address_end(struct str text, size_t at)
{
    size_t end = at, dots = 0, colons = 0;

    if (at && ((text.p[at - 1] >= '0' && text.p[at - 1] <= '9') || text.p[at - 1] == '.'))
        return at;
    while (end < text.n) {
        char c = text.p[end];

        if (c == '.' && !colons)
            dots++;
        else if (c == ':' && !colons)
            colons++;
        else if (c < '0' || c > '9')
            break;
        end++;
    }
    return dots == 3 && colons ? end : at;
}

/* Go's errors of connections name the resolver and the local end, which are the node's; in a
 * refusal of the host's API the remote end is the host's as well. The remote end of a probe is the
 * tenant's pod. */
static bool is_hosts_address(const struct message_names *names, struct str text, size_t at,
                             size_t end)
{
    struct str before = str_sub(text, 0, at), after = str_from(text, end);

    return str_has_suffix(str_sub(text, at, end - at), STR(":53")) ||
           str_has_prefix(after, STR("->")) ||
           (names->refusal &&
            (str_has_suffix(before, STR("dial tcp ")) || str_has_suffix(before, STR("->")) ||
             str_has_suffix(before, STR("://"))));
}

/* Where something of the host ends that begins at `at`, and its replacement. Else at. */
static size_t hide(const struct message_names *names, struct str text, size_t at, struct str *ret)
{
    static const struct {
        const char *lead;
        bool refusal;
    } leads[] = {{"system:serviceaccount:", false},
                 {"system:node:", false},
                 {"\"https://", true},
                 {"\"http://", true}};
    struct str rest = str_from(text, at);
    size_t end;

    if (str_has_prefix(rest, STR("untolerated taint {"))) {
        *ret = STR("untolerated taint");
        return taint_end(text, at);
    }
    *ret = STR(HIDDEN);
    for (size_t i = 0; !names->program && i < COUNT(leads); i++) {
        bool quoted = leads[i].lead[0] == '"';

        if ((leads[i].refusal && !names->refusal) || !str_has_prefix(rest, str_c(leads[i].lead)))
            continue;
        end = end_of(text, at + quoted, "\" ,;)]'");
        return quoted && end < text.n ? end + 1 : end;
    }
    end = names->program || at == text.n ? at : address_end(text, at);
    return end > at && is_hosts_address(names, text, at, end) ? end : at;
}

static bool is_node_char(char c)
{
    return is_word(c) || c == '.';
}

/* Names of host nodes become those under which the tenant is shown them: a pass of its own, since
 * they have dots. */
static struct str nodes_up(struct arena *a, const struct translate_tenant *t, struct str text)
{
    struct buf b = BUF_INIT(TEXT_MAX);
    struct str word, shown;
    size_t at = 0, end;

    while (at < text.n) {
        for (end = at; end < text.n && is_node_char(text.p[end]);)
            end++;
        while (end > at && (text.p[end - 1] == '.' || text.p[end - 1] == '-'))
            end--;
        word = str_sub(text, at, end - at);
        shown = word.n ? t->node_up(t->node_ctx, word) : STR_NULL;
        if (shown.p)
            buf_add(&b, shown.n ? shown : STR(HIDDEN));
        else
            buf_add(&b, word);
        at = end;
        while (at < text.n && (!is_node_char(text.p[at]) || at == end))
            buf_char(&b, text.p[at++]);
    }
    word = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return word;
}

/* ---- resources that a pool renames ---- */

static bool is_resource_char(char c)
{
    return is_word(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
}

/* A full stop may end the sentence. */
static bool ends_name(struct str text, size_t at)
{
    if (at < text.n && text.p[at] == '.')
        at++;
    return at >= text.n || !is_resource_char(text.p[at]);
}

static bool begins_name(struct str text, size_t at)
{
    struct str before = str_sub(text, 0, at);

    return !at || str_has_suffix(before, STR("requests.")) ||
           (!is_resource_char(text.p[at - 1]) && text.p[at - 1] != '.');
}

/* The renamed resource whose host name begins at `at`; NULL: none, or one that tenants write so. */
static const struct pool_resource *renamed_at(const struct config *config, struct str text,
                                              size_t at)
{
    struct str rest = str_from(text, at);
    const struct pool_resource *found = NULL;

    for (size_t i = 0; i < config->n_bindings; i++) {
        const struct config_pool *pool = config->bindings[i].pool;

        for (size_t k = 0; k < pool->n_resources; k++) {
            const struct pool_resource *r = &pool->resources[k];

            if (!str_has_prefix(rest, r->host_name) || !ends_name(text, at + r->host_name.n))
                continue;
            if (str_eq(r->name, r->host_name))
                return NULL;
            found = r;
        }
    }
    return found && begins_name(text, at) ? found : NULL;
}

/* As the tenant wrote them in its pods. */
static struct str resources_up(struct arena *a, const struct config *config, struct str text)
{
    struct buf b = BUF_INIT(TEXT_MAX);
    struct str ret;

    for (size_t at = 0; at < text.n;) {
        const struct pool_resource *r = renamed_at(config, text, at);

        if (r)
            buf_add(&b, r->name);
        else
            buf_char(&b, text.p[at]);
        at += r ? r->host_name.n : 1;
    }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

struct str translate_message_up(struct arena *a, const struct translate_tenant *t, struct str text,
                                struct message_names *names)
{
    struct buf b = BUF_INIT(TEXT_MAX);
    struct str ret;
    size_t at = 0;

    if (!names->program && translate_scheduling_up(a, text, t->nodes_shown, &ret))
        text = ret;
    if (!names->program && t->config->n_bindings)
        text = resources_up(a, t->config, text);
    if (!names->program && t->node_up)
        text = nodes_up(a, t, text);
    while (at < text.n) {
        size_t end = at, after = hide(names, text, at, &ret);

        if (after > at) {
            buf_add(&b, ret);
            at = after;
            continue;
        }
        while (end < text.n && is_word(text.p[end]))
            end++;
        if (end == at) {
            buf_char(&b, text.p[at++]);
            continue;
        }
        buf_add(&b, word_up(t, names, text, at, end));
        at = end;
    }
    ret = arena_str(a, buf_str(&b));
    while (b.failed && ret.n && ((unsigned char)ret.p[ret.n - 1] & 0x80))
        ret.n--;
    buf_fini(&b);
    return ret;
}

struct str translate_text_up(struct arena *a, const struct translate_tenant *t, struct str text,
                             struct str host_name, struct str ns, struct str name)
{
    struct message_names names = {.host_name = host_name, .ns = ns, .name = name};

    return translate_message_up(a, t, text, &names);
}

struct str translate_names_up(struct arena *a, const struct translate_tenant *t, struct str text,
                              struct str host_name, struct str ns, struct str name)
{
    struct message_names names = {.host_name = host_name, .ns = ns, .name = name, .program = true};

    return translate_message_up(a, t, text, &names);
}

struct str translate_value_up(struct arena *a, const struct translate_tenant *t, struct str value,
                              struct str host_name, struct str ns, struct str name)
{
    struct message_names names = {.host_name = host_name, .ns = ns, .name = name, .program = true};
    struct str ret = translate_message_up(a, t, value, &names);

    if (names.others || str_contains(value, STR("system:node:")) ||
        str_contains(value, STR("system:serviceaccount:")) ||
        (t->node_up && !str_eq(nodes_up(a, t, value), value)))
        return STR_NULL;
    return ret;
}

/* ---- refusals ---- */

/* `pods is forbidden: User "..." cannot create resource "pods" ...` (apiserver, responsewriters).
 */
bool translate_refusal_is_of_rights(const struct err *refusal)
{
    return refusal->kind == &ERR_UNAUTHORIZED ||
           (str_contains(refusal->message, STR("User \"")) &&
            str_contains(refusal->message, STR("\" cannot ")));
}

struct str translate_refusal_up(struct arena *a, const struct translate_tenant *t,
                                const struct err *refusal, struct str host_name, struct str ns,
                                struct str name)
{
    struct message_names names = {.host_name = host_name, .ns = ns, .name = name, .refusal = true};
    struct str text = refusal->message;

    if (translate_refusal_is_of_rights(refusal))
        return STR(TRANSLATE_NO_RIGHT);
    if (str_contains(text, STR("failed calling webhook")) ||
        str_contains(text, STR("failed to call webhook")))
        return STR("an admission webhook of the host cluster does not answer");
    if (str_has_prefix(text, STR("the host answered "))) /* no Status: a proxy's page, perhaps */
        return STR("the host cluster's answer is no Status");
    return translate_message_up(a, t, text, &names);
}
