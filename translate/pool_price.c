/* SPDX-License-Identifier: Apache-2.0 */
/* What pods cost, in words for their author. Must never say of a part that it is borrowed where
 * that is not known, nor round more than once: prices, shares and numbers of pods are multiplied as
 * the fractions that they are. */
#include <sublet/pool.h>

struct price {
    struct arena *a;
    const struct pool_choice *choice;
    const struct pool_price_facts *facts;
    struct rational of_hour, factor; /* of one GPU; factor: beyond the guarantee */
    struct rational billed;          /* gpu_eq, what is borrowed times the factor */
    struct str notes;
};

/* False: there is no price. */
static bool read_metering(const struct config_pool *pool, struct price *p)
{
    p->factor = (struct rational){1, 1};
    return rational_parse(pool->price, &p->of_hour) && p->of_hour.num >= 0 &&
           (!pool->borrow_factor.n ||
            (rational_parse(pool->borrow_factor, &p->factor) && p->factor.num >= 0));
}

static void add_note(struct price *p, struct str note)
{
    p->notes = p->notes.n ? arena_printf(p->a, "%.*s; %.*s", STR_F(p->notes), STR_F(note)) : note;
}

/* Of a workload all of its pods, where there are several. */
static void note_copies(struct price *p)
{
    const struct rational factors[] = {p->of_hour, p->billed, {p->facts->copies, 1}};
    bool job = str_word_index("Job|CronJob", p->facts->kind) >= 0;

    if (p->facts->kind.n && p->facts->copies > 1)
        add_note(p, arena_printf(p->a, "%lld %s: %.*s", (long long)p->facts->copies,
                                 job ? "pods" : "replicas",
                                 STR_F(rational_money(p->a, factors, COUNT(factors)))));
}

/* The part that would be beyond the guarantee if the pod started now; false: not known, or it does
 * not fit. */
static bool find_borrowed(struct price *p, struct rational *ret)
{
    const struct pool_choice *choice = p->choice;
    struct rational sum, more, own, borrowed;

    if (!p->facts->used || p->facts->kind.n ||
        !rational_add(*p->facts->used, choice->gpu_eq, &sum) ||
        !rational_sub(sum, choice->binding->guarantee, &more))
        return false;
    if (rational_cmp(more, choice->gpu_eq) > 0)
        more = choice->gpu_eq;
    if (more.num <= 0)
        more = RATIONAL_ZERO;
    if (!rational_sub(choice->gpu_eq, more, &own) || !rational_mul(more, p->factor, &borrowed) ||
        !rational_add(own, borrowed, &p->billed))
        return false;
    *ret = more;
    return true;
}

static void note_borrowed(struct price *p)
{
    const struct rational factors[] = {p->of_hour, p->factor};
    struct str each = rational_money(p->a, factors, COUNT(factors));
    bool same = rational_cmp(p->factor, (struct rational){1, 1}) == 0;
    struct rational borrowed;

    if (!p->choice->binding->object.n)
        return;
    if (!find_borrowed(p, &borrowed)) {
        if (!same)
            add_note(p, arena_printf(p->a, "a GPU beyond the guarantee: %.*s", STR_F(each)));
    } else if (borrowed.num) {
        add_note(p, arena_printf(p->a, "%.*s GPU beyond the guarantee%s%.*s",
                                 STR_F(rational_format(p->a, borrowed)), same ? "" : ", each ",
                                 STR_F(same ? STR("") : each)));
    }
}

struct str pool_price(struct arena *a, const struct pool_choice *choice,
                      const struct pool_price_facts *facts)
{
    struct price p = {.a = a, .choice = choice, .facts = facts, .billed = choice->gpu_eq};
    const struct config_pool *pool = choice->binding ? choice->binding->pool : NULL;
    bool one = rational_cmp(choice->gpu_eq, (struct rational){1, 1}) <= 0;
    struct str money;

    if (!pool || choice->by_claims || choice->gpu_eq.num <= 0 || !read_metering(pool, &p))
        return STR("");
    note_copies(&p);
    note_borrowed(&p);
    money = rational_money(a, (struct rational[]){p.of_hour, p.billed}, 2);
    return arena_printf(a, "pool \"%.*s\": %.*s GPU%s %s %.*s%s%.*s per hour%s%.*s%s",
                        STR_F(pool->name), STR_F(rational_format(a, choice->gpu_eq)),
                        facts->kind.n && facts->copies < 1 ? " per pod" : "",
                        one ? "costs" : "cost", STR_F(money), pool->currency.n ? " " : "",
                        STR_F(pool->currency), p.notes.n ? " (" : "", STR_F(p.notes),
                        p.notes.n ? ")" : "");
}
