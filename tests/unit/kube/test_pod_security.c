/* SPDX-License-Identifier: Apache-2.0 */
/* Pod Security: every row of the table, in the words of upstream's admission and in those of the
 * fence, and the versions between which a form holds. The words of upstream are compared with a
 * real server by tests/integration/test_pod_security.py. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sublet/pod_security.h>
#include <sublet/yaml.h>

#define B POD_SECURITY_BASELINE
#define R POD_SECURITY_RESTRICTED
static const struct {
    const char *spec, *metadata;
    enum pod_security_level level;
    int64_t minor;
    const char *details, *fence; /* empty: allowed */
} CASES[] = {
    {"{securityContext: {appArmorProfile: {type: Unconfined}}, containers: [{name: c, "
     "securityContext: {appArmorProfile: {type: Localhost}}}, {name: d, securityContext: "
     "{appArmorProfile: {type: x}}}]}",
     "", B, 35,
     "forbidden AppArmor profiles (pod and container \"d\" must not set AppArmor profile type to "
     "\"Unconfined\", \"x\")",
     "forbidden AppArmor profile (pod and container \"c\", \"d\" must not set AppArmor profile "
     "type to \"Unconfined\", \"Localhost\", \"x\")"},
    {"{containers: []}",
     "{annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined, "
     "container.apparmor.security.beta.kubernetes.io/d: 'a\"b'}}",
     B, 35,
     "forbidden AppArmor profiles (annotations must not set AppArmor profile type to "
     "\"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\", "
     "\"container.apparmor.security.beta.kubernetes.io/d=\"a\\\"b\"\")",
     ""},
    {"{containers: [{name: c, securityContext: {capabilities: {add: [SYS_ADMIN, CHOWN, NET_ADMIN, "
     "SYS_ADMIN]}}}]}",
     "", B, 35,
     "non-default capabilities (container \"c\" must not include \"NET_ADMIN\", \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)",
     "non-default capabilities (container \"c\" must not include \"SYS_ADMIN\", \"NET_ADMIN\" in "
     "securityContext.capabilities.add)"},
    {"{hostNetwork: true, hostPID: false, hostIPC: true}", "", B, 35,
     "host namespaces (hostNetwork=true, hostIPC=true)",
     "host namespaces (hostNetwork=true, hostIPC=true)"},
    {"{volumes: [{name: b, hostPath: {path: /}}, {name: a, hostPath: {path: /}}, {name: e, "
     "emptyDir: {}}]}",
     "", B, 35, "hostPath volumes (volumes \"b\", \"a\")",
     "hostPath volumes (volume \"b\", \"a\")"},
    {"{containers: [{name: c, ports: [{hostPort: 80}, {hostPort: 0}, {hostPort: 81}]}]}", "", B, 35,
     "hostPort (container \"c\" uses hostPorts 80, 81)",
     "hostPort (container \"c\" uses hostPort 80, 81)"},
    {"{containers: [{name: d, livenessProbe: {httpGet: {host: h}}}, {name: c, lifecycle: {preStop: "
     "{tcpSocket: {host: 10.0.0.1}}}}]}",
     "", B, 35,
     "probe or lifecycle host (containers \"c\", \"d\" use probe or lifecycle hosts \"10.0.0.1\", "
     "\"h\")",
     "probe or lifecycle host (container \"d\", \"c\" uses probe or lifecycle host \"h\", "
     "\"10.0.0.1\")"},
    {"{containers: [{name: c, livenessProbe: {httpGet: {host: h}}}]}", "", B, 33, "",
     "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"h\")"},
    {"{containers: [{name: c, securityContext: {privileged: true}}]}", "", B, 35,
     "privileged (container \"c\" must not set securityContext.privileged=true)",
     "privileged (container \"c\" must not set securityContext.privileged=true)"},
    {"{containers: [{name: c, securityContext: {procMount: Unmasked}}]}", "", B, 35,
     "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
     "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"},
    {"{hostUsers: false, containers: [{name: c, securityContext: {procMount: Unmasked}}]}", "", B,
     35, "", "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"},
    {"{hostUsers: false, containers: [{name: c, securityContext: {procMount: Unmasked}}]}", "", B,
     34, "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
     "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"},
    {"{securityContext: {seLinuxOptions: {user: u}}, containers: [{name: c, securityContext: "
     "{seLinuxOptions: {type: z, role: r}}}, {name: d, securityContext: {seLinuxOptions: {type: "
     "a}}}]}",
     "", B, 35,
     "seLinuxOptions (pod and containers \"c\", \"d\" set forbidden "
     "securityContext.seLinuxOptions: types \"a\", \"z\"; user may not be set; role may not be "
     "set)",
     "seLinuxOptions (pod and container \"c\", \"d\" set forbidden securityContext.seLinuxOptions: "
     "user may not be set, type \"z\", role may not be set, type \"a\")"},
    {"{containers: [{name: c, securityContext: {seLinuxOptions: {type: container_engine_t}}}]}", "",
     B, 31, "", ""},
    {"{containers: [{name: c, securityContext: {seLinuxOptions: {type: container_engine_t}}}]}", "",
     B, 30,
     "seLinuxOptions (container \"c\" set forbidden securityContext.seLinuxOptions: type "
     "\"container_engine_t\")",
     ""},
    {"{containers: [{name: c, securityContext: {seccompProfile: {type: Unconfined}}}]}",
     "{annotations: {container.seccomp.security.alpha.kubernetes.io/c: unconfined, "
     "seccomp.security.alpha.kubernetes.io/pod: x}}",
     B, 18,
     "seccompProfile (forbidden annotations "
     "container.seccomp.security.alpha.kubernetes.io/c=\"unconfined\", "
     "seccomp.security.alpha.kubernetes.io/pod=\"x\")",
     "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to "
     "\"Unconfined\")"},
    {"{securityContext: {seccompProfile: {type: Localhost}}, containers: [{name: c, "
     "securityContext: {seccompProfile: {type: Unconfined}}}]}",
     "", B, 19,
     "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to "
     "\"Unconfined\")",
     "seccompProfile (pod and container \"c\" must not set securityContext.seccompProfile.type to "
     "\"Localhost\", \"Unconfined\")"},
    {"{securityContext: {sysctls: [{name: net.ipv4.tcp_rmem}, {name: kernel.msgmax}]}}", "", B, 31,
     "forbidden sysctls (net.ipv4.tcp_rmem, kernel.msgmax)", "forbidden sysctls (kernel.msgmax)"},
    {"{securityContext: {sysctls: [{name: net.ipv4.tcp_rmem}, {name: kernel.msgmax}]}}", "", B, 32,
     "forbidden sysctls (kernel.msgmax)", "forbidden sysctls (kernel.msgmax)"},
    {"{securityContext: {windowsOptions: {hostProcess: true}}}", "", B, 35,
     "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
     "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
    {"{containers: [{name: c, volumeMounts: [{mountPropagation: Bidirectional}]}]}", "", B, 35, "",
     "mount propagation (container \"c\" must not set volumeMounts.mountPropagation to "
     "\"Bidirectional\")"},
    {"{containers: [{name: c, securityContext: {runAsNonRoot: true, seccompProfile: {type: "
     "RuntimeDefault}, capabilities: {drop: [ALL]}}}]}",
     "", R, 35,
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false)",
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},
    {"{os: {name: windows}, containers: [{name: c, securityContext: {runAsNonRoot: true}}]}", "", R,
     25, "",
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" "
     "must set securityContext.capabilities.drop=[\"ALL\"]), seccompProfile (container \"c\" must "
     "set securityContext.seccompProfile.type to \"RuntimeDefault\")"},
    {"{os: {name: windows}, containers: [{name: c, securityContext: {runAsNonRoot: true}}]}", "", R,
     24,
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" "
     "must set securityContext.capabilities.drop=[\"ALL\"]), seccompProfile (pod or container "
     "\"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
     "allowPrivilegeEscalation != false (container \"c\" must set "
     "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" "
     "must set securityContext.capabilities.drop=[\"ALL\"]), seccompProfile (container \"c\" must "
     "set securityContext.seccompProfile.type to \"RuntimeDefault\")"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [KILL], add: [CHOWN]}}}]}",
     "", R, 35,
     "unrestricted capabilities (container \"c\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]; container \"c\" must not include \"CHOWN\" in "
     "securityContext.capabilities.add)",
     "unrestricted capabilities (container \"c\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]), unrestricted capabilities (container \"c\" "
     "must not include \"CHOWN\" in securityContext.capabilities.add)"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, seccompProfile: {type: RuntimeDefault}, capabilities: {add: [CHOWN, SYS_ADMIN]}}}]}",
     "", R, 21,
     "non-default capabilities (container \"c\" must not include \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)",
     "non-default capabilities (container \"c\" must not include \"SYS_ADMIN\" in "
     "securityContext.capabilities.add), unrestricted capabilities (container \"c\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]), unrestricted capabilities (container \"c\" "
     "must not include \"CHOWN\", \"SYS_ADMIN\" in securityContext.capabilities.add)"},
    {"{hostUsers: false, containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, "
     "runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [ALL]}, "
     "procMount: Unmasked}}]}",
     "", R, 35,
     "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
     "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")"},
    {"{volumes: [{name: v, nfs: {}}, {name: z, zz: {}}, {name: e, emptyDir: {}}]}", "", R, 35,
     "restricted volume types (volumes \"v\", \"z\" use restricted volume types \"nfs\", "
     "\"unknown\")",
     ""},
    {"{securityContext: {runAsNonRoot: true}, containers: [{name: c, securityContext: "
     "{allowPrivilegeEscalation: false, runAsNonRoot: false, seccompProfile: {type: "
     "RuntimeDefault}, capabilities: {drop: [ALL]}}}]}",
     "", R, 35,
     "runAsNonRoot != true (container \"c\" must not set securityContext.runAsNonRoot=false)",
     "runAsNonRoot != true (container \"c\" must set securityContext.runAsNonRoot=true)"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, seccompProfile: "
     "{type: RuntimeDefault}, capabilities: {drop: [ALL]}}}]}",
     "", R, 34,
     "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)",
     "runAsNonRoot != true (container \"c\" must set securityContext.runAsNonRoot=true)"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [ALL]}, runAsUser: 0}}]}",
     "", R, 35, "runAsUser=0 (container \"c\" must not set runAsUser=0)",
     "runAsUser=0 (container \"c\" must not set runAsUser=0)"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [ALL]}, runAsUser: 0}}]}",
     "", R, 22, "", "runAsUser=0 (container \"c\" must not set runAsUser=0)"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, capabilities: {drop: [ALL]}}}]}",
     "", R, 35,
     "seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to "
     "\"RuntimeDefault\" or \"Localhost\")",
     "seccompProfile (container \"c\" must set securityContext.seccompProfile.type to "
     "\"RuntimeDefault\")"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, capabilities: {drop: [ALL]}, seccompProfile: {type: Localhost}}}]}",
     "", R, 35, "",
     "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to "
     "\"Localhost\"), seccompProfile (container \"c\" must set securityContext.seccompProfile.type "
     "to \"RuntimeDefault\")"},
    {"{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: "
     "true, capabilities: {drop: [ALL]}, seccompProfile: {type: Unconfined}}}]}",
     "", R, 35,
     "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to "
     "\"Unconfined\")",
     "seccompProfile (container \"c\" must not set securityContext.seccompProfile.type to "
     "\"Unconfined\"), seccompProfile (container \"c\" must set "
     "securityContext.seccompProfile.type to \"RuntimeDefault\")"},
};
#undef B
#undef R

