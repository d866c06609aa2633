/* SPDX-License-Identifier: Apache-2.0 */
/* Which identities in a Lease are of dead processes: see holders.h. Must never take a process of
 * another directory, or of another machine with the same one, for dead.
 *
 *   record RECORD_META "lease-holder": "BOOT DEV INO IDENTITY ..." */
#include "core/holders.h"

#include <stdio.h>
#include <sys/stat.h>

#define RECORD       "lease-holder"
#define HOLDERS_KEPT 8

static struct str place_of(struct arena *a, struct str data_dir)
{
    struct stat st;
    char boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!f)
        return STR_NULL;
    if (fscanf(f, "%63s", boot) != 1)
        boot[0] = '\0';
    fclose(f);
    if (!boot[0] || stat(arena_printf(a, "%.*s/lock", STR_F(data_dir)).p, &st))
        return STR_NULL;
    return arena_printf(a, "%s %llu %llu", boot, (unsigned long long)st.st_dev,
                        (unsigned long long)st.st_ino);
}

/* Cuts the place off the record; the identities remain. */
static struct str cut_place(struct str *rest)
{
    const char *start = rest->p;

    for (int i = 0; i < 3; i++)
        str_cut(rest, ' ');
    return rest->p ? (struct str){start, (size_t)(rest->p - start) - 1} : STR_NULL;
}

void sync_holders_open(struct holders *h, struct store *store, struct arena *a, struct str data_dir)
{
    struct str found, rest;
    size_t n = 1;

    *h = (struct holders){.store = store, .place = place_of(a, data_dir)};
    if (!h->place.n || !store_record_get(store, RECORD_META, STR(RECORD), &found))
        return;
    rest = arena_str(a, found);
    if (!str_eq(cut_place(&rest), h->place))
        return;
    for (size_t i = 0; i < rest.n; i++)
        n += rest.p[i] == ' ';
    for (; n >= HOLDERS_KEPT; n--)
        str_cut(&rest, ' ');
    h->dead = rest;
}

void sync_holders_add(const struct holders *h, struct str identity)
{
    struct arena *a = arena_new(0);

    if (h->place.n)
        store_record_put(h->store, RECORD_META, STR(RECORD),
                         arena_printf(a, "%.*s %.*s%s%.*s", STR_F(h->place), STR_F(h->dead),
                                      h->dead.n ? " " : "", STR_F(identity)));
    arena_free(a);
}

bool sync_holders_are_dead(const struct holders *h, struct str identity)
{
    struct str list = h->dead;

    while (list.n)
        if (str_eq(str_cut(&list, ' '), identity))
            return true;
    return false;
}
