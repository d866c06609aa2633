/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod says of the system it is for: the options of Windows, and what one system has that the
 * other has not. It must never judge whether a node of that system exists. Source:
 * validateWindowsSecurityContextOptions, validateWindowsHostProcessPod, validateOS and what follows
 * it in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <string.h>

#define MAX_CREDENTIAL_SPEC (64 * 1024)
#define MAX_DOMAIN          256
#define MAX_USER            104
#define MAX_NETBIOS         15

/* ---- user names ---- */

static bool is_any_of(char c, const char *chars)
{
    return c && strchr(chars, c);
}

static bool has_any_of(struct str s, const char *chars)
{
    for (size_t i = 0; i < s.n; i++) {
        if (is_any_of(s.p[i], chars))
            return true;
    }
    return false;
}

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    }
    return false;
}

static bool is_only(struct str s, const char *chars)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_any_of(s.p[i], chars))
            return false;
    }
    return s.n > 0;
}

static bool is_netbios(struct str domain)
{
    size_t n = str_characters(domain);

    return n >= 1 && n <= MAX_NETBIOS && domain.p[0] != '.' && !has_any_of(domain, "\\/:*?\"<>|");
}

static bool is_label(struct str s)
{
    return s.n <= 63 && kinds_is_made_of(s, "-") && s.p[0] != '-' && s.p[s.n - 1] != '-';
}

static bool is_dns_domain(struct str domain)
{
    struct str rest = domain;

    do {
        if (!is_label(str_cut(&rest, '.')))
            return false;
    } while (rest.p);
    return true;
}

static void check_user(struct field_errors *e, const struct field_path *p, const cJSON *shown,
                       struct str user)
{
    if (!user.n)
        field_invalid(e, p, shown, "runAsUserName's User cannot be empty");
    else if (user.n > MAX_USER)
        field_invalid(e, p, shown,
                      "runAsUserName's User length must not be longer than 104 characters");
    if (is_only(user, ". "))
        field_invalid(e, p, shown, "runAsUserName's User cannot contain only periods or spaces");
    if (has_any_of(user, "\"/\\:;|=,+*?<>@[]"))
        field_invalid(e, p, shown,
                      "runAsUserName's User cannot contain the following characters: "
                      "\"/\\:;|=,+*?<>@[]");
}

