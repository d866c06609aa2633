/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is about to lead draws a token, records it with the revision at which its data
 * continues the turn before, and writes the record into the Lease. A copy of the data lacks the
 * tokens of later turns, or ends before the revision that the last one reached. Must never have a
 * process that goes on with the newest data take itself for a copy: neither after a crash, however
 * often, nor on another machine.
 *
 *   record RECORD_META "lease-turns": "EPOCH END TOKEN@REVISION ..."; END: the revision at the
 *   first start after the last turn, "-" while it lasts; TOKEN "*": turns that damage lost, any of
 *   the Lease's may be among them */
#include "core/turns.h"

#include <string.h>

#include <sublet/store_quarantine.h>

#define RECORD   "lease-turns"
#define ANY_TURN STR("*")

/* --- lists --- */

static struct turn cut_turn(struct str *list)
{
    struct str revision = str_cut(list, ' '), token = str_cut(&revision, '@');
    struct turn turn = {token, 0};

    str_to_i64(revision, &turn.from);
    return turn;
}

static struct str last_token(struct str list)
{
    struct str token = STR("");

    while (list.n)
        token = cut_turn(&list).token;
    return token;
}

/* t->n: there is none. */
static size_t find(const struct turns *t, struct str token)
{
    size_t i = 0;

    while (i < t->n && !str_eq(t->list[i].token, token))
        i++;
    return i;
}

static void drop(struct turns *t, size_t i)
{
    t->n--;
    memmove(&t->list[i], &t->list[i + 1], (t->n - i) * sizeof(t->list[0]));
}

struct str sync_turns_print(const struct turns *t, struct arena *a)
{
    struct str list = STR("");

    for (size_t i = 0; i < t->n; i++)
        list = arena_printf(a, "%.*s%s%.*s@%lld", STR_F(list), i ? " " : "",
                            STR_F(t->list[i].token), (long long)t->list[i].from);
    return list;
}

/* --- the record --- */

static void save(struct turns *t)
{
    struct arena *a = arena_new(0);
    struct str end = t->end < 0 ? STR("-") : arena_printf(a, "%lld", (long long)t->end);

    store_record_put(t->store, RECORD_META, STR(RECORD),
                     arena_printf(a, "%.*s %.*s %.*s", STR_F(t->epoch), STR_F(end),
                                  STR_F(sync_turns_print(t, a))));
    arena_free(a);
}

/* Without the epoch. False: this epoch has none. */
static bool read_record(struct store *store, struct arena *a, struct str epoch, struct str *ret)
{
    struct str value;

    if (!store_record_get(store, RECORD_META, STR(RECORD), &value) ||
        !str_eq(str_cut(&value, ' '), epoch))
        return false;
    *ret = arena_str(a, value);
    return true;
}

void sync_turns_open(struct turns *t, struct store *store, struct arena *a, struct str epoch)
{
    struct str rest;

    *t = (struct turns){.store = store, .arena = a, .epoch = arena_str(a, epoch), .end = -1};
    if (store_record_damaged(store, RECORD_META, STR(RECORD)))
        t->list[t->n++] = (struct turn){ANY_TURN, 0};
    if (read_record(store, a, epoch, &rest)) {
        if (!str_to_i64(str_cut(&rest, ' '), &t->end))
            t->end = -1;
        while (rest.n && t->n < TURNS_KEPT)
            t->list[t->n++] = cut_turn(&rest);
    }
    if (t->end >= 0)
        return;
    t->end = store_revision(store);
    save(t);
}

/* The turn that the Lease has stays in the list, as long as it takes until it has another one. What
 * was not executed by then is dropped, and its revisions become the next one's. */
static void make_room(struct turns *t, struct str seen)
{
    size_t victim = find(t, last_token(seen)) == 0;

    if (t->n < TURNS_KEPT)
        return;
    if (victim)
        t->list[2].from = t->list[1].from;
    drop(t, victim);
}

void sync_turns_begin(struct turns *t, struct str token, struct str seen)
{
    make_room(t, seen);
    t->list[t->n++] = (struct turn){token, t->end};
    t->end = -1;
    save(t);
}

void sync_turns_undo(struct turns *t)
{
    t->end = t->list[t->n - 1].from;
    drop(t, t->n - 1);
}

void sync_turns_led(struct turns *t)
{
    size_t lost = find(t, ANY_TURN);

    if (lost == t->n)
        return;
    drop(t, lost);
    save(t);
}

int64_t sync_turns_reach(const struct turns *t)
{
    return t->end < 0 ? store_revision(t->store) : t->end;
}

