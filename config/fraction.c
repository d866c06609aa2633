/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs, exactly. Why: KAI reads a float from an annotation, and a quota that adds floats
 * is no quota; so there is one spelling for each hundredth, and what is spelled otherwise is either
 * refused or counted as a whole GPU. Must never round in favour of a pod. */

#include <sublet/fraction.h>

#include <sublet/object.h>
#include <sublet/quantity.h>

enum { FRACTION_DEVICES_MAX = 1024 }; /* of one pod; no machine has as many */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

bool fraction_parse(struct str text, int64_t *ret)
{
    int64_t hundredths;

    if (!text.n || text.n > 4 || (text.p[0] != '0' && text.p[0] != '1'))
        return false;
    hundredths = (text.p[0] - '0') * FRACTION_WHOLE;
    if (text.n == 2 || (text.n > 2 && text.p[1] != '.'))
        return false;
    for (size_t i = 2; i < text.n; i++) {
        if (!digit(text.p[i]))
            return false;
        hundredths += (text.p[i] - '0') * (i == 2 ? 10 : 1);
    }
    if (hundredths < 1 || hundredths > FRACTION_WHOLE)
        return false;
    *ret = hundredths;
    return true;
}

struct str fraction_format(struct arena *a, int64_t hundredths)
{
    return arena_printf(a, "%lld.%02lld", (long long)(hundredths / FRACTION_WHOLE),
                        (long long)(hundredths % FRACTION_WHOLE));
}

static struct str note(const cJSON *pod, const char *key)
{
    return json_str(json_get(json_path(pod, "metadata.annotations"), key));
}

/* KAI ignores a number of devices that it cannot read. */
static int64_t devices_of(const cJSON *pod)
{
    struct str text = note(pod, FRACTION_NOTE_DEVICES);
    int64_t n = 0;

    for (size_t i = 0; i < text.n && n <= FRACTION_DEVICES_MAX; i++) {
        if (!digit(text.p[i]))
            return 1;
        n = n * 10 + (text.p[i] - '0');
    }
    return n < 1 ? 1 : n > FRACTION_DEVICES_MAX ? FRACTION_DEVICES_MAX : n;
}

int64_t fraction_of_pod(const cJSON *host_pod)
{
    const cJSON *notes = json_path(host_pod, "metadata.annotations");
    int64_t each = FRACTION_WHOLE;

    if (!json_get(notes, FRACTION_NOTE) && !json_get(notes, FRACTION_NOTE_MEMORY))
        return 0;
    if (json_get(notes, FRACTION_NOTE) && !json_get(notes, FRACTION_NOTE_MEMORY))
        (void)fraction_parse(note(host_pod, FRACTION_NOTE), &each);
    return each * devices_of(host_pod);
}

int64_t fraction_of_node(const cJSON *quantities)
{
    struct quantity q;
    int64_t hundredths;

    if (!quantity_parse(json_str(json_get(quantities, "nvidia.com/gpu")), &q) || q.nano < 0 ||
        __builtin_mul_overflow(quantity_units(q), FRACTION_WHOLE, &hundredths))
        return 0;
    return hundredths;
}
