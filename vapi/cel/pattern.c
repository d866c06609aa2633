/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of schemas. They have RE2's syntax (Go's regexp), which runs in linear time;
 * PCRE2 backtracks and accepts more. So this file first refuses everything RE2 would refuse, and
 * matches under limits, with the slower matcher that follows all states at once where backtracking
 * gave up or would begin at each place of a long string. Must never let a tenant's pattern block
 * the loop. Source of the syntax: Go's regexp/syntax. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include <sublet/buf.h>
#include <sublet/pattern.h>

#define QUICK_LIMIT  5000 /* steps of the backtracking matcher, each of which may read all of ... */
#define QUICK_BYTES  500000 /* ... the string: their product */
#define SHORT_BYTES  128    /* it begins anew at each place of a string: only of such */
#define SPAN_BYTES   4096   /* longest string in which a place is searched */
#define SQUARE_BYTES 500000000
#define MAX_REPEAT   1000
#define MAX_OPEN     200
#define FLAGS        (PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C)

struct pattern {
    struct pattern *next;
    const char *text;
    size_t n;
    pcre2_code *code;   /* NULL until first needed */
    pcre2_code *search; /* the same from any place, as one that begins at the first; or NULL */
    bool broken, anchored;
};

/* --- syntax --- */

struct scan {
    struct arena *arena;
    struct str text;
    size_t at;
    bool repeatable, repeated; /* the preceding element: exists; is itself a repetition */
    unsigned open;
    uint64_t inner;          /* the preceding element: how often it repeats its parts at most */
    uint64_t most[MAX_OPEN]; /* the same of each open group, and of the whole */
    const char *wrong;
};

static void refuse(struct scan *s, const char *why, struct str part)
{
    if (!s->wrong)
        s->wrong = arena_printf(s->arena, "error parsing regexp: %s: `%.*s`", why, STR_F(part)).p;
}

static int peek(const struct scan *s, size_t ahead)
{
    return s->at + ahead < s->text.n ? (unsigned char)s->text.p[s->at + ahead] : -1;
}

/* Positioned at a backslash. */
static void scan_escape(struct scan *s, bool in_class)
{
    int c = peek(s, 1);
    bool octal = c >= '1' && c <= '7' && peek(s, 2) >= '0' && peek(s, 2) <= '7';

    if (c < 0)
        refuse(s, "trailing backslash at end of expression", STR(""));
    else if (c < 128 && isalnum(c) && c != '0' && !octal &&
             !strchr(in_class ? "dDsSwWpPafnrtvx" : "dDsSwWpPafnrtvxAbBzQ", c))
        refuse(s, "invalid escape sequence", str_sub(s->text, s->at, 2));
    if (c == 'Q' && !in_class) {
        while (s->at < s->text.n && !(peek(s, 0) == '\\' && peek(s, 1) == 'E'))
            s->at++;
    }
    s->at += 2;
    s->repeatable = true;
    s->repeated = false;
}

static void scan_class(struct scan *s)
{
    size_t from = s->at++;

    if (peek(s, 0) == '^')
        s->at++;
    for (bool first = true; first || peek(s, 0) != ']'; first = false) {
        if (peek(s, 0) < 0) {
            refuse(s, "missing closing ]", str_from(s->text, from));
            return;
        }
        if (peek(s, 0) == '\\') {
            scan_escape(s, true);
        } else if (peek(s, 0) == '[' && peek(s, 1) == ':') {
            struct str rest = str_from(s->text, s->at + 2);
            size_t colon = str_find(rest, ':');

            s->at += colon + 1 < rest.n && rest.p[colon + 1] == ']' ? colon + 4 : 1;
        } else {
            s->at++;
        }
    }
    s->at++;
    s->repeatable = true;
    s->repeated = false;
}

static void scan_open(struct scan *s)
{
    size_t from = s->at;

    if (++s->open == MAX_OPEN) {
        refuse(s, "expression nests too deeply", s->text);
        return;
    }
    s->most[s->open] = 1;
    s->at++;
    s->repeatable = s->repeated = false;
    if (peek(s, 0) != '?')
        return;
    if ((peek(s, 1) == 'P' && peek(s, 2) == '<') ||
        (peek(s, 1) == '<' && peek(s, 2) != '=' && peek(s, 2) != '!')) {
        s->at += peek(s, 1) == 'P' ? 3 : 2;
        while (isalnum(peek(s, 0)) || peek(s, 0) == '_')
            s->at++;
        if (peek(s, 0) != '>')
            refuse(s, "invalid named capture", str_from(s->text, from));
        s->at++;
        return;
    }
    s->at++;
    while (peek(s, 0) > 0 && strchr("imsU-", peek(s, 0)))
        s->at++;
    if (peek(s, 0) != ':' && peek(s, 0) != ')')
        refuse(s, "invalid or unsupported Perl syntax", str_sub(s->text, from, s->at - from + 1));
    if (peek(s, 0) == ':')
        s->at++;
}

