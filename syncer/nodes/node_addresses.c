/* SPDX-License-Identifier: Apache-2.0 */
/* Which node the tenant finds at which address. Why: clients reach a kubelet at the InternalIP of
 * its Node, and the host's is for all tenants; here each is the cluster IP of a host Service that
 * leads to this process, which serves what is the tenant's. The chart makes the Services, so their
 * number is bounded. Must never give two nodes one address, nor a node that of another component.
 */
#include "nodes/node_addresses.h"

#include <assert.h>

#include <sublet/log.h>

#define MOST 64 /* as the option's range */

struct node_addresses {
    struct syncer *syncer;
    size_t n_services, next, n;
    char *copies[MOST];
    struct str ips[MOST]; /* of copies */
    char *nodes[MOST];    /* NULL: it is free */
    bool lacking;         /* a node was refused one */
};

struct node_addresses *sync_node_addresses_new(struct syncer *s)
{
    struct node_addresses *n;

    if (s->config->kubelet_addresses <= 0)
        return NULL;
    n = NEW(struct node_addresses);
    n->syncer = s;
    n->n_services = (size_t)s->config->kubelet_addresses;
    assert(n->n_services <= MOST);
    return n;
}

struct node_addresses *sync_node_addresses_free(struct node_addresses *n)
{
    if (!n)
        return NULL;
    for (size_t i = 0; i < n->n; i++) {
        mem_free(n->copies[i]);
        mem_free(n->nodes[i]);
    }
    mem_free(n);
    return NULL;
}

/* --- as before the restart --- */

static void give(struct node_addresses *n, size_t i, struct str node)
{
    mem_free(n->nodes[i]);
    n->nodes[i] = node.n ? mem_strdup(node) : NULL;
}

static const struct resource *nodes_resource(const struct node_addresses *n)
{
    return syncer_resource(n->syncer, "", "nodes");
}

/* Of a node that this process wrote. */
static struct str internal_ip(const cJSON *node)
{
    if (!json_get(json_path(node, "metadata.annotations"), ANNOTATION_HOST_UID))
        return STR_NULL;
    json_each(address, json_path(node, "status.addresses"))
    {
        if (str_eqc(json_str(json_get(address, "type")), "InternalIP"))
            return json_str(json_get(address, "address"));
    }
    return STR_NULL;
}

static bool on_stored(void *ctx, const struct store_object *o)
{
    struct node_addresses *n = ctx;
    struct arena *a = arena_new(0);
    struct str ip = internal_ip(vapi_tree(a, o));

    for (size_t i = 0; i < n->n; i++)
        if (ip.n && str_eq(n->ips[i], ip) && !n->nodes[i])
            give(n, i, o->name);
    arena_free(a);
    return true;
}

/* --- the Services --- */

bool sync_node_addresses_next(struct node_addresses *n, struct arena *a, struct str *ret_tail)
{
    if (!n || n->next == n->n_services)
        return false;
    *ret_tail = arena_printf(a, "-kubelet-%zu", n->next);
    return true;
}

void sync_node_addresses_found(struct node_addresses *n, struct str ip)
{
    bool known = false;

    n->next++;
    for (size_t i = 0; i < n->n; i++)
        known |= str_eq(n->ips[i], ip);
    if (ip.n && !known) {
        n->copies[n->n] = mem_strdup(ip);
        n->ips[n->n] = str_c(n->copies[n->n]);
        n->n++;
    }
    if (n->next < n->n_services)
        return;
    store_scan_latest(n->syncer->store, nodes_resource(n)->storage, STR_NULL, on_stored, n);
    if (n->n < n->n_services)
        log_warn("syncer: of %zu host Services %.*s-kubelet-N, sync.kubeletAddresses, %zu have an "
                 "address",
                 n->n_services, STR_F(n->syncer->config->name), n->n);
}

const struct str *sync_node_addresses(const struct node_addresses *n, size_t *ret_n)
{
    *ret_n = n ? n->n : 0;
    return n ? n->ips : NULL;
}

/* --- the nodes --- */

static bool on_lacking(void *ctx, const struct store_object *o)
{
    struct node_addresses *n = ctx;

    syncer_add(n->syncer, SYNC_NODES, STR(""), o->name);
    return true;
}

/* node empty: one that is free. */
static size_t find(const struct node_addresses *n, struct str node)
{
    size_t i = 0;

    while (i < n->n && !(n->nodes[i] ? str_eqc(node, n->nodes[i]) : !node.n))
        i++;
    return i;
}

struct str sync_node_address_of(struct node_addresses *n, struct str node)
{
    size_t i = find(n, node);

    if (i < n->n)
        return n->ips[i];
    i = find(n, STR(""));
    n->lacking |= i == n->n;
    if (i == n->n)
        return STR_NULL;
    give(n, i, node);
    return n->ips[i];
}

void sync_node_address_drop(struct node_addresses *n, struct str node)
{
    size_t i = n ? find(n, node) : 0;

    if (!n || i == n->n)
        return;
    give(n, i, STR_NULL);
    if (n->lacking)
        store_scan_latest(n->syncer->store, nodes_resource(n)->storage, STR_NULL, on_lacking, n);
    n->lacking = false;
}

struct str sync_node_address_owner(const struct node_addresses *n, struct str ip)
{
    for (size_t i = 0; n && ip.n && i < n->n; i++)
        if (str_eq(n->ips[i], ip))
            return n->nodes[i] ? str_c(n->nodes[i]) : STR_NULL;
    return STR_NULL;
}
