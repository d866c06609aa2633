/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities, fractions, times and durations from any string: what is accepted prints as a string
 * that is accepted with the same value and prints the same again; arithmetic never leaves its
 * bounds. */

#include <assert.h>

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/quantity.h>
#include <sublet/rational.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_sums(struct quantity q)
{
    static const int64_t others[] = {0, 1, -1, 1024, INT64_MAX, INT64_MIN};

    for (size_t i = 0; i < COUNT(others); i++) {
        struct quantity other = quantity_from_i64(others[i], QUANTITY_BINARY_SI);
        struct quantity sum = quantity_add(q, other);
        int order = quantity_cmp(sum, q);
        assert(others[i] >= 0 ? order >= 0 : order <= 0);
        if (quantity_units(q) < INT64_MAX && quantity_units(q) > INT64_MIN)
            assert(quantity_cmp(quantity_sub(sum, other), q) == 0);
    }
}

static void check_quantity(struct arena *a, struct str text)
{
    struct quantity q, again;
    struct str kept, twice;

    if (!quantity_parse(text, &q))
        return;
    struct str canonical = quantity_format(a, q);
    bool ok = quantity_parse(canonical, &again);
    assert(ok && quantity_cmp(q, again) == 0);
    assert(str_eq(quantity_format(a, again), canonical));

    ok = quantity_text(a, text, &kept) && quantity_parse(kept, &again);
    assert(ok && quantity_cmp(q, again) == 0);
    ok = quantity_text(a, kept, &twice);
    assert(ok && str_eq(kept, twice));

    (void)quantity_milli(q);
    assert(!quantity_is_integer(q) || quantity_units(q) == INT64_MAX ||
           quantity_units(q) == INT64_MIN ||
           quantity_cmp(quantity_from_i64(quantity_units(q), q.format), q) == 0);
    check_sums(q);
}

static void check_rational(struct arena *a, struct str text)
{
    struct rational r, again, other;

    if (!rational_parse(text, &r))
        return;
    assert(r.den > 0);
    bool ok = rational_parse(rational_format(a, r), &again);
    assert(ok && rational_cmp(r, again) == 0);
    if (rational_add(r, (struct rational){1, 3}, &other)) {
        assert(rational_cmp(other, r) > 0);
        ok = rational_sub(other, (struct rational){1, 3}, &again);
        assert(ok && rational_cmp(again, r) == 0);
    }
    (void)rational_mul(r, r, &other);
}

static void check_times(struct arena *a, struct str text)
{
    int64_t us, again, ns;

    if (time_parse(text, &us)) {
        bool ok = time_parse(time_format_us(a, us), &again);
        assert(!ok || again == us); /* an offset can lead out of the years 0 to 9999 */
    }
    if (duration_parse(text, &ns))
        (void)duration_human(a, ns / 1000000000);
}

static void check_encodings(struct arena *a, struct str text)
{
    struct str bytes;

    if (base64url_decode(a, text, &bytes))
        assert(str_eq(base64url_encode(a, bytes), text));
    if (base64_decode(a, text, &bytes))
        assert(bytes.n <= text.n / 4 * 3);
    if (url_decode(a, text, false, &bytes))
        assert(bytes.n <= text.n);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena *a = arena_new(0);

    check_quantity(a, text);
    check_rational(a, text);
    check_times(a, text);
    check_encodings(a, text);
    arena_free(a);
    return 0;
}
