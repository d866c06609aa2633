/* SPDX-License-Identifier: Apache-2.0 */
/* An expression of a tenant: it is refused in words, or compiles and evaluates within its limit,
 * with the same answer twice. A zero byte ends the source; what follows is the object, as JSON. */

#include <assert.h>

#include <sublet/cel.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool same(struct cel_value x, struct cel_value y)
{
    if (x.kind != y.kind)
        return false;
    return x.kind == CEL_BOOL ? x.b == y.b : x.kind != CEL_STRING || str_eq(x.s, y.s);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const struct cel_declaration declared[] = {{"object", "*"}, {"request", "Q"}};
    static const struct cel_environment env = {declared, COUNT(declared), true, NULL, NULL};
    struct str text = {(const char *)data, size}, source = str_cut(&text, '\0');
    struct arena *a = arena_new((size_t)64 << 20);
    struct cel_program *p;
    cJSON *object = NULL;
    struct err err;

    err_init(&err, a);
    if (text.n && json_parse(a, text, &object, &err))
        err_clear(&err);

    const struct cel_variable bound[] = {{"object", cel_from_json(object)},
                                         {"request", cel_from_json(object)}};
    const struct cel_activation activation = {bound, COUNT(bound), NULL, NULL, NULL};

    if (!str_is_utf8(source)) {
        arena_free(a);
        return 0;
    }
    if (cel_compile(a, source, &env, &p, &err)) {
        assert(err.message.n);
    } else {
        int64_t one = 0, two = 0;
        struct cel_value x = cel_evaluate(a, p, &activation, 20000, &one);
        struct cel_value y = cel_evaluate(a, p, &activation, 20000, &two);

        assert(one <= 20000 && (one == two || arena_over(a)));
        assert(same(x, y) || arena_left(a) < (size_t)32 << 20);
        cel_program_release(p);
    }
    arena_free(a);
    return 0;
}
