/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs from any string: what is accepted is a hundredth to a whole, and prints as what is
 * accepted again; an annotation of any content counts no less than what is accepted. */

#include <assert.h>

#include <sublet/fraction.h>
#include <sublet/json_build.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static int64_t of_pod(struct arena *a, const char *key, struct str text)
{
    cJSON *pod = json_new_object(a);

    json_set_str(a, json_ensure_path(a, pod, "metadata.annotations"), key, text);
    return fraction_of_pod(pod);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena *a = arena_new(0);
    int64_t part = 0, again = 0;
    bool ok = fraction_parse(text, &part);

    if (ok) {
        assert(part >= 1 && part <= FRACTION_WHOLE);
        ok = fraction_parse(fraction_format(a, part), &again);
        assert(ok && again == part);
    }
    assert(of_pod(a, FRACTION_NOTE, text) == (part ? part : FRACTION_WHOLE));
    assert(of_pod(a, FRACTION_NOTE_MEMORY, text) == FRACTION_WHOLE);
    assert(of_pod(a, FRACTION_NOTE_DEVICES, text) == 0);
    arena_free(a);
    return 0;
}
