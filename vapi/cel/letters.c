/* SPDX-License-Identifier: Apache-2.0 */
/* The letters of types (README.md): what they skip, fit and print. */
#include "impl.h"

#include <string.h>

const char *cel_type_skip(const char *type)
{
    switch (*type) {
    case '\0':
        return type;
    case 'L':
    case 'O':
        return cel_type_skip(type + 1);
    case 'M':
        return cel_type_skip(cel_type_skip(type + 1));
    case '{':
        return strchr(type, '}') + 1;
    case 'J':
        return type + 9;
    default:
        return type + 1;
    }
}

/* By enum cel_kind. */
static const char LETTERS[] = {
    [CEL_NULL] = 'n',        [CEL_BOOL] = 'b',
    [CEL_INT] = 'i',         [CEL_UINT] = 'u',
    [CEL_DOUBLE] = 'd',      [CEL_STRING] = 's',
    [CEL_BYTES] = 'y',       [CEL_TIMESTAMP] = 't',
    [CEL_DURATION] = 'D',    [CEL_LIST] = 'L',
    [CEL_MAP] = 'M',         [CEL_TYPE] = 'T',
    [CEL_OPTIONAL] = 'O',    [CEL_QUANTITY] = 'q',
    [CEL_IP] = 'I',          [CEL_CIDR] = 'C',
    [CEL_AUTHORIZER] = 'Z',  [CEL_PATH_CHECK] = 'P',
    [CEL_GROUP_CHECK] = 'G', [CEL_RESOURCE_CHECK] = 'R',
    [CEL_DECISION] = 'X',    [CEL_VARIABLES] = 'V',
    [CEL_OBJECT] = '{',      [CEL_FORMAT] = 'F',
    [CEL_URL] = 'W',         [CEL_SEMVER] = 'S',
};

bool cel_kind_fits(char letter, enum cel_kind kind)
{
    if (letter == '*' || letter == 'A' || letter == 'B')
        return true;
    if (letter == '#')
        return kind == CEL_INT || kind == CEL_UINT || kind == CEL_DOUBLE;
    return LETTERS[kind] == letter;
}

static const struct {
    char letter;
    const char *name;
} NAMES[] = {
    {'*', "dyn"},
    {'n', "null"},
    {'b', "bool"},
    {'i', "int"},
    {'u', "uint"},
    {'d', "double"},
    {'#', "double"},
    {'s', "string"},
    {'y', "bytes"},
    {'t', "timestamp"},
    {'D', "duration"},
    {'T', "type"},
    {'q', "kubernetes.Quantity"},
    {'I', "net.IP"},
    {'C', "net.CIDR"},
    {'Z', "kubernetes.authorization.Authorizer"},
    {'P', "kubernetes.authorization.PathCheck"},
    {'G', "kubernetes.authorization.GroupCheck"},
    {'R', "kubernetes.authorization.ResourceCheck"},
    {'X', "kubernetes.authorization.Decision"},
    {'V', "kubernetes.variables"},
    {'Q', "kubernetes.AdmissionRequest"},
    {'g', "kubernetes.GroupVersionKind"},
    {'r', "kubernetes.GroupVersionResource"},
    {'U', "kubernetes.UserInfo"},
    {'F', "kubernetes.NamedFormat"},
    {'W', "kubernetes.URL"},
    {'S', "kubernetes.Semver"},
    {'J', "object"},
    {'N', "kubernetes.Namespace"},
    {'m', "kubernetes.NamespaceMetadata"},
};

struct str cel_type_text(struct arena *a, const char *type)
{
    if (*type == 'L')
        return arena_printf(a, "list(%s)", cel_type_text(a, type + 1).p);
    if (*type == 'O')
        return arena_printf(a, "optional_type(%s)", cel_type_text(a, type + 1).p);
    if (*type == 'M')
        return arena_printf(a, "map(%s, %s)", cel_type_text(a, type + 1).p,
                            cel_type_text(a, cel_type_skip(type + 1)).p);
    if (*type == '{')
        return arena_printf(a, "%.*s", (int)(cel_type_skip(type) - type) - 2, type + 1);
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        if (NAMES[i].letter == *type)
            return str_c(NAMES[i].name);
    }
    return STR("dyn");
}
