/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a host, whatever they say: no total of nodes but the tenant's comes out of one that
 * counts them, nor out of what came out. */

#include <assert.h>
#include <string.h>

#include <sublet/translate.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { SHOWN = 3 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "<number>/<number> node" with another total than the tenant's. */
static bool counts_others(struct str text)
{
    for (size_t i = 0; i + 1 < text.n; i++) {
        size_t end = i + 1, from = i, total = 0;

        while (from && is_digit(text.p[from - 1]))
            from--;
        while (end < text.n && end < i + 10 && is_digit(text.p[end]))
            total = total * 10 + (size_t)(text.p[end++] - '0');
        if (text.p[i] == '/' && from < i && i - from < 10 && end > i + 1 &&
            str_has_prefix(str_from(text, end), STR(" node")) && total != SHOWN)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char config_text[] = "{}";
    struct arena *a = arena_new(0);
    struct str text = {(const char *)data, size}, once, twice;
    struct config config;
    struct err err;

    err_init(&err, a);
    assert(config_load(a, str_c(config_text), 0, NULL, NULL, &config, &err) == 0);
    struct translate_tenant t = {.config = &config,
                                 .cluster_uid = STR("11111111-2222-3333-4444-555555555555"),
                                 .host_namespace = STR("team-research"),
                                 .nodes_shown = SHOWN};

    once = translate_text_up(a, &t, text, STR("host-name"), STR("ns"), STR("name"));
    assert(!counts_others(once));
    twice = translate_text_up(a, &t, once, STR("host-name"), STR("ns"), STR("name"));
    assert(!counts_others(twice));
    err_set(&err, &ERR_FORBIDDEN, "%.*s", STR_F(text));
    once = translate_refusal_up(a, &t, &err, STR("host-name"), STR("ns"), STR("name"));
    assert(!counts_others(once));
    arena_free(a);
    return 0;
}
