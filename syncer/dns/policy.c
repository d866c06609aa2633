/* SPDX-License-Identifier: Apache-2.0 */
/* The policy from options and resolv.conf. Must never expose a name of the host's cluster, unless
 * the admin maps its domain. */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#define OPTION "config: network.dns."

/* --- resolv.conf --- */

struct strings {
    struct arena *arena;
    struct str *items;
    size_t n, cap;
};

static void strings_add(struct strings *t, struct str text)
{
    ARENA_GROW(t->arena, t->items, t->n, t->cap);
    t->items[t->n++] = arena_str(t->arena, text);
}

static struct str_list strings_take(const struct strings *t)
{
    return (struct str_list){t->items, t->n};
}

/* The next word of *rest, or an empty string. */
static struct str cut_word(struct str *rest)
{
    size_t from = 0, n = 0;
    struct str word;

    while (from < rest->n && (rest->p[from] == ' ' || rest->p[from] == '\t'))
        from++;
    while (from + n < rest->n && rest->p[from + n] != ' ' && rest->p[from + n] != '\t')
        n++;
    word = str_sub(*rest, from, n);
    *rest = str_from(*rest, from + n);
    return word;
}

static struct str without_dot(struct str name)
{
    return name.n && name.p[name.n - 1] == '.' ? str_sub(name, 0, name.n - 1) : name;
}

/* The kubelet writes "NS.svc.X svc.X X", then the search list of its node. */
static void sort_searches(struct arena *a, const struct strings *all, struct dns_resolv *ret)
{
    struct strings searches = {.arena = a}, hidden = {.arena = a};

    for (size_t i = 0; i < all->n; i++)
        if (str_has_prefix(all->items[i], STR("svc.")))
            strings_add(&hidden, str_from(all->items[i], 4));
    for (size_t i = 0; i < all->n; i++) {
        struct str one = all->items[i];
        bool own = false;

        for (size_t k = 0; k < hidden.n; k++)
            own |= str_eq(one, hidden.items[k]) ||
                   str_has_suffix(one, arena_printf(a, ".%.*s", STR_F(hidden.items[k])));
        if (!own)
            strings_add(&searches, one);
    }
    ret->searches = strings_take(&searches);
    ret->hidden = strings_take(&hidden);
}

void dns_resolv_parse(struct arena *a, struct str text, struct dns_resolv *ret)
{
    struct strings servers = {.arena = a}, searches = {.arena = a};
    struct str rest = text;

    while (rest.p) {
        struct str line = str_cut(&rest, '\n'), word, key;

        line = str_trim(line);
        key = cut_word(&line);
        if (str_eqc(key, "nameserver")) {
            strings_add(&servers, cut_word(&line));
        } else if (str_eqc(key, "search") || str_eqc(key, "domain")) {
            searches.n = 0; /* the last line applies */
            while ((word = without_dot(cut_word(&line))).n)
                strings_add(&searches, word);
        }
    }
    ret->servers = strings_take(&servers);
    sort_searches(a, &searches, ret);
}

/* --- options --- */

static int wrong(struct err *err, const char *option, size_t at, struct str got, const char *want)
{
    return err_set(err, &ERR_BAD_REQUEST, OPTION "%s[%zu]: want %s, got \"%.*s\"", option, at, want,
                   STR_F(got));
}

static int add_server(struct dns_upstream *to, struct str text)
{
    if (to->n == DNS_SERVERS_MAX || !dns_endpoint_parse(text, &to->servers[to->n]) ||
        !to->servers[to->n].port)
        return -1;
    to->n++;
    return 0;
}

/* Entries of resolv.conf that are not addresses are ignored, as by libc. */
static int load_forward(const struct config *c, const struct dns_resolv *resolv,
                        struct dns_policy *p, struct err *err)
{
    struct str_list list = c->dns_forwarders;

    dns_name_parse(STR("."), &p->forward.domain);
    for (size_t i = 0; !list.n && i < resolv->servers.n; i++)
        add_server(&p->forward, resolv->servers.items[i]);
    if (list.n == 1 && str_eqc(list.items[0], "none"))
        return 0;
    for (size_t i = 0; i < list.n; i++)
        if (add_server(&p->forward, list.items[i]))
            return wrong(err, "forwarders", i, list.items[i],
                         "at most 8 addresses such as 10.0.0.10 or 10.0.0.10:5353, or none");
    return 0;
}

