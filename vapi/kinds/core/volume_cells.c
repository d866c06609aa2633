/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that PersistentVolumes and their claims share. */
#include "../rules/kind.h"
#include "volume_cells.h"

#include <sublet/object.h>

void cell_modes(const struct row *r, const struct column *c)
{
    static const struct {
        const char *mode, *abbreviation;
    } names[] = {
        {"ReadWriteOnce", "RWO"},
        {"ReadOnlyMany", "ROX"},
        {"ReadWriteMany", "RWX"},
        {"ReadWriteOncePod", "RWOP"},
    };
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < COUNT(names); i++) {
        if (!json_list_has(json_path(r->object, c->path), str_c(names[i].mode)))
            continue;
        buf_addc(&b, b.n ? "," : "");
        buf_addc(&b, names[i].abbreviation);
    }
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

void cell_class(const struct row *r, const struct column *c)
{
    const cJSON *beta = json_get(json_path(r->object, "metadata.annotations"),
                                 "volume.beta.kubernetes.io/storage-class");

    (void)c;
    cell_text(r, beta ? json_str(beta) : json_str_at(r->object, "spec.storageClassName"));
}

void cell_phase(const struct row *r, const struct column *c)
{
    (void)c;
    if (object_is_terminating(r->object))
        cell_text(r, STR("Terminating"));
    else
        cell_text(r, json_str_at(r->object, "status.phase"));
}
