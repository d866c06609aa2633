/* SPDX-License-Identifier: Apache-2.0 */
/* What extension API servers said that they serve, as of the last check of each: the aggregated
 * discovery is answered from it, without a call. Bounded in all; a document beyond the bound is as
 * if the server had not answered. */
#include "extension.h"

#include <assert.h>

struct extension_document {
    LIST_ENTRY(extension_document) place;
    char *name, *uid;
    struct str text; /* owned; p == NULL: it never answered */
    bool stale;
};

static void document_drop(struct extensions *all, struct extension_document *d)
{
    all->kept -= d->text.n;
    mem_free(d->text.p);
    d->text = STR_NULL;
}

static void document_free(struct extensions *all, struct extension_document *d)
{
    LIST_REMOVE(d, place);
    document_drop(all, d);
    mem_free(d->name);
    mem_free(d->uid);
    mem_free(d);
}

static struct extension_document *document_of(struct vapi *api, struct str name)
{
    struct extension_document *d;

    if (!api->extensions)
        return NULL;
    LIST_FOREACH(d, &api->extensions->documents, place)
    {
        if (str_eqc(name, d->name))
            return d;
    }
    return NULL;
}

void extension_forget(struct vapi *api, struct str name)
{
    struct extension_document *d = document_of(api, name);

    if (d)
        document_free(api->extensions, d);
}

static void document_set(struct extensions *all, struct extension_document *d, struct str text)
{
    if (str_eq(d->text, text))
        return;
    document_drop(all, d);
    if (text.n > EXTENSION_MOST_KEPT || all->kept + text.n > EXTENSION_MOST_KEPT_ALL) {
        d->stale = true;
        return;
    }
    d->text = (struct str){mem_strdup(text), text.n};
    all->kept += text.n;
}

void extension_keep(struct vapi *api, const struct extension *x, const cJSON *resources)
{
    struct extensions *all = extensions_of(api);
    struct extension_document *d = document_of(api, x->name);
    struct arena *a;

    if (d && !str_eqc(x->uid, d->uid)) {
        document_free(all, d);
        d = NULL;
    }
    if (!d) {
        d = NEW(struct extension_document);
        d->name = mem_strdup(x->name);
        d->uid = mem_strdup(x->uid);
        LIST_INSERT_HEAD(&all->documents, d, place);
    }
    d->stale = !resources;
    if (!resources)
        return;
    a = arena_new(0);
    document_set(all, d, json_text(a, resources));
    arena_free(a);
}

struct str extension_kept(struct vapi *api, const struct extension *x, bool *ret_stale)
{
    const struct extension_document *d = document_of(api, x->name);
    bool same = d && str_eqc(x->uid, d->uid);

    *ret_stale = !same || d->stale || !d->text.p;
    return same && d->text.p ? d->text : STR("");
}

void extension_documents_free(struct extensions *all)
{
    while (!LIST_EMPTY(&all->documents))
        document_free(all, LIST_FIRST(&all->documents));
}
