/* SPDX-License-Identifier: Apache-2.0 */
/* The order of API versions, by maturity and then by number. Must never fail: a CRD names its
 * versions as it likes. */
#include <sublet/api_version.h>

#include <stdint.h>

struct api_version api_version_read(struct str text)
{
    struct str rest = text, group = str_cut(&rest, '/');

    if (!rest.p)
        return (struct api_version){STR(""), text};
    return (struct api_version){group, rest};
}

struct version_rank {
    int stage; /* 3 GA, 2 beta, 1 alpha, 0 another form */
    uint64_t major, minor;
};

static struct version_rank version_rank(struct str v)
{
    struct version_rank r = {0, 0, 0};
    struct version_rank got = {3, 0, 0};
    size_t i = 1;

    if (v.n < 2 || v.p[0] != 'v' || v.p[1] < '1' || v.p[1] > '9')
        return r;
    for (; i < v.n && v.p[i] >= '0' && v.p[i] <= '9' && i < 18; i++)
        got.major = got.major * 10 + (uint64_t)(v.p[i] - '0');
    if (i == v.n)
        return got;

    struct str rest = str_from(v, i);
    if (str_has_prefix(rest, STR("beta")))
        got.stage = 2, rest = str_from(rest, 4);
    else if (str_has_prefix(rest, STR("alpha")))
        got.stage = 1, rest = str_from(rest, 5);
    else
        return r;
    return str_to_u64(rest, &got.minor) ? got : r;
}

int api_version_compare(struct str a, struct str b)
{
    struct version_rank x = version_rank(a), y = version_rank(b);

    if (x.stage != y.stage)
        return y.stage - x.stage;
    if (x.stage == 0)
        return str_cmp(a, b);
    if (x.major != y.major)
        return x.major > y.major ? -1 : 1;
    if (x.minor != y.minor)
        return x.minor > y.minor ? -1 : 1;
    return 0;
}