static void scan_close(struct scan *s)
{
    s->at++;
    if (!s->open) {
        refuse(s, "unexpected )", s->text);
        return;
    }
    s->inner = s->most[s->open--];
    if (s->inner > s->most[s->open])
        s->most[s->open] = s->inner;
    s->repeatable = true;
    s->repeated = false;
}

/* {n}, {n,}, {n,m}; other braces are literal characters. */
static size_t braces(struct scan *s, uint64_t *ret_count)
{
    struct str rest = str_from(s->text, s->at + 1);
    size_t end = str_find(rest, '}');
    struct str high = str_sub(rest, 0, end), low = str_cut(&high, ',');
    uint64_t from, to;

    if (end == rest.n || end > 16 || !str_to_u64(low, &from) || (high.n && !str_to_u64(high, &to)))
        return 0;
    *ret_count = high.n ? to : from;
    if (high.n && to < from)
        *ret_count = MAX_REPEAT + 1;
    return end + 2;
}

static void scan_repeat(struct scan *s)
{
    uint64_t count = 0;
    size_t n = peek(s, 0) == '{' ? braces(s, &count) : 1;
    struct str part = str_sub(s->text, s->at, n);

    if (!n) {
        s->at++;
        s->repeatable = true;
        s->repeated = false;
        return;
    }
    if (!s->repeatable)
        refuse(s, "missing argument to repetition operator", part);
    else if (s->repeated)
        refuse(s, "invalid nested repetition operator", str_sub(s->text, s->at - 1, n + 1));
    else if (count * s->inner > MAX_REPEAT)
        refuse(s, "invalid repeat count", part);
    if (count * s->inner > s->most[s->open])
        s->most[s->open] = count * s->inner;
    s->at += n;
    if (peek(s, 0) == '?')
        s->at++;
    s->repeated = true;
}

static void scan_one(struct scan *s)
{
    if (!peek(s, 0) || !strchr("*+?{", peek(s, 0)))
        s->inner = 1;
    switch (peek(s, 0)) {
    case '\\':
        scan_escape(s, false);
        return;
    case '[':
        scan_class(s);
        return;
    case '(':
        scan_open(s);
        return;
    case '*':
    case '+':
    case '?':
    case '{':
        scan_repeat(s);
        return;
    case ')':
        scan_close(s);
        return;
    case '|':
        s->repeatable = false;
        break;
    default:
        s->repeatable = true;
    }
    s->repeated = false;
    s->at++;
}

static pcre2_code *compile(const char *text, size_t n, int *ret_code)
{
    size_t offset;

    return pcre2_compile((PCRE2_SPTR)text, n, FLAGS, ret_code, &offset, NULL);
}

const char *pattern_check(struct arena *a, struct str text)
{
    struct scan s = {.arena = a, .text = text, .inner = 1, .most = {1}};
    char why[128] = "";
    int code;

    while (s.at < text.n && !s.wrong)
        scan_one(&s);
    if (!s.wrong && s.open)
        refuse(&s, "missing closing )", text);
    if (s.wrong)
        return s.wrong;
    pcre2_code *re = compile(text.p, text.n, &code);
    pcre2_code_free(re);
    if (re)
        return NULL;
    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof(why));
    return arena_printf(a, "error parsing regexp: %s", why).p;
}

/* --- matching --- */

struct pattern *pattern_new(struct arena *a, struct str text, struct pattern *next)
{
    struct pattern *p = ARENA_NEW(a, struct pattern);

    *p = (struct pattern){.next = next, .text = arena_cstr(a, text), .n = text.n};
    return p;
}

const char *pattern_text(const struct pattern *p)
{
    return p->text;
}

static bool gave_up(int n)
{
    return n == PCRE2_ERROR_MATCHLIMIT || n == PCRE2_ERROR_HEAPLIMIT || n == PCRE2_ERROR_DEPTHLIMIT;
}

