/* SPDX-License-Identifier: Apache-2.0
 * Comparing with a second implementation that is too simple to be wrong in the same way. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned model_random(struct model *m, unsigned below)
{
    return (unsigned)rand_r(&m->seed) % below;
}

void model_key(int key, char ns[8], char name[8])
{
    snprintf(ns, 8, "n%d", (key / 8) % 10);
    snprintf(name, 8, "k%d", key % 8);
}

bool model_step(struct model *m, struct fixture *f)
{
    char ns[8], name[8];
    int key = (int)model_random(m, MODEL_KEYS);
    int64_t revision = store_next_revision(f->store);
    struct model_version *v = &m->now[key];
    int value = (int)model_random(m, 1000) + 1;

    if (revision >= MODEL_STEPS)
        return false;
    model_key(key, ns, name);
    bool gone = v->revision && !model_random(m, 4);
    if (gone)
        delete (f, ns, name);
    else
        put(f, ns, name, value);
    m->events[revision].key = key;
    m->events[revision].type = gone ? STORE_DELETED : v->revision ? STORE_MODIFIED : STORE_ADDED;
    *v = gone ? (struct model_version){0} : (struct model_version){revision, value};
    memcpy(m->then[revision], m->now, sizeof(m->now));
    return true;
}

void model_forget(struct model *m, struct fixture *f, int64_t revision)
{
    memcpy(m->now, m->then[revision], sizeof(m->now));
    for (int64_t r = revision + 1; r < store_next_revision(f->store) && r < MODEL_STEPS; r++) {
        memcpy(m->then[r], m->now, sizeof(m->now));
        m->events[r].key = -1;
    }
}

struct range {
    const struct model_version *state;
    int key; /* the next to come */
    int end, left;
};

static void skip_absent(struct range *r)
{
    while (r->key < r->end && !r->state[r->key].revision)
        r->key++;
}

static bool on_object(void *ctx, const struct store_object *o)
{
    struct range *r = ctx;
    char ns[8], name[8];

    skip_absent(r);
    assert_true(r->key < r->end);
    model_key(r->key, ns, name);
    assert_true(str_eqc(o->ns, ns) && str_eqc(o->name, name));
    assert_int_equal(o->revision, r->state[r->key].revision);
    assert_int_equal(value_of(o), r->state[r->key].value);
    r->key++;
    return --r->left != 0;
}

static void check_range(struct fixture *f, int64_t revision, const struct model_version *state,
                        int ns, int after, int most)
{
    char ns_text[8], name[8], after_ns[8] = "", after_name[8] = "";
    struct range r = {state, 0, MODEL_KEYS, most};

    if (ns >= 0) {
        model_key(ns * 8, ns_text, name);
        r.key = ns * 8;
        r.end = ns * 8 + 8;
    }
    if (after >= 0) {
        model_key(after, after_ns, after_name);
        r.key = after + 1 > r.key ? after + 1 : r.key;
    }
    int result =
        scan_at(f, ns >= 0 ? str_c(ns_text) : STR_NULL, after >= 0 ? str_c(after_ns) : STR_NULL,
                after >= 0 ? str_c(after_name) : STR_NULL, revision, on_object, &r);
    assert_int_equal(result, 0);
    if (r.left) {
        skip_absent(&r);
        assert_true(r.key >= r.end);
    }
}

void model_check_state(struct model *m, struct fixture *f, int64_t revision)
{
    int64_t at = revision ? revision : store_revision(f->store);
    const struct model_version *state = m->then[at];

    check_range(f, revision, state, -1, -1, 0);
    for (int i = 0; i < 6; i++) {
        int ns = (int)model_random(m, 5) - 1;
        int after = (int)model_random(m, MODEL_KEYS + 1) - 1;
        check_range(f, revision, state, ns, after, (int)model_random(m, 5));
    }
    for (int key = 0; !revision && key < MODEL_KEYS; key++) {
        char ns[8], name[8];
        model_key(key, ns, name);
        int value = committed(f, ns, name);
        assert_int_equal(value, state[key].revision ? state[key].value : -1);
    }
}

static void check_event(const struct model *m, const struct store_event *e, int64_t revision)
{
    char ns[8], name[8];
    int key = m->events[revision].key;
    const struct model_version *before = &m->then[revision - 1][key];

    model_key(key, ns, name);
    assert_non_null(e);
    assert_int_equal(e->revision, revision);
    assert_int_equal(e->type, m->events[revision].type);
    assert_true(str_eqc(e->object->ns, ns) && str_eqc(e->object->name, name));
    assert_int_equal(e->object->revision, revision);
    assert_int_equal(e->previous ? e->previous->revision : 0, before->revision);
    if (e->previous)
        assert_int_equal(value_of(e->previous), before->value);
    if (e->type != STORE_DELETED)
        assert_int_equal(value_of(e->object), m->then[revision][key].value);
}

void model_check_watch(struct model *m, struct fixture *f, int64_t from)
{
    struct store_watch *w;
    bool expired;

    assert_int_equal(store_watch_open(f->store, f->pods, from, count_wake, NULL, &w, &f->err), 0);
    for (int64_t r = from + 1; r <= store_revision(f->store); r++) {
        if (m->events[r].key >= 0)
            check_event(m, next_event(f, w, &expired), r);
    }
    assert_null(store_watch_next(w, &expired));
    assert_false(expired);
    store_watch_close(w);
}

static bool on_none(void *ctx, const struct store_object *o)
{
    (void)ctx, (void)o;
    fail();
    return false;
}

void model_check_all(struct model *m, struct fixture *f)
{
    int64_t oldest = store_oldest_revision(f->store);
    struct store_watch *w;

    model_check_state(m, f, 0);
    /* All of a short history, about fifty of a long one, the ends always. */
    int64_t step = 1 + (store_revision(f->store) - oldest) / 50;
    for (int64_t r = oldest; r <= store_revision(f->store);
         r += 1 + model_random(m, (unsigned)step))
        model_check_state(m, f, r);
    model_check_state(m, f, store_revision(f->store));
    model_check_watch(m, f, oldest);
    model_check_watch(m, f, oldest + (store_revision(f->store) - oldest) / 2);
    err_clear(&f->err);
    assert_int_equal(store_scan(f->store, f->pods, STR_NULL, STR_NULL, STR_NULL,
                                store_revision(f->store) + 1, on_none, NULL, &f->err),
                     -1);
    assert_ptr_equal(f->err.kind, &ERR_TIMEOUT);
    if (oldest == 1)
        return;
    assert_int_equal(store_scan(f->store, f->pods, STR_NULL, STR_NULL, STR_NULL, oldest - 1,
                                on_none, NULL, &f->err),
                     -1);
    assert_ptr_equal(f->err.kind, &ERR_EXPIRED);
    assert_int_equal(store_watch_open(f->store, f->pods, oldest - 1, count_wake, NULL, &w, &f->err),
                     -1);
}
