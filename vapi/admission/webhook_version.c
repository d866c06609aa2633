/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a review in the version that a hook reads. Where a conversion webhook makes it, it
 * stays in the version of the last hook until another one is needed, so that what only that
 * version can say reaches the next hook of the same one. Must never change what validating hooks
 * see. Source: apiserver pkg/admission/conversion.go, plugin/webhook/{mutating,validating}/
 * dispatcher.go. */
#include "webhook_impl.h"

#include "../core/calls.h"

#include <assert.h>

#include <sublet/kinds.h>

#define NAME_LABEL "kubernetes.io/metadata.name"

/* ---- what is not shown ---- */

static bool hides(enum webhook_phase phase, const struct webhook_review *r)
{
    return phase == WEBHOOKS_MUTATING && r->operation == ADMISSION_CREATE && !r->apart;
}

/* What the server sets after mutating admission is not shown to it. */
static void hide(const struct webhook_review *r, cJSON *object)
{
    static const char *const set[] = {"uid", "creationTimestamp", "generation"};
    cJSON *metadata = json_get(object, "metadata");

    for (size_t i = 0; i < COUNT(set); i++)
        json_remove(metadata, set[i]);
    if (!r->unnamed)
        return;
    json_remove(metadata, "name");
    if (resource_is_namespace(r->requested))
        json_remove(json_get(metadata, "labels"), NAME_LABEL);
}

void webhook_unhide(const struct webhook_review *r, cJSON *object)
{
    struct arena *a = r->call->arena;

    if (r->unnamed && resource_is_namespace(r->requested))
        json_set_str(a, json_ensure_object(a, json_ensure_object(a, object, "metadata"), "labels"),
                     NAME_LABEL, r->call->name);
}

/* ---- versions that a webhook makes ---- */

static bool converts(const struct webhook_review *r, const struct resource *as)
{
    return as->conversion && as != r->requested && !r->apart;
}

/* The mutating dispatcher of upstream wraps an error twice. */
static int not_converted(enum webhook_phase phase, struct arena *a, const struct err *why,
                         struct err *err)
{
    struct str message = arena_str(a, why->message);

    if (why->kind == &ERR_TOO_LARGE)
        return err_set(err, why->kind, "%.*s", STR_F(message));
    if (phase == WEBHOOKS_MUTATING)
        message = arena_printf(a, "Internal error occurred: %.*s", STR_F(message));
    err_set(err, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(message));
    err_cause(err, STR(""), STR(""), message);
    return -1;
}

static const cJSON *find(const struct webhook_review *r, struct str to, const cJSON *from,
                         const struct err **ret_failed)
{
    return versions_find(&call_entry(r->call)->of_admission, r->call, from, to, ret_failed);
}

static const struct err *close_form(struct webhook_form *f, struct webhook_review *r,
                                    bool *ret_waits)
{
    const struct err *failed = NULL;
    const cJSON *own;

    *ret_waits = false;
    if (f->changed) {
        own = find(r, r->requested->api_version, f->object, &failed);
        *ret_waits = !own && !failed;
        if (!own)
            return failed;
        r->object = json_copy(r->call->arena, own);
        f->replaced = true;
    }
    f->as = NULL;
    f->changed = false;
    return NULL;
}

int webhook_form_close(struct webhook_form *f, struct webhook_review *r, struct err *err)
{
    bool waits;
    const struct err *failed = close_form(f, r, &waits);

    if (failed)
        return err_set(err, failed->kind, "%.*s", STR_F(failed->message));
    return !waits;
}

/* The old object first, as upstream. */
static const struct err *open_form(struct webhook_form *f, enum webhook_phase phase,
                                   const struct webhook_review *r, const struct resource *as,
                                   bool *ret_waits)
{
    struct arena *scratch = arena_new(0);
    const struct err *failed = NULL, *failed_old = NULL;
    cJSON *from = r->object;

    f->old = r->old ? find(r, as->api_version, r->old, &failed_old) : NULL;
    if (from && hides(phase, r)) {
        from = json_copy(scratch, from);
        hide(r, from);
    }
    f->object = from && !failed_old ? find(r, as->api_version, from, &failed) : NULL;
    arena_free(scratch);
    failed = failed_old ? failed_old : failed;
    *ret_waits = !failed && ((r->old && !f->old) || (r->object && !f->object));
    f->as = failed || *ret_waits ? NULL : as;
    return failed;
}

int webhook_form_open(struct webhook_form *f, enum webhook_phase phase, struct webhook_review *r,
                      const struct resource *as, struct err *err)
{
    const struct resource *wanted = converts(r, as) ? as : NULL;
    const struct err *failed;
    bool waits;

    if (f->as == wanted)
        return 1;
    failed = close_form(f, r, &waits);
    if (wanted && !failed && !waits)
        failed = open_form(f, phase, r, as, &waits);
    return failed ? not_converted(phase, r->call->arena, failed, err) : !waits;
}

/* ---- what a hook sees ---- */

cJSON *webhook_shown(struct arena *a, enum webhook_phase phase, const struct webhook_review *r,
                     const struct webhook_form *f, const struct resource *as, bool old)
{
    const cJSON *tree = old ? r->old : r->object;
    bool converted = converts(r, as);
    cJSON *copy;

    assert(!converted || f->as == as);
    if (!tree)
        return NULL;
    copy = json_copy(a, !converted ? tree : old ? f->old : f->object);
    if (as->crd && !converted && !r->apart)
        json_set_str(a, copy, "apiVersion", as->api_version);
    else if (!as->crd && !r->apart)
        kinds_convert(a, as, copy);
    if (!old && hides(phase, r))
        hide(r, copy);
    return copy;
}