/* The time of a byte grows with the square of the states: many are for few bytes. bytes: of a unit
 * of the budget; 0: it is charged nothing. Steps of the library are thirds of an entry. */
static const struct {
    int space;
    size_t bytes;
} STATES[] = {{200, 0}, {620, 1024}, {2000, 256}};

static int follow(const struct pattern *p, struct str text, unsigned *budget,
                  pcre2_match_context *limits, pcre2_match_data *data)
{
    const pcre2_code *code = p->anchored ? p->code : p->search;
    int space[2000], n = PCRE2_ERROR_DFA_WSSIZE;

    for (size_t i = 0; code && i < COUNT(STATES) && n == PCRE2_ERROR_DFA_WSSIZE; i++) {
        unsigned units = STATES[i].bytes ? 1 + (unsigned)(text.n / STATES[i].bytes) : 0;

        if (units > *budget)
            break;
        *budget -= units;
        n = pcre2_dfa_match(code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, 0, PCRE2_DFA_SHORTEST,
                            data, limits, space, (size_t)STATES[i].space);
    }
    return n;
}

static int match(const struct pattern *p, struct str text, unsigned *budget)
{
    size_t steps = 20 + QUICK_BYTES / (text.n + 1);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int n = PCRE2_ERROR_MATCHLIMIT;

    pcre2_set_heap_limit(limits, 4096);
    pcre2_set_match_limit(limits, steps < QUICK_LIMIT ? (uint32_t)steps : QUICK_LIMIT);
    if (p->anchored || text.n <= SHORT_BYTES)
        n = pcre2_match(p->code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, 0, 0, data, limits);
    if (gave_up(n)) {
        pcre2_set_match_limit(limits, QUICK_LIMIT);
        n = follow(p, text, budget, limits, data);
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
    return n;
}

/* \E ends a \Q that the pattern leaves open, and is nothing otherwise. */
static void prepare(struct pattern *p)
{
    static const char before[] = "^(?s:.)*?(?:", after[] = "\\E)";
    struct buf b = BUF_INIT(0);
    uint32_t options = 0;
    int code;

    p->code = compile(p->text, p->n, &code);
    p->broken = !p->code; /* refused with the CRD, or stored by an earlier version of Sublet */
    if (p->broken || pcre2_pattern_info(p->code, PCRE2_INFO_ALLOPTIONS, &options))
        return;
    p->anchored = options & PCRE2_ANCHORED;
    buf_addc(&b, before);
    buf_add(&b, (struct str){p->text, p->n});
    buf_addc(&b, after);
    if (!p->anchored)
        p->search = compile(b.p, b.n, &code);
    buf_fini(&b);
}

static bool ready(struct pattern *p)
{
    if (!p->code && !p->broken)
        prepare(p);
    return !p->broken;
}

bool pattern_holds(struct pattern *p, struct str text, unsigned *budget)
{
    return !ready(p) || match(p, text, budget) >= 0;
}

/* Where: only backtracking says it, and it begins anew at each place, so that its time grows with
 * the square of the length. */
static int find(const struct pattern *p, struct str text, size_t from, unsigned steps,
                size_t span[2])
{
    size_t most = 20 + SQUARE_BYTES / (text.n * text.n + 1);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int n = PCRE2_ERROR_MATCHLIMIT;

    pcre2_set_heap_limit(limits, 4096);
    pcre2_set_match_limit(limits, steps < most ? steps : (uint32_t)most);
    if (text.n <= SPAN_BYTES)
        n = pcre2_match(p->code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, from, 0, data, limits);
    if (n >= 0) {
        span[0] = pcre2_get_ovector_pointer(data)[0];
        span[1] = pcre2_get_ovector_pointer(data)[1];
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
    return n;
}

int pattern_search(struct pattern *p, struct str text, size_t from, unsigned steps, size_t span[2])
{
    unsigned budget = steps / PATTERN_QUICK;
    int n;

    if (!ready(p))
        return -1;
    assert(span || !from);
    n = span ? find(p, text, from, steps, span) : match(p, text, &budget);
    return n >= 0 ? 1 : n == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

void pattern_free_all(struct pattern *first)
{
    for (; first; first = first->next) {
        pcre2_code_free(first->code);
        pcre2_code_free(first->search);
        first->code = first->search = NULL;
    }
}
