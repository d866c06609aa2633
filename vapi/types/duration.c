/* SPDX-License-Identifier: Apache-2.0
 *
 * time.Duration.String: "1h30m0s", "1.5s", "300ms". Must never round: the string parses back to the
 * same number of nanoseconds. */

#include "scalar.h"

/* Writes value / 10^digits, without trailing zeros of the fraction. */
static struct str fraction(struct arena *a, uint64_t value, unsigned digits, const char *unit)
{
    uint64_t scale = 1, rest;

    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    rest = value % scale;
    while (digits > 0 && rest % 10 == 0) {
        rest /= 10;
        digits--;
    }
    if (digits == 0)
        return arena_printf(a, "%llu%s", (unsigned long long)(value / scale), unit);
    return arena_printf(a, "%llu.%0*llu%s", (unsigned long long)(value / scale), (int)digits,
                        (unsigned long long)rest, unit);
}

static struct str small(struct arena *a, uint64_t ns)
{
    if (ns < 1000)
        return fraction(a, ns, 0, "ns");
    return ns < 1000000 ? fraction(a, ns, 3, "\xc2\xb5s") : fraction(a, ns, 6, "ms");
}

struct str duration_text(struct arena *a, int64_t ns)
{
    const uint64_t second = 1000000000, minute = 60 * second;
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    const char *sign = ns < 0 ? "-" : "";
    unsigned long long minutes = size / minute;
    struct str rest;

    if (ns == 0)
        return STR("0s");
    rest = size < second ? small(a, size) : fraction(a, size % minute, 9, "s");
    if (minutes == 0)
        return arena_printf(a, "%s%.*s", sign, STR_F(rest));
    if (minutes < 60)
        return arena_printf(a, "%s%llum%.*s", sign, minutes, STR_F(rest));
    return arena_printf(a, "%s%lluh%llum%.*s", sign, minutes / 60, minutes % 60, STR_F(rest));
}
