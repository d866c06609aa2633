/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an exporter from any bytes: refused in words, or within all limits, and the same
 * again when it is written anew from what was read. */

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <sublet/buf.h>

#include "../../fleet/telemetry/dcgm.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *const NAMES[N_DCGM_LABELS] = {
    "gpu",      "UUID",      "GPU_I_ID", "GPU_I_PROFILE", "modelName",
    "Hostname", "namespace", "pod",      "pod_uid",       "container"};

static void add_value(struct buf *out, struct str value)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];

        if (c == '\n' || c == '"' || c == '\\')
            buf_char(out, '\\');
        buf_char(out, c == '\n' ? 'n' : c);
    }
}

static void check_limits(const struct dcgm *d)
{
    assert(d->n_devices <= DCGM_MOST_DEVICES && d->n_families <= DCGM_MOST_FAMILIES);
    for (size_t i = 0; i < d->n_families; i++)
        assert(str_is_utf8(d->families[i].help) && d->families[i].name.n <= DCGM_MOST_NAME);
    for (size_t i = 0; i < d->n_devices; i++)
        for (size_t k = 0; k < N_DCGM_LABELS; k++)
            assert(str_is_utf8(d->devices[i].labels[k]) &&
                   d->devices[i].labels[k].n <= DCGM_MOST_VALUE);
    for (size_t i = 0; i < d->n_samples; i++)
        assert(d->samples[i].device < d->n_devices && d->samples[i].family < d->n_families &&
               isfinite(d->samples[i].value));
}

static void write_again(struct buf *out, const struct dcgm *d)
{
    for (size_t i = 0; i < d->n_samples; i++) {
        const struct dcgm_sample *s = &d->samples[i];

        buf_add(out, d->families[s->family].name);
        buf_char(out, '{');
        for (size_t k = 0; k < N_DCGM_LABELS; k++) {
            buf_printf(out, "%s%s=\"", k ? "," : "", NAMES[k]);
            add_value(out, d->devices[s->device].labels[k]);
            buf_char(out, '"');
        }
        buf_printf(out, "} %.17g\n", s->value);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct str bytes = {(const char *)data, size};
    struct buf text = BUF_INIT(0);
    struct dcgm d, again;
    struct err err;

    err_init(&err, a);
    if (dcgm_parse(a, bytes, &d, &err)) {
        assert(err.kind && err.message.n && str_is_utf8(err.message));
    } else {
        check_limits(&d);
        write_again(&text, &d);
        if (text.n <= DCGM_MOST_BYTES && dcgm_parse(a, buf_str(&text), &again, &err))
            abort();
        if (text.n <= DCGM_MOST_BYTES) {
            assert(again.n_samples == d.n_samples);
            for (size_t i = 0; i < d.n_samples; i++)
                assert(!(again.samples[i].value < d.samples[i].value) &&
                       !(again.samples[i].value > d.samples[i].value));
        }
    }
    buf_fini(&text);
    arena_free(a);
    return 0;
}
