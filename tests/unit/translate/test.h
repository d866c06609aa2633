/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test of translate begins with: the checks of config, an arena, a configuration
 * and a tenant. Must never hold state between tests. */
#pragma once

#include <sublet/translate_kind.h>
#include <sublet/yaml.h>

#include "../config/test.h"

#define assert_json(got, want)  check_json(f->a, (got), (want), __FILE__, __LINE__)
#define assert_allowed(finding) check_allowed((finding), __FILE__, __LINE__)

static inline void check_allowed(const char *finding, const char *file, int line)
{
    if (!finding)
        return;
    print_error("a host object must not be like this: %s\n", finding);
    _fail(file, line);
}

struct fixture {
    struct arena *a;
    struct config config;
    struct translate_tenant tenant;
    struct translate_related related;
    struct err err;
    struct str warnings;
};

/* A document in YAML, which JSON is, too; quotes may be single. */
static inline cJSON *doc(struct fixture *f, const char *text)
{
    cJSON *ret = NULL;

    check_ok(&f->err, yaml_parse(f->a, str_c(text), NULL, NULL, &ret, &f->err), __FILE__, __LINE__);
    return ret;
}

static inline void check_json(struct arena *a, const cJSON *got, const char *want, const char *file,
                              int line)
{
    cJSON *tree = NULL;
    struct err err;

    err_init(&err, a);
    if (yaml_parse(a, str_c(want), NULL, NULL, &tree, &err))
        print_error("the wanted document: %.*s\n", STR_F(err.message));
    else if (got && json_equal(got, tree))
        return;
    print_error("got  %.*s\nwant %s\n", STR_F(got ? json_text(a, got) : STR("NULL")), want);
    _fail(file, line);
}

static inline void use_config(struct fixture *f, const char *yaml)
{
    check_ok(&f->err, config_load(f->a, str_c(yaml), 0, NULL, NULL, &f->config, &f->err), __FILE__,
             __LINE__);
}

/* node-1, node-2, ... are shown; own-1, ... are the tenant's. */
static inline enum translate_node node_by_name(void *ctx, struct str name)
{
    (void)ctx;
    return str_has_prefix(name, STR("node-"))  ? NODE_SHOWN
           : str_has_prefix(name, STR("own-")) ? NODE_OWN
                                               : NODE_UNKNOWN;
}

static inline struct fixture *fixture_new(const char *yaml)
{
    struct fixture *f = NEW(struct fixture);

    f->a = arena_new(0);
    err_init(&f->err, f->a);
    use_config(f, yaml);
    f->tenant = (struct translate_tenant){
        .config = &f->config,
        .cluster_uid = STR("11111111-2222-3333-4444-555555555555"),
        .host_namespace = STR("team-research"),
        .api_ip = STR("10.96.7.7"),
        .api_port = 443,
        .node = node_by_name,
    };
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    f->a = arena_free(f->a);
    mem_free(f);
}
