/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration from any bytes: what is refused names a place in a readable message; what is
 * accepted keeps what pools and bindings promise. */

#include <assert.h>

#include <sublet/pool.h>
#include <sublet/vgpu.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_pool(const struct config_pool *p)
{
    assert(p->name.n && (p->n_resources || p->mode == POOL_DRA));
    assert(!p->adversarial || p->mode == POOL_EXCLUSIVE || p->mode == POOL_MIG);
    assert(!vgpu_system(p->mode) == !p->gpu_memory_mib);
    assert(!vgpu_system(p->mode) || p->scheduler_kind == vgpu_system(p->mode)->scheduler);
    assert(p->mode != POOL_KAI || (p->scheduler_kind == SCHEDULER_KAI && p->queue.n));
    assert(!p->dedicated || json_count(p->node_selector));
    assert(p->per_pod >= 0 && p->per_container >= 0 && p->max_lifetime_s >= 0);
    for (size_t i = 0; i < p->n_resources; i++) {
        assert(p->resources[i].name.n && p->resources[i].host_name.n);
        assert(p->resources[i].gpu_eq.num >= 0 && p->resources[i].gpu_eq.den > 0);
        assert(p->resources[i].gpu_eq.num || p->resources[i].per_pod);
    }
    json_each(toleration, p->tolerations)
    {
        assert(json_str(json_get(toleration, "key")).n);
    }
    assert(json_count(p->node_selector) && json_str(json_get(p->node_selector, p->fence_key)).n);
}

static void check_config(const struct config *c)
{
    struct rational sum;
    size_t defaults = 0;

    assert(c->name.n && c->data_dir.n && c->host_qps > 0 && c->verdict_timeout_ms > 0);
    for (size_t i = 0; i < c->n_pools; i++)
        check_pool(&c->pools[i]);
    for (size_t i = 0; i < c->n_bindings; i++) {
        const struct config_binding *b = &c->bindings[i];

        assert(b->pool >= c->pools && b->pool < c->pools + c->n_pools);
        assert(rational_add(b->guarantee, b->burst, &sum));
        assert(rational_cmp(b->lend, b->guarantee) <= 0);
        defaults += b->is_default;
    }
    assert(defaults <= 1);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct config config;
    struct err err;

    err_init(&err, a);
    if (config_load(a, (struct str){(const char *)data, size}, 0, NULL, NULL, &config, &err))
        assert(err.kind == &ERR_BAD_REQUEST && err.message.n && str_is_utf8(err.message));
    else
        check_config(&config);
    arena_free(a);
    return 0;
}
