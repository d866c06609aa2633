/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the host, with the tenant's names. Why: kubelets, schedulers and admission speak of
 * host objects; a tenant must be able to read that, and must not learn host names from it. Text is
 * all this sees, so it replaces whole words only. */

#include <string.h>

#include "impl.h"

/* Longer messages are cut: the API bounds them, but a host's webhook may not. */
enum { TEXT_MAX = 32 * 1024 };

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

/* A word that ends in our hash of what stands before it is one of our names, as is one that a known
 * name gives. */
static bool unhash(const struct translate_tenant *t, struct text_names *names, struct str word,
                   struct str *ret)
{
    struct str name = str_sub(word, 0, word.n - HASH_CHARS - 1);
    bool found = false;

    if (is_name_of(t, names->ns, word, name)) {
        *ret = name;
        return true;
    }
    for (size_t i = 0; i < names->n_more; i++) {
        struct text_name *more = &names->more[i];

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

/* The host namespace may be a common word, so only where a namespace stands. */
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
           str_has_suffix(before, STR("namespace: "));
}

static struct str word_up(const struct translate_tenant *t, struct text_names *names,
                          struct str text, size_t from, size_t to)
{
    struct str word = str_sub(text, from, to - from), found;

    if (names->host_name.n && str_eq(word, names->host_name))
        return names->name;
    if (t->host_namespace.n && str_eq(word, t->host_namespace) && at_namespace(text, from, to))
        return names->ns;
    if (word.n > HASH_CHARS + 1 && word.p[word.n - HASH_CHARS - 1] == '-' &&
        is_hash(str_from(word, word.n - HASH_CHARS)) && unhash(t, names, word, &found))
        return found;
    return word;
}

/* `untolerated taint {sublet.dev/pool: other-team}` names somebody else's pool. */
static size_t skip_taint(struct str text, size_t at)
{
    struct str lead = STR("untolerated taint {");
    size_t end;

    if (!str_has_prefix(str_from(text, at), lead))
        return at;
    end = str_find(str_from(text, at), '}');
    return at + end < text.n ? at + end + 1 : text.n;
}

struct str text_up(struct arena *a, const struct translate_tenant *t, struct str text,
                   struct text_names *names)
{
    struct buf b = BUF_INIT(TEXT_MAX);
    struct str ret;
    size_t at = 0;

    while (at < text.n) {
        size_t end = at, after = skip_taint(text, at);

        if (after > at) {
            buf_addc(&b, "untolerated taint");
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
    struct text_names names = {.host_name = host_name, .ns = ns, .name = name};

    return text_up(a, t, text, &names);
}