static cJSON *doc(struct arena *a, const char *yaml)
{
    cJSON *ret = NULL;
    struct err err;

    err_init(&err, a);
    assert_int_equal(yaml_parse(a, str_c(yaml), NULL, NULL, &ret, &err), 0);
    return ret;
}

static void assert_words(struct str got, const char *want)
{
    if (str_eqc(got, want))
        return;
    print_error("got  %.*s\nwant %s\n", STR_F(got), want);
    fail();
}

static void rows(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct pod_security_policy policy = {.level = CASES[i].level, .minor = CASES[i].minor};
        const cJSON *spec = doc(a, CASES[i].spec), *metadata = doc(a, CASES[i].metadata);
        struct pod_security_verdict v = pod_security_judge(a, &policy, metadata, spec);
        struct str violations;
        bool admitted = pod_security_fence(a, CASES[i].level, spec, &violations);

        assert_words(v.details, CASES[i].details);
        assert_int_equal(v.allowed, !*CASES[i].details);
        assert_words(violations, CASES[i].fence);
        assert_int_equal(admitted, !*CASES[i].fence);
    }
    arena_free(a);
}

static void reasons_and_order(void **state)
{
    struct pod_security_policy latest = {.level = POD_SECURITY_BASELINE, .latest = true};
    struct arena *a = arena_new(0);
    const cJSON *spec = doc(a, "{hostPID: true, containers: [{name: c, ports: [{hostPort: 1}], "
                               "securityContext: {privileged: true, procMount: Unmasked}}]}");
    struct pod_security_verdict v = pod_security_judge(a, &latest, NULL, spec);
    struct str violations;

    (void)state;
    assert_words(v.reasons, "host namespaces, hostPort, privileged, procMount");
    assert_false(pod_security_fence(a, POD_SECURITY_BASELINE, spec, &violations));
    assert_words(violations, "host namespaces (hostPID=true), privileged (container \"c\" must not "
                             "set securityContext.privileged=true), hostPort (container \"c\" uses "
                             "hostPort 1), procMount (container \"c\" must not set "
                             "securityContext.procMount to \"Unmasked\")");
    latest.level = POD_SECURITY_PRIVILEGED;
    assert_true(pod_security_judge(a, &latest, NULL, spec).allowed);
    latest.level = POD_SECURITY_RESTRICTED;
    assert_true(pod_security_judge(a, &latest, NULL, NULL).allowed);
    arena_free(a);
}

/* The fence names 16 containers and values of a rule; a string with quotes is escaped. */
static void fence_is_bounded(void **state)
{
    struct arena *a = arena_new(0);
    struct buf yaml = BUF_INIT(0);
    struct str violations;

    (void)state;
    buf_addc(&yaml, "{containers: [{name: 'a\"b', ports: [{hostPort: 1}]}");
    for (int i = 2; i < 20; i++)
        buf_printf(&yaml, ", {name: c%d, ports: [{hostPort: %d}]}", i, i);
    buf_addc(&yaml, "]}");
    buf_char(&yaml, 0);
    assert_false(pod_security_fence(a, POD_SECURITY_BASELINE, doc(a, yaml.p), &violations));
    assert_true(str_has_prefix(violations, STR("hostPort (container \"a\\\"b\", \"c2\"")));
    assert_true(str_has_suffix(violations, STR("\"c16\" uses hostPort 1, 2, 3, 4, 5, 6, 7, 8, 9, "
                                               "10, 11, 12, 13, 14, 15, 16)")));
    buf_fini(&yaml);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(reasons_and_order),
        cmocka_unit_test(fence_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
