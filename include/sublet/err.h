/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Errors. A fallible function returns 0 or -1 and fills `struct err` last in its arguments. The
 * kind points to a row of tbl/errors.h (reason and HTTP code of metav1.Status). One function in
 * vapi turns an err into a Status; libraries never log. */
#pragma once

#include <sublet/mem.h>

struct err_kind {
    const char *reason; /* metav1.StatusReason; "" for none */
    int code;           /* HTTP status */
};

#define ERR_KIND(name, reason, code) extern const struct err_kind ERR_##name;
#include <sublet/tbl/errors.h>
#undef ERR_KIND

/* One cause of an error (metav1.StatusCause). All strings live in the err's arena. */
struct err_cause {
    struct err_cause *next;
    struct str type, field, message;
};

struct err {
    const struct err_kind *kind; /* NULL: no error */
    struct arena *arena;         /* owns everything below; NULL: message is cut into `text` */
    struct str message;
    struct str group, resource,
        name;       /* details; resource is the plural (or the kind for Invalid) */
    struct str uid; /* details.uid */
    struct err_cause *causes, **last; /* in order of discovery */
    int64_t retry_after;              /* details.retryAfterSeconds; 0 for none */
    struct str cont;                  /* metadata.continue of a 410 */
    char text[256];
    bool router; /* set before the request reached its resource: a Status with empty details */
};

#define MUST_CHECK __attribute__((warn_unused_result))

void err_init(struct err *err, struct arena *arena);
void err_clear(struct err *err); /* forgets the error, keeps the arena */
/* Sets kind and message; returns -1, so that `return err_set(...)` reads well. err may be NULL. */
int err_set(struct err *err, const struct err_kind *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "<prefix>: " before the message that is there; returns -1. */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void err_cause(struct err *err, struct str type, struct str field, struct str message);
/* "resource.group "name" not found" and the like, with details, in the words of apimachinery. */
int err_not_found(struct err *err, struct str group, struct str resource, struct str name);
int err_already_exists(struct err *err, struct str group, struct str resource, struct str name);
int err_conflict(struct err *err, struct str group, struct str resource, struct str name,
                 const char *why); /* Operation cannot be fulfilled on ...: why */
int err_forbidden(struct err *err, struct str group, struct str resource, struct str name,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
