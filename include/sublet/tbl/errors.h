/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Every kind of error we answer with: name, metav1.StatusReason, HTTP code.
 * Source: k8s.io/apimachinery pkg/apis/meta/v1 types.go and pkg/api/errors. */
ERR_KIND(BAD_REQUEST, "BadRequest", 400)
ERR_KIND(UNAUTHORIZED, "Unauthorized", 401)
ERR_KIND(FORBIDDEN, "Forbidden", 403)
ERR_KIND(NOT_FOUND, "NotFound", 404)
ERR_KIND(METHOD_NOT_ALLOWED, "MethodNotAllowed", 405)
ERR_KIND(NOT_ACCEPTABLE, "NotAcceptable", 406)
ERR_KIND(CONFLICT, "Conflict", 409)
ERR_KIND(ALREADY_EXISTS, "AlreadyExists", 409)
ERR_KIND(GONE, "Gone", 410)
ERR_KIND(EXPIRED, "Expired", 410)
ERR_KIND(TOO_LARGE, "RequestEntityTooLarge", 413)
ERR_KIND(UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", 415)
ERR_KIND(INVALID, "Invalid", 422)
ERR_KIND(TOO_MANY_REQUESTS, "TooManyRequests", 429)
ERR_KIND(HEADERS_TOO_LARGE, "", 431)
ERR_KIND(UNKNOWN, "", 500) /* what upstream answers to errors it has no reason for */
ERR_KIND(INTERNAL, "InternalError", 500)
ERR_KIND(STORE_READ, "StorageReadError", 500) /* a stored object cannot be read */
ERR_KIND(NOT_IMPLEMENTED, "NotImplemented", 501)
ERR_KIND(UNAVAILABLE, "ServiceUnavailable", 503)
ERR_KIND(TIMEOUT, "Timeout", 504)
ERR_KIND(STORAGE, "InsufficientStorage", 507) /* not upstream's: etcd's disk is not its own */
