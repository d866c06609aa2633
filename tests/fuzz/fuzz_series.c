/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a kubelet from any bytes: what comes out does not depend on how they arrive, is of the
 * tenant's pod line by line, and gives nothing a second time, since its names are the tenant's. */

#include <assert.h>
#include <string.h>

#include <sublet/translate.h>
#include <sublet/translate_kubelet.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct world {
    const cJSON *pod;
};

static const cJSON *own(void *ctx, enum kubelet_kind kind, struct str host_name,
                        struct str host_uid)
{
    struct world *w = ctx;

    (void)host_uid;
    return kind == KUBELET_POD && str_eqc(host_name, "web-h") ? w->pod : NULL;
}

static struct buf filtered(const struct kubelet_view *v, struct str bytes, size_t piece)
{
    struct series_filter *f = series_filter_new(v);
    struct buf out = BUF_INIT(0);

    while (bytes.n) {
        series_filter_add(f, str_sub(bytes, 0, piece), &out);
        bytes = str_from(bytes, piece);
    }
    series_filter_end(f, &out);
    series_filter_free(f);
    return out;
}

static void check_lines(struct str text)
{
    while (text.n) {
        struct str line = str_cut(&text, '\n');

        assert(str_is_utf8(line) && !str_contains(line, STR("\r")));
        assert(str_has_prefix(line, STR("# ")) || (str_contains(line, STR("namespace=\"ml\"")) &&
                                                   str_contains(line, STR("pod=\"web\""))));
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct str bytes = {(const char *)data, size};
    struct world w;
    struct translate_tenant tenant = {.host_namespace = STR("team-research")};
    struct kubelet_view view = {.tenant = &tenant, .own = own, .ctx = &w};
    struct buf at_once, in_pieces, again;
    cJSON *pod = NULL;

    assert(!json_parse(a,
                       STR("{\"metadata\":{\"name\":\"web\",\"namespace\":\"ml\",\"uid\":\"u\"},"
                           "\"spec\":{\"containers\":[{\"name\":\"main\"}]}}"),
                       &pod, NULL));
    w.pod = pod;
    at_once = filtered(&view, bytes, size ? size : 1);
    in_pieces = filtered(&view, bytes, 7);
    assert(str_eq(buf_str(&at_once), buf_str(&in_pieces)));
    check_lines(buf_str(&at_once));
    again = filtered(&view, buf_str(&at_once), 64);
    assert(!again.n);
    view.devices = true;
    buf_fini(&in_pieces);
    in_pieces = filtered(&view, bytes, 7);
    check_lines(buf_str(&in_pieces));
    assert(!in_pieces.n || str_contains(buf_str(&in_pieces), STR("Hostname=\"\"")));
    view.devices = false;
    view.whole = true;
    buf_fini(&in_pieces);
    in_pieces = filtered(&view, bytes, 7);
    assert(str_is_utf8(buf_str(&in_pieces)));
    buf_fini(&at_once);
    buf_fini(&in_pieces);
    buf_fini(&again);
    arena_free(a);
    return 0;
}