/* USER or DOMAIN\USER. */
static void check_user_name(struct field_errors *e, const struct field_path *p, const cJSON *shown)
{
    struct str name = json_str(shown), rest = name, domain = str_cut(&rest, '\\');

    if (!name.n) {
        field_invalid(e, p, shown, "runAsUserName cannot be an empty string");
    } else if (has_control(name)) {
        field_invalid(e, p, shown, "runAsUserName cannot contain control characters");
    } else if (rest.p && str_find(rest, '\\') < rest.n) {
        field_invalid(e, p, shown, "runAsUserName cannot contain more than one backslash");
    } else if (!rest.p) {
        check_user(e, p, shown, name);
    } else {
        if (domain.n >= MAX_DOMAIN)
            field_invalid(e, p, shown,
                          "runAsUserName's Domain length must be under 256 characters");
        if (!is_netbios(domain) && !is_dns_domain(domain))
            field_invalid(e, p, shown,
                          "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        check_user(e, p, shown, rest);
    }
}

static void check_credential_spec(struct field_errors *e, const struct field_path *p,
                                  const cJSON *spec)
{
    if (!json_str(spec).n)
        field_invalid(e, p, spec, "gmsaCredentialSpec cannot be an empty string");
    else if (json_str(spec).n > MAX_CREDENTIAL_SPEC)
        field_invalid(e, p, spec, "gmsaCredentialSpec size must be under 64 KiB");
}

const struct rule RULES_WINDOWS_OPTIONS[3] = {
    NAME_IF_GIVEN("gmsaCredentialSpecName", DNS1123_SUBDOMAIN),
    CHECK("gmsaCredentialSpec", check_credential_spec),
    CHECK("runAsUserName", check_user_name),
};

/* ---- processes of the host ---- */

struct host_process {
    struct field_errors *e;
    const cJSON *of_pod; /* what the pod says, NULL: nothing */
    size_t n, host;      /* containers; those that are processes of the host */
};

static void on_host_process(void *ctx, const struct field_path *p, const cJSON *container)
{
    struct host_process *h = ctx;
    const struct field_path *context = FIELD(p, "securityContext");
    const cJSON *mine = kinds_given(container, "securityContext.windowsOptions.hostProcess");

    if (mine && h->of_pod && json_true(mine) != json_true(h->of_pod))
        field_invalid(
            h->e, FIELD(FIELD(context, "windowsOptions"), "hostProcess"), mine,
            json_true(h->of_pod)
                ? "pod hostProcess value must be identical if both are specified, was true"
                : "pod hostProcess value must be identical if both are specified, was "
                  "false");
    h->n++;
    h->host += json_true(mine ? mine : h->of_pod);
}

void validate_host_process(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct host_process h = {
        .e = e,
        .of_pod = kinds_given(spec, "securityContext.windowsOptions.hostProcess"),
    };

    kinds_pod_each_container(p, spec, on_host_process, &h);
    if (!h.host)
        return;
    if (h.host != h.n)
        field_invalid_str(e, p, STR(""),
                          "If pod contains any hostProcess containers then all containers must be "
                          "HostProcess containers");
    if (!json_true(json_get(spec, "hostNetwork")))
        field_invalid(e, FIELD(p, "hostNetwork"), json_new_bool(e->arena, false),
                      "hostNetwork must be true if pod contains any hostProcess containers");
}

/* ---- what one system has and the other has not ---- */

#define NOT_WINDOWS(path) FORBIDDEN(path, "cannot be set for a windows pod")

/* What Windows lacks, in upstream's order. */
static const struct rule POD_OF_WINDOWS[] = {
    NOT_WINDOWS("securityContext.appArmorProfile"),
    NOT_WINDOWS("securityContext.seLinuxOptions"),
    NOT_WINDOWS("hostUsers"),
    NOT_WINDOWS("hostPID"),
    NOT_WINDOWS("hostIPC"),
    NOT_WINDOWS("securityContext.seccompProfile"),
    NOT_WINDOWS("securityContext.fsGroup"),
    NOT_WINDOWS("securityContext.fsGroupChangePolicy"),
    NOT_WINDOWS("securityContext.sysctls"),
    NOT_WINDOWS("shareProcessNamespace"),
    NOT_WINDOWS("securityContext.runAsUser"),
    NOT_WINDOWS("securityContext.runAsGroup"),
    NOT_WINDOWS("securityContext.supplementalGroups"),
    NOT_WINDOWS("securityContext.supplementalGroupsPolicy"),
    NOT_WINDOWS("securityContext.seLinuxChangePolicy"),
};
static const struct rule CONTAINER_OF_WINDOWS[] = {
    NOT_WINDOWS("securityContext.appArmorProfile"),
    NOT_WINDOWS("securityContext.seLinuxOptions"),
    NOT_WINDOWS("securityContext.seccompProfile"),
    NOT_WINDOWS("securityContext.capabilities"),
    NOT_WINDOWS("securityContext.readOnlyRootFilesystem"),
    NOT_WINDOWS("securityContext.privileged"),
    NOT_WINDOWS("securityContext.allowPrivilegeEscalation"),
    NOT_WINDOWS("securityContext.procMount"),
    NOT_WINDOWS("securityContext.runAsUser"),
    NOT_WINDOWS("securityContext.runAsGroup"),
};
/* Of a pod and of a container. */
static const struct rule OF_LINUX[] = {
    FORBIDDEN("securityContext.windowsOptions", "windows options cannot be set for a linux pod"),
};

static void on_windows_container(void *ctx, const struct field_path *p, const cJSON *container)
{
    rules_check_value(ctx, p, container, NULL, CONTAINER_OF_WINDOWS, COUNT(CONTAINER_OF_WINDOWS));
}

static void on_linux_container(void *ctx, const struct field_path *p, const cJSON *container)
{
    rules_check_value(ctx, p, container, NULL, OF_LINUX, COUNT(OF_LINUX));
}

void validate_os(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct str name = json_str_at(spec, "os.name");
    AT(at, p, "os");

    if (!kinds_given(spec, "os"))
        return;
    if (!name.n) {
        field_required(e, FIELD(at, "name"), "");
    } else if (!kinds_one_of(name, ENUM_OS_NAME)) {
        field_not_supported(e, at, name, ENUM_OS_NAME);
    } else if (str_eqc(name, "linux")) {
        rules_check_value(e, p, spec, NULL, OF_LINUX, COUNT(OF_LINUX));
        kinds_pod_each_container(p, spec, on_linux_container, e);
    } else {
        rules_check_value(e, p, spec, NULL, POD_OF_WINDOWS, COUNT(POD_OF_WINDOWS));
        kinds_pod_each_container(p, spec, on_windows_container, e);
    }
}
