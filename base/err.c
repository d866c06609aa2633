/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values. Why: a failure is found deep down and reported at the edge as a metav1.Status,
 * so it carries what a Status needs and nothing else. Must never log, and never keep a pointer into
 * memory it does not own: what arrives is copied into the err's arena or into its own buffer. */

#include <sublet/err.h>

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include <sublet/buf.h>

#include "utf8.h"

#define ERR_KIND(name, reason, code) const struct err_kind ERR_##name = {reason, code};
#include <sublet/tbl/errors.h>
#undef ERR_KIND

/* A longer message is of no use; this bounds what a tenant's input can make of it. */
enum { MESSAGE_MAX = 64 * 1024 };

void err_init(struct err *err, struct arena *arena)
{
    *err = (struct err){.arena = arena};
}

void err_clear(struct err *err)
{
    err_init(err, err->arena);
}

/* Takes over the bytes of b as the message. */
static void set_message(struct err *err, struct buf *b)
{
    struct str text = str_clip(buf_str(b), MESSAGE_MAX);

    if (err->arena) {
        err->message = arena_str(err->arena, text);
    } else {
        text = str_clip(text, sizeof err->text - 1);
        if (text.n)
            memcpy(err->text, text.p, text.n);
        err->text[text.n] = 0;
        err->message = (struct str){err->text, text.n};
    }
    buf_fini(b);
}

int err_set(struct err *err, const struct err_kind *kind, const char *format, ...)
{
    struct buf b = BUF_INIT(0);
    va_list args;

    if (!err)
        return -1;
    va_start(args, format);
    buf_vprintf(&b, format, args);
    va_end(args);
    err->kind = kind;
    set_message(err, &b);
    return -1;
}

int err_wrap(struct err *err, const char *format, ...)
{
    struct buf b = BUF_INIT(0);
    va_list args;

    if (!err)
        return -1;
    va_start(args, format);
    buf_vprintf(&b, format, args);
    va_end(args);
    buf_addc(&b, ": ");
    buf_add(&b, err->message);
    set_message(err, &b);
    return -1;
}

void err_cause(struct err *err, struct str type, struct str field, struct str message)
{
    struct err_cause *cause;

    if (!err || !err->arena)
        return;
    cause = ARENA_NEW(err->arena, struct err_cause);
    cause->type = arena_str(err->arena, type);
    cause->field = arena_str(err->arena, field);
    cause->message = arena_str(err->arena, message);

    if (!err->causes)
        err->last = &err->causes;
    *err->last = cause;
    err->last = &cause->next;
}

/* The letter of Go's short escapes; 0 when c has none. */
static char short_escape(unsigned char c)
{
    static const char letters[] = "abtnvfr"; /* 0x07 to 0x0D */

    if (c == '"' || c == '\\')
        return (char)c;
    return c >= 7 && c <= 13 ? letters[c - 7] : 0;
}

/* A string as Go's %q prints it. */
static void add_quoted(struct buf *b, struct str s)
{
    const unsigned char *p = (const unsigned char *)(s.p ? s.p : ""), *end = p + s.n;

    buf_char(b, '"');
    while (p < end) {
        size_t n = utf8_step(p, end);

        if (n > 1) {
            buf_add(b, (struct str){(const char *)p, n});
            p += n;
            continue;
        }
        if (short_escape(*p)) {
            buf_char(b, '\\');
            buf_char(b, short_escape(*p));
        } else if (n == 0 || *p < 0x20 || *p == 0x7F) {
            buf_printf(b, "\\x%02x", *p);
        } else {
            buf_char(b, (char)*p);
        }
        p++;
    }
    buf_char(b, '"');
}

/* schema.GroupResource as a string: resource, or resource.group. */
static void add_resource(struct buf *b, struct str group, struct str resource)
{
    buf_add(b, resource);
    if (group.n) {
        buf_char(b, '.');
        buf_add(b, group);
    }
}

/* Details need memory of the err's own; without an arena the message has to do. */
static void set_details(struct err *err, struct str group, struct str resource, struct str name)
{
    if (!err->arena)
        return;
    err->group = arena_str(err->arena, group);
    err->resource = arena_str(err->arena, resource);
    err->name = arena_str(err->arena, name);
}

/* Sets kind, details and <before><resource> "<name>"<after><why>, the shape of apimachinery's
 * messages. */
static int set_named(struct err *err, const struct err_kind *kind, const struct str id[3],
                     const char *before, const char *after, const char *why)
{
    struct buf b = BUF_INIT(0);

    if (!err)
        return -1;
    buf_addc(&b, before);
    add_resource(&b, id[0], id[1]);
    buf_char(&b, ' ');
    add_quoted(&b, id[2]);
    buf_addc(&b, after);
    buf_addc(&b, why);

    err->kind = kind;
    set_details(err, id[0], id[1], id[2]);
    set_message(err, &b);
    return -1;
}

int err_not_found(struct err *err, struct str group, struct str resource, struct str name)
{
    struct str id[] = {group, resource, name};

    return set_named(err, &ERR_NOT_FOUND, id, "", " not found", "");
}

int err_already_exists(struct err *err, struct str group, struct str resource, struct str name)
{
    struct str id[] = {group, resource, name};

    return set_named(err, &ERR_ALREADY_EXISTS, id, "", " already exists", "");
}

int err_conflict(struct err *err, struct str group, struct str resource, struct str name,
                 const char *why)
{
    struct str id[] = {group, resource, name};

    return set_named(err, &ERR_CONFLICT, id, "Operation cannot be fulfilled on ", ": ", why);
}

int err_forbidden(struct err *err, struct str group, struct str resource, struct str name,
                  const char *format, ...)
{
    struct buf b = BUF_INIT(0);
    va_list args;

    if (!err)
        return -1;
    if (group.n || resource.n) {
        add_resource(&b, group, resource);
        buf_char(&b, ' ');
        if (name.n) {
            add_quoted(&b, name);
            buf_char(&b, ' ');
        }
        buf_addc(&b, "is ");
    }
    buf_addc(&b, "forbidden: ");
    va_start(args, format);
    buf_vprintf(&b, format, args);
    va_end(args);

    err->kind = &ERR_FORBIDDEN;
    set_details(err, group, resource, name);
    set_message(err, &b);
    return -1;
}