static int load_stubs(struct arena *a, struct str_list list, struct dns_policy *p, struct err *err)
{
    p->stubs = arena_alloc(a, (list.n + 1) * sizeof(*p->stubs));
    for (size_t i = 0; i < list.n; i++) {
        struct dns_upstream *to = &p->stubs[p->n_stubs++];
        struct str rest = list.items[i], word;
        bool bad = !dns_name_parse(cut_word(&rest), &to->domain);

        while ((word = cut_word(&rest)).n)
            bad |= add_server(to, word) != 0;
        if (bad || !to->n)
            return wrong(err, "stubDomains", i, list.items[i],
                         "a domain and addresses, such as \"corp.example 10.0.0.10\"");
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct dns_host *x = a, *y = b;

    return str_cmp(dns_name_bytes(&x->name), dns_name_bytes(&y->name));
}

static struct dns_host *host_of(struct dns_host *hosts, size_t *n, const struct dns_name *name)
{
    for (size_t i = 0; i < *n; i++)
        if (dns_name_eq(&hosts[i].name, name))
            return &hosts[i];
    hosts[*n].name = *name;
    return &hosts[(*n)++];
}

static void host_add(struct arena *a, struct dns_host *host, const struct dns_ip *ip)
{
    struct dns_ip *grown = arena_alloc(a, (host->n + 1) * sizeof(*grown));

    if (host->n)
        memcpy(grown, host->ips, host->n * sizeof(*grown));
    grown[host->n++] = *ip;
    host->ips = grown;
}

/* A name, or "*." before one. */
static bool parse_pattern(struct str word, struct dns_name *ret, bool *ret_below)
{
    *ret_below = str_has_prefix(word, STR("*."));
    return !str_eqc(word, "*") && !str_eqc(word, "*.") &&
           dns_name_parse(*ret_below ? str_from(word, 2) : word, ret);
}

static bool add_name(struct arena *a, struct dns_policy *p, struct str word,
                     const struct dns_ip *ip)
{
    struct dns_name name;
    bool pattern;

    if (!parse_pattern(word, &name, &pattern))
        return false;
    host_add(
        a, pattern ? host_of(p->below, &p->n_below, &name) : host_of(p->hosts, &p->n_hosts, &name),
        ip);
    return true;
}

static size_t count_words(struct str_list list)
{
    size_t n = 0;

    for (size_t i = 0; i < list.n; i++) {
        struct str rest = list.items[i];

        while (cut_word(&rest).n)
            n++;
    }
    return n;
}

static int load_hosts(struct arena *a, struct str_list list, struct dns_policy *p, struct err *err)
{
    p->hosts = arena_alloc(a, (count_words(list) + 1) * sizeof(*p->hosts));
    p->below = arena_alloc(a, (count_words(list) + 1) * sizeof(*p->below));
    for (size_t i = 0; i < list.n; i++) {
        struct str rest = list.items[i], word;
        struct dns_ip ip;
        bool bad = !dns_ip_parse(cut_word(&rest), &ip);
        size_t names = 0;

        while (!bad && (word = cut_word(&rest)).n) {
            bad |= !add_name(a, p, word, &ip);
            names++;
        }
        if (bad || !names)
            return wrong(err, "hosts", i, list.items[i],
                         "an address and names, such as \"10.0.0.5 git.corp.example\" or "
                         "\"10.0.0.5 *.corp.example\"");
    }
    qsort(p->hosts, p->n_hosts, sizeof(*p->hosts), by_name);
    return 0;
}

/* "NAME TARGET"; a target with "*." makes sense for a name with one. */
static bool parse_alias(struct str text, struct dns_alias *ret)
{
    return parse_pattern(cut_word(&text), &ret->name, &ret->below) &&
           parse_pattern(cut_word(&text), &ret->target, &ret->keeps_labels) &&
           (ret->below || !ret->keeps_labels) && !cut_word(&text).n;
}

static int load_aliases(struct arena *a, struct str_list list, struct dns_policy *p,
                        struct err *err)
{
    p->aliases = arena_alloc(a, (list.n + 1) * sizeof(*p->aliases));
    for (size_t i = 0; i < list.n; i++)
        if (!parse_alias(list.items[i], &p->aliases[p->n_aliases++]))
            return wrong(
                err, "aliases", i, list.items[i],
                "two names, such as \"git.corp.example gitea.shared.svc.cluster.local\" or "
                "\"*.old.example *.new.example\"");
    return 0;
}

static int load_hidden(struct arena *a, const struct config *c, const struct dns_resolv *resolv,
                       struct dns_policy *p, struct err *err)
{
    static const struct str usual[] = {{"cluster.local", 13}};
    struct str_list lists[] = {c->dns_hidden, {NULL, 0}};

    if (!c->dns_hidden.n) {
        lists[0] = resolv->hidden;
        lists[1] = (struct str_list){usual, 1};
    }
    p->hidden = arena_alloc(a, (lists[0].n + lists[1].n + 1) * sizeof(*p->hidden));
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k].n; i++)
            if (!dns_name_parse(lists[k].items[i], &p->hidden[p->n_hidden++]))
                return wrong(err, "hiddenDomains", i, lists[k].items[i], "a domain");
    return 0;
}

