/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The API's reaction to a store whose disk is full or read-only: a notice while it lasts, and
 * controllers that pause while nothing can be stored. While deletes are possible controllers run,
 * because a deletion takes more than one write; their failing creates back off. Must never end a
 * process that can still serve reads. */
#include "notice.h"

#include <sublet/store_disk.h>

static const char *const REASONS[] = {
    [STORE_DISK_FULL] = "DiskFull",
    [STORE_DISK_USED_UP] = "DiskReserveUsedUp",
    [STORE_DISK_READ_ONLY] = "DiskReadOnly",
};

static void report(struct vapi *api)
{
    struct vapi_notice n = {.topic = NOTICE_DISK, .reason = REASONS[store_disk(api->o.store)]};
    struct err err;

    if (!n.reason) {
        notices_serving(api); /* the disk has room for the Event only now */
        vapi_notice_over(api, NOTICE_DISK, STR(""));
        return;
    }
    err_init(&err, NULL);
    (void)!store_disk_refuse(api->o.store, &err);
    n.message = err.message;
    vapi_notice(api, &n);
    err_clear(&err);
}

static void on_disk(void *ctx)
{
    struct vapi *api = ctx;

    report(api);
    read_only_settle(api);
}

void disk_watch(struct vapi *api)
{
    store_on_disk(api->o.store, on_disk, api);
    if (store_disk(api->o.store))
        report(api);
}

void disk_unwatch(struct vapi *api)
{
    store_on_disk(api->o.store, NULL, NULL);
}

bool disk_excuses(const struct vapi *api, const struct err *err)
{
    return err->kind == &ERR_STORAGE && store_disk(api->o.store);
}
