/* SPDX-License-Identifier: Apache-2.0 */
/* Who is read next. Why lanes: a read of a server that hangs lasts as long as its deadline, and
 * a few of them would have all places. */
#include "turns.h"

#include <assert.h>

void exporter_turns_init(struct turns *t)
{
    *t = (struct turns){0};
    TAILQ_INIT(&t->all);
}

void exporter_turns_add(struct turns *t, struct turn *turn, struct str node, int64_t due_ms)
{
    *turn = (struct turn){.node = node, .due_ms = due_ms, .lane = TURN_UNPROVEN};
    TAILQ_INSERT_TAIL(&t->all, turn, place);
}

static void leave(struct turns *t, struct turn *turn)
{
    assert(turn->under_way && t->under_way[turn->lane]);
    turn->under_way = false;
    t->under_way[turn->lane]--;
    map_remove(&t->busy, &turn->by_node);
}

void exporter_turns_remove(struct turns *t, struct turn *turn)
{
    if (turn->under_way)
        leave(t, turn);
    TAILQ_REMOVE(&t->all, turn, place);
}

static bool is_before(const struct turn *a, const struct turn *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->begun < b->begun;
}

struct turn *exporter_turns_next(struct turns *t, int64_t now_ms, int64_t *ret_wait_ms)
{
    struct turn *turn, *first = NULL;

    TAILQ_FOREACH(turn, &t->all, place)
    {
        if (turn->under_way || t->under_way[turn->lane] >= TURNS_UNDER_WAY ||
            (first && !is_before(turn, first)) || map_get(&t->busy, turn->node))
            continue;
        first = turn;
    }
    if (!first || first->due_ms > now_ms) {
        *ret_wait_ms = first ? first->due_ms - now_ms : INT64_MAX;
        return NULL;
    }
    first->under_way = true;
    first->begun = ++t->begun;
    t->under_way[first->lane]++;
    map_put(&t->busy, &first->by_node, first->node);
    return first;
}

void exporter_turns_end(struct turns *t, struct turn *turn, bool answered, int64_t due_ms)
{
    leave(t, turn);
    turn->lane = answered ? TURN_PROVEN : TURN_UNPROVEN;
    turn->due_ms = due_ms;
}
