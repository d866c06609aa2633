/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes of one tenant: the one that does not lead refuses writes, and the one whose data
 * does not go on reports each answered write that the other one lacks. Must never demand a report
 * of what both may have in common. */
#include "judge_impl.h"

#include <string.h>

#include <sublet/hash.h>

#include "core/lease.h"
#include "engine.h"

enum { MAX_REPORT = 1 << 16 };

/* --- refusals --- */

bool judge_leads(const struct life *l)
{
    return sync_lease_state(l->syncer->lease) == LEASE_HELD;
}

bool judge_refuses(const struct life *l)
{
    enum sync_lease_state state = sync_lease_state(l->syncer->lease);

    return state == LEASE_WAITING || state == LEASE_SUPERSEDED;
}

void judge_answer(struct life *l, const struct slot *s, bool refusing, const struct err *err)
{
    if (!refusing)
        return;
    if (!err && judge_refuses(l))
        world_fail("life %u does not lead, and answers a write of %s with success", l->number,
                   s->name);
    if (err && err->kind != &ERR_UNAVAILABLE && err->kind->code != 507)
        world_fail("life %u does not lead, and answers a write of %s with %d", l->number, s->name,
                   err->kind->code);
    l->world->refused++;
}

void judge_deletes(struct life *l, const struct slot *s)
{
    if (l->index)
        note_put(&judge_notes(l->world)->deleted, str_c(s->uid), 1);
}

/* --- acting --- */

static bool acts(struct life *l)
{
    return life_serves(l) && judge_leads(l) && sync_lease_may_act(l->syncer->lease) &&
           !sync_lease_is_doubted(l->syncer->lease);
}

/* Of one host, and of one history of it: the Lease that a process holds on another cannot be seen
 * from this one. */
void judge_one_acts(struct world *w)
{
    if (!w->lives[0] || !w->lives[1] || !acts(w->lives[0]) || !acts(w->lives[1]))
        return;
    world_fail("lives %u and %u both act on the host", w->lives[0]->number, w->lives[1]->number);
}

/* --- reports --- */

static struct str read_report(struct life *l, struct arena *a)
{
    char path[400];
    struct str ret = STR_NULL;
    size_t n;
    char *p;
    FILE *f;

    snprintf(path, sizeof(path), "%s/lacking.txt", disk_path(l->disk));
    f = fopen(path, "re");
    if (!f)
        return ret;
    p = arena_alloc(a, MAX_REPORT);
    n = fread(p, 1, MAX_REPORT, f);
    fclose(f);
    return (struct str){p, n};
}

/* Lines are "written PLURAL NAMESPACE/NAME REVISION", or "deleted ...". */
static bool reports(struct str report, const char *what, const struct slot *s)
{
    struct arena *a = arena_new(0);
    bool found =
        str_contains(report, arena_printf(a, "%s %s default/%s ", what, s->resource, s->name));

    arena_free(a);
    return found;
}

/* Up to this revision the history had no deletions any more. */
static uint64_t unknown_up_to(struct str report)
{
    const struct str begins = STR("unknown deletions up to revision ");
    uint64_t revision = 0;

    while (report.n) {
        struct str line = str_cut(&report, '\n');

        if (str_has_prefix(line, begins))
            str_to_u64(str_from(line, begins.n), &revision);
    }
    return revision;
}

static void judge_written(struct life *l, struct str report, const struct slot *s)
{
    if (!reports(report, "written", s))
        world_fail("life %u is superseded, and does not report the answered write of %s %s",
                   l->number, s->resource, s->name);
    l->world->reported++;
}

static void judge_deleted(struct life *l, struct str report, const struct slot *s)
{
    const struct note *n = judge_gone(l, s);

    if (!n || n->at_us <= l->world->copied_us || n->value <= unknown_up_to(report))
        return;
    if (!reports(report, "deleted", s))
        world_fail("life %u is superseded, and does not report the deletion of %s %s at %llu",
                   l->number, s->resource, s->name, (unsigned long long)n->value);
    l->world->reported_deleted++;
}

/* Both have what was there when the copy was made, and nothing that one of them did later. */
void judge_report(struct life *l)
{
    struct world *w = l->world;
    const struct model *m = &w->models[l->index];
    struct arena *a;
    struct str report;

    if (!w->n_copies || sync_lease_state(l->syncer->lease) != LEASE_SUPERSEDED ||
        l->syncer->lacking)
        return;
    a = arena_new(0);
    report = read_report(l, a);
    for (size_t i = 0; i < m->n_slots && report.p; i++) {
        const struct slot *s = &m->slots[i];

        if (!s->there)
            judge_deleted(l, report, s);
        else if (s->answered_us > w->copied_us)
            judge_written(l, report, s);
    }
    w->unknown += !report.p;
    arena_free(a);
}