static int load_clients(struct arena *a, struct str_list list, struct dns_policy *p,
                        struct err *err)
{
    p->clients = arena_alloc(a, (list.n + 1) * sizeof(*p->clients));
    for (size_t i = 0; i < list.n; i++)
        if (!dns_range_parse(list.items[i], &p->clients[p->n_clients++]))
            return wrong(err, "clients", i, list.items[i], "a range such as 10.0.0.0/24");
    return 0;
}

int dns_policy_load(struct arena *a, const struct config *config, const struct dns_resolv *resolv,
                    struct dns_policy *ret, struct err *err)
{
    *ret = (struct dns_policy){.nodes = config->kubelet_addresses > 0};
    if (!dns_endpoint_parse(config->dns_listen, &ret->listen))
        return err_set(err, &ERR_BAD_REQUEST,
                       OPTION "listen: want an address and port, such as 0.0.0.0:1053, got "
                              "\"%.*s\"",
                       STR_F(config->dns_listen));
    if (!dns_name_parse(config->cluster_domain, &ret->origin))
        return err_set(err, &ERR_BAD_REQUEST,
                       "config: network.clusterDomain: want a domain, got \"%.*s\"",
                       STR_F(config->cluster_domain));
    return load_forward(config, resolv, ret, err) || load_stubs(a, config->dns_stubs, ret, err) ||
                   load_hosts(a, config->dns_hosts, ret, err) ||
                   load_aliases(a, config->dns_aliases, ret, err) ||
                   load_hidden(a, config, resolv, ret, err) ||
                   load_clients(a, config->dns_clients, ret, err)
               ? -1
               : 0;
}

/* --- resolution of a name --- */

const struct dns_host *dns_policy_host(const struct dns_policy *p, const struct dns_name *name)
{
    struct dns_host key = {.name = *name};
    const struct dns_host *found = bsearch(&key, p->hosts, p->n_hosts, sizeof(*p->hosts), by_name);

    if (found)
        return found;
    for (size_t i = 0; i < p->n_below; i++) {
        const struct dns_host *one = &p->below[i];

        if ((!found || one->name.n > found->name.n) && dns_name_is_under(name, &one->name) &&
            !dns_name_eq(name, &one->name))
            found = one;
    }
    return found;
}

static bool stands_for(const struct dns_alias *alias, const struct dns_name *name)
{
    bool equal = dns_name_eq(name, &alias->name);

    return alias->below ? !equal && dns_name_is_under(name, &alias->name) : equal;
}

/* The name's bytes before those of the alias, then the target's. */
static void replace_end(const struct dns_name *name, const struct dns_alias *alias,
                        struct dns_name *ret)
{
    size_t kept = alias->keeps_labels ? (size_t)name->n - alias->name.n : 0;

    ret->n = 0;
    if (kept + alias->target.n > DNS_NAME_MAX)
        return;
    memcpy(ret->b, name->b, kept);
    memcpy(ret->b + kept, alias->target.b, alias->target.n);
    ret->n = (uint8_t)(kept + alias->target.n);
}

const struct dns_alias *dns_policy_alias(const struct dns_policy *p, const struct dns_name *name,
                                         struct dns_name *ret)
{
    const struct dns_alias *found = NULL;

    for (size_t i = 0; i < p->n_aliases; i++) {
        const struct dns_alias *one = &p->aliases[i];

        if (stands_for(one, name) &&
            (!found || !one->below || (found->below && one->name.n > found->name.n)))
            found = one;
    }
    if (found)
        replace_end(name, found, ret);
    return found;
}

enum dns_way dns_policy_way(const struct dns_policy *p, const struct dns_name *name,
                            const struct dns_upstream **ret)
{
    enum dns_way way = p->forward.n ? DNS_WAY_UPSTREAM : DNS_WAY_NONE;
    size_t longest = p->forward.domain.n;

    *ret = &p->forward;
    for (size_t i = 0; i < p->n_hidden; i++)
        if (p->hidden[i].n > longest && dns_name_is_under(name, &p->hidden[i])) {
            longest = p->hidden[i].n;
            way = DNS_WAY_HIDDEN;
        }
    for (size_t i = 0; i < p->n_stubs; i++)
        if (p->stubs[i].domain.n >= longest && dns_name_is_under(name, &p->stubs[i].domain)) {
            longest = p->stubs[i].domain.n;
            way = DNS_WAY_UPSTREAM;
            *ret = &p->stubs[i];
        }
    if (p->origin.n >= longest && dns_name_is_under(name, &p->origin))
        way = DNS_WAY_OWN;
    return way;
}