/* --- the Lease's --- */

/* The revision at which a turn of ours ends in this data. */
static int64_t end_of(const struct turns *t, size_t i)
{
    if (i + 1 < t->n)
        return t->list[i + 1].from;
    return sync_turns_reach(t);
}

bool sync_turns_include(const struct turns *t, struct str seen, int64_t revision, int64_t *ret_fork)
{
    size_t at = find(t, last_token(seen)), common = t->n;
    struct turn turn;

    *ret_fork = -1;
    if (!seen.n || find(t, ANY_TURN) < t->n)
        return true;
    if (at < t->n) {
        *ret_fork = end_of(t, at);
        return revision <= *ret_fork;
    }
    while (seen.n) { /* the first turn that we lack, after the last one that we have */
        turn = cut_turn(&seen);
        at = find(t, turn.token);
        if (at < t->n) {
            common = at;
            *ret_fork = -1;
        } else if (common < t->n && *ret_fork < 0) {
            *ret_fork = turn.from;
        }
    }
    if (common < t->n && end_of(t, common) < *ret_fork)
        *ret_fork = end_of(t, common);
    return false;
}

/* --- of another epoch --- */

static struct str with(struct arena *a, struct str list, char from, char to)
{
    char *p = arena_cstr(a, list);

    for (char *c = p; *c; c++)
        *c = *c == from ? to : *c;
    return str_c(p);
}

struct str sync_turns_branch(struct store *store, struct arena *a, struct str epoch,
                             int64_t revision)
{
    struct str list = STR(""), end;

    if (!read_record(store, a, epoch, &list))
        return arena_printf(a, "%lld", (long long)revision);
    end = str_cut(&list, ' ');
    return arena_printf(a, "%lld/%.*s/%.*s", (long long)revision, STR_F(end),
                        STR_F(with(a, list, ' ', ',')));
}

static int64_t least(int64_t one, int64_t other)
{
    return other >= 0 && other < one ? other : one;
}

/* A list lost its first turns when it was full; one may have been undone since. */
static bool is_whole(const struct turns *t)
{
    return t->n < TURNS_KEPT - 1 && find(t, ANY_TURN) == t->n;
}

/* Where the first turn of a list begins, which is where its data was first led. */
static int64_t begin_of(const struct turns *t)
{
    return t->n ? t->list[0].from : t->end;
}

/* No turn is on record in both: they branched off before the first of either, or within it. */
static int64_t branch_without_common_turn(const struct turns *ours, struct str seen)
{
    struct turns theirs = {.n = 0, .end = -1};

    while (seen.n && theirs.n < TURNS_KEPT)
        theirs.list[theirs.n++] = cut_turn(&seen);
    if (!is_whole(ours) || !is_whole(&theirs))
        return -1;
    return least(begin_of(ours), begin_of(&theirs));
}

bool sync_turns_common(const struct turns *t, struct arena *a, struct str branch,
                       int64_t *ret_known, int64_t *ret_possible)
{
    struct str revision = str_cut(&branch, '/'), end_word = str_cut(&branch, '/');
    struct turns all = *t; /* as if all of our data were of our last turn */
    struct str list = with(a, branch, ',', ' ');
    int64_t most, end = -1, known, possible;

    if (!str_to_i64(revision, &most))
        return false;
    all.end = most;
    str_to_i64(end_word, &end);
    (void)sync_turns_include(t, list, most, &known);
    (void)sync_turns_include(&all, list, most, &possible);
    if (known < 0)
        known = branch_without_common_turn(t, list);
    if (known < 0)
        return false;
    *ret_known = least(least(most, end), known);
    *ret_possible = least(most, possible);
    return true;
}

bool sync_turns_parted(struct arena *a, struct str ours, struct str theirs, int64_t *ret_known,
                       int64_t *ret_possible)
{
    struct str revision = str_cut(&ours, '/'), end_word = str_cut(&ours, '/');
    struct str list = with(a, ours, ',', ' ');
    struct turns t = {.n = 0, .end = -1};
    int64_t most;

    if (!str_to_i64(revision, &most))
        return false;
    str_to_i64(end_word, &t.end);
    t.end = least(most, t.end);
    while (list.n && t.n < TURNS_KEPT)
        t.list[t.n++] = cut_turn(&list);
    if (!sync_turns_common(&t, a, theirs, ret_known, ret_possible))
        return false;
    *ret_known = least(most, *ret_known);
    *ret_possible = least(most, *ret_possible);
    return true;
}
