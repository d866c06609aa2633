/* SPDX-License-Identifier: Apache-2.0 */
/* What gives out identities: certificate signing requests, tokens in Secrets, the published CA; and
 * the collector of pods that no other controller removes. */
#include "controller_world.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <sublet/encode.h>
#include <sublet/pki.h>

#define REQUESTS "certificatesigningrequests.certificates.k8s.io"
#define CLIENT   "kubernetes.io/kube-apiserver-client"

/* ---- requests ---- */

/* A signing request with a key of its own, as base64 of PEM. */
static struct str make_request(const char *organization, const char *cn, const char *dns)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509_REQ *q = X509_REQ_new();
    X509_NAME *name = X509_REQ_get_subject_name(q);
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;

    if (organization)
        X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)organization,
                                   -1, -1, 0);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0);
    if (dns) {
        STACK_OF(X509_EXTENSION) *list = sk_X509_EXTENSION_new_null();

        sk_X509_EXTENSION_push(list, X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, dns));
        X509_REQ_add_extensions(q, list);
        sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
    }
    X509_REQ_set_pubkey(q, key);
    assert_true(X509_REQ_sign(q, key, EVP_sha256()) > 0);
    PEM_write_bio_X509_REQ(bio, q);
    long n = BIO_get_mem_data(bio, &text);
    struct str out = base64_encode(world_arena(W), (struct str){text, (size_t)n});
    BIO_free(bio);
    X509_REQ_free(q);
    EVP_PKEY_free(key);
    return out;
}

static cJSON *request(const char *signer, struct str pem, const char *usage)
{
    cJSON *csr = world_parse(W, "{'metadata':{'name':'r'},'spec':{}}"),
          *spec = json_get(csr, "spec");
    struct arena *a = world_arena(W);

    json_set_str(a, spec, "signerName", str_c(signer));
    json_set_str(a, spec, "request", pem);
    json_set(a, spec, "usages",
             world_parse(W, arena_printf(a, "['digital signature','%s']", usage).p));
    return csr;
}

static const cJSON *csr(void)
{
    return world_get(W, REQUESTS, "", "r");
}

static void approve(void)
{
    world_patch_at(W, REQUESTS, "approval", "", "r",
                   "{'status':{'conditions':[{'type':'Approved','status':'True','reason':'R',"
                   "'message':'M'}]}}");
    world_settle(W);
}

static X509 *certificate(void)
{
    struct str pem;
    BIO *bio;
    X509 *cert;

    assert_true(base64_decode(world_arena(W), json_str_at(csr(), "status.certificate"), &pem));
    bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(cert);
    return cert;
}

static void client_is_signed_when_approved(void **state)
{
    (void)state;
    cJSON *body = request(CLIENT, make_request("team", "ann", NULL), "client auth");
    json_set_i64(world_arena(W), json_get(body, "spec"), "expirationSeconds", 3600);
    world_create_tree(W, REQUESTS, "", body);
    world_settle(W);
    assert_null(json_path(csr(), "status.certificate"));
    assert_str(json_str_at(csr(), "spec.username"), "system:sublet");
    approve();
    X509 *cert = certificate();
    char text[256];
    X509_NAME_oneline(X509_get_subject_name(cert), text, sizeof(text));
    assert_string_equal(text, "/O=team/CN=ann");
    assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_CLIENT);
    assert_int_equal(X509_get_key_usage(cert), X509v3_KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_check_ca(cert), 0);
    X509_free(cert);
    struct str pem;
    assert_true(base64_decode(world_arena(W), json_str_at(csr(), "status.certificate"), &pem));
    assert_true(pki_certificate_end(pem) - world_now(W) <= 3600);
    assert_true(pki_certificate_end(pem) - world_now(W) > 3500);
    /* It is forgotten an hour after. */
    world_pass(W, 3500);
    assert_non_null(csr());
    world_pass(W, 200);
    assert_null(csr());
}

static void masters_are_refused(void **state)
{
    (void)state;
    assert_string_equal(
        world_try_tree(W, REQUESTS, "",
                       request(CLIENT, make_request("system:masters", "x", NULL), "client auth")),
        "Forbidden");
    assert_string_equal(
        world_try_tree(W, REQUESTS, "",
                       request(CLIENT, base64_encode(world_arena(W), STR("junk")), "client auth")),
        "Invalid");
}

static void signer_has_rules(void **state)
{
    (void)state;
    world_create_tree(W, REQUESTS, "",
                      request(CLIENT, make_request(NULL, "x", NULL), "server auth"));
    world_settle(W);
    approve();
    assert_null(json_path(csr(), "status.certificate"));
    assert_string_equal(world_condition(W, csr(), "Failed"), "True");
    assert_string_equal(world_reason(W, csr(), "Failed"), "SignerValidationFailure");
}

static void node_approves_itself(void **state)
{
    (void)state;
    /* We are system:masters, which may name any node. */
    world_create_tree(W, REQUESTS, "",
                      request("kubernetes.io/kube-apiserver-client-kubelet",
                              make_request("system:nodes", "system:node:x", NULL), "client auth"));
    world_settle(W);
    assert_string_equal(world_reason(W, csr(), "Approved"), "AutoApproved");
    X509_free(certificate());
}

static void names_are_taken_over(void **state)
{
    (void)state;
    world_create_tree(
        W, REQUESTS, "",
        request("kubernetes.io/kubelet-serving",
                make_request("system:nodes", "system:node:x", "DNS:a.example,IP:10.0.0.1"),
                "server auth"));
    approve();
    X509 *cert = certificate();
    assert_int_equal(X509_check_host(cert, "a.example", 0, 0, NULL), 1);
    assert_int_equal(X509_check_ip_asc(cert, "10.0.0.1", 0), 1);
    assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_SERVER);
    X509_free(cert);
}

static void others_are_left_alone(void **state)
{
    (void)state;
    world_create_tree(W, REQUESTS, "",
                      request("example.com/mine", make_request(NULL, "x", NULL), "client auth"));
    approve();
    assert_null(json_path(csr(), "status.certificate"));
    world_pass(W, 23 * 3600);
    assert_non_null(csr());
    world_pass(W, 2 * 3600);
    assert_null(csr());
}

/* ---- tokens ---- */

#define TOKEN(account)                                                                             \
    "{'metadata':{'name':'t','annotations':{'kubernetes.io/service-account.name':'" account        \
    "'}},'type':'kubernetes.io/service-account-token'}"

static void secret_is_filled_and_goes_with_its_account(void **state)
{
    (void)state;
    struct token_claims claims;
    struct str jwt, ca, ns;
    struct err err;

    world_create(W, "serviceaccounts", "n", "{'metadata':{'name':'robot'}}");
    world_create(W, "secrets", "n", TOKEN("robot"));
    world_settle(W);
    const cJSON *secret = world_get(W, "secrets", "n", "t"), *data = json_get(secret, "data");
    assert_true(base64_decode(world_arena(W), json_str(json_get(data, "token")), &jwt));
    assert_true(base64_decode(world_arena(W), json_str(json_get(data, "ca.crt")), &ca));
    assert_true(base64_decode(world_arena(W), json_str(json_get(data, "namespace")), &ns));
    assert_str(ns, "n");
    assert_true(str_has_prefix(ca, STR("-----BEGIN CERTIFICATE-----")));
    err_init(&err, world_arena(W));
    assert_int_equal(pki_verify_token(vapi_pki(world_api(W)), world_arena(W), jwt, &claims, &err),
                     0);
    assert_str(claims.service_account, "robot");
    assert_str(claims.bound_kind, "Secret");
    assert_true(str_eq(claims.bound_uid, json_str_at(secret, "metadata.uid")));
    assert_true(claims.expires - world_now(W) > 50LL * 365 * 24 * 3600);

    world_delete(W, "serviceaccounts", "n", "robot", NULL);
    world_settle(W);
    assert_null(world_get(W, "secrets", "n", "t"));
}

static void token_without_an_account_goes(void **state)
{
    (void)state;
    world_create(W, "secrets", "n", TOKEN("nobody"));
    world_settle(W);
    assert_null(world_get(W, "secrets", "n", "t"));
}

/* ---- what is published ---- */

static void clients_ca_is_published(void **state)
{
    (void)state;
    static const char name[] = "extension-apiserver-authentication";
    struct str ca = pki_ca_pem(vapi_pki(world_api(W)));
    const cJSON *map = world_get(W, "configmaps", "kube-system", name);

    assert_true(str_eq(json_str(json_get(json_get(map, "data"), "client-ca-file")), ca));
    world_patch(W, "configmaps", "kube-system", name,
                "{'data':{'client-ca-file':'x','other':'y'}}");
    world_settle(W);
    map = world_get(W, "configmaps", "kube-system", name);
    assert_true(str_eq(json_str(json_get(json_get(map, "data"), "client-ca-file")), ca));
    assert_str(json_str(json_get(json_get(map, "data"), "other")), "y");
    world_delete(W, "configmaps", "kube-system", name, NULL);
    world_settle(W);
    assert_non_null(world_get(W, "configmaps", "kube-system", name));
}

static void front_proxys_ca_is_published(void **state)
{
    (void)state;
    static const char name[] = "extension-apiserver-authentication";
    static const char key[] = "requestheader-client-ca-file";
    const cJSON *map = world_get(W, "configmaps", "kube-system", name);
    struct str ca = json_str(json_get(json_get(map, "data"), key)), ours;

    assert_int_equal(pki_front_proxy_ca(vapi_pki(world_api(W)), world_arena(W), &ours, NULL), 0);
    assert_true(str_eq(ca, ours));
    assert_true(pki_certificate_end(ca) > world_now(W));
    assert_false(str_eq(ca, pki_ca_pem(vapi_pki(world_api(W)))));
    world_patch(W, "configmaps", "kube-system", name,
                "{'data':{'requestheader-client-ca-file':'x','requestheader-allowed-names':'[]'}}");
    world_settle(W);
    map = world_get(W, "configmaps", "kube-system", name);
    assert_true(str_eq(json_str(json_get(json_get(map, "data"), key)), ca));
    assert_str(json_str(json_get(json_get(map, "data"), "requestheader-allowed-names")),
               "[\"front-proxy-client\"]");
    assert_str(json_str(json_get(json_get(map, "data"), "requestheader-uid-headers")),
               "[\"X-Remote-Uid\"]");
}

static void since_when_old_tokens_are_counted(void **state)
{
    (void)state;
    static const char name[] = "kube-apiserver-legacy-service-account-token-tracking";
    struct str today = str_sub(time_format_s(world_arena(W), world_now(W)), 0, 10);
    const cJSON *map = world_get(W, "configmaps", "kube-system", name);

    assert_true(str_eq(json_str_at(map, "data.since"), today));
    world_patch(W, "configmaps", "kube-system", name, "{'data':{'since':'2020-02-03'}}");
    world_settle(W);
    assert_str(json_str_at(world_get(W, "configmaps", "kube-system", name), "data.since"),
               "2020-02-03");
    world_patch(W, "configmaps", "kube-system", name, "{'data':{'since':'2020-2-3'}}");
    world_settle(W);
    map = world_get(W, "configmaps", "kube-system", name);
    assert_true(str_eq(json_str_at(map, "data.since"), today));
}

/* ---- pods that no other controller removes ---- */

static void pods_of_a_lost_node_go(void **state)
{
    (void)state;
    world_node(W, "x", "{}");
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'p','finalizers':['example.com/look']},'spec':{'nodeName':"
                 "'x','containers':[{'name':'c','image':'i'}]}}");
    world_settle(W);
    world_delete(W, "nodes", "", "x", NULL);
    world_pass(W, 30);
    assert_null(json_path(world_get(W, "pods", "n", "p"), "metadata.deletionTimestamp"));
    world_pass(W, 20);
    const cJSON *pod = world_get(W, "pods", "n", "p");
    assert_str(json_str_at(pod, "status.phase"), "Failed");
    assert_string_equal(world_reason(W, pod, "DisruptionTarget"), "DeletionByPodGC");
    assert_non_null(json_path(pod, "metadata.deletionTimestamp"));
}

static void pods_of_a_node_that_came_back_stay(void **state)
{
    (void)state;
    world_node(W, "x", "{}");
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'p'},'spec':{'nodeName':'x',"
                 "'containers':[{'name':'c','image':'i'}]}}");
    world_settle(W);
    world_delete(W, "nodes", "", "x", NULL);
    world_pass(W, 10);
    world_node(W, "x", "{}");
    world_pass(W, 60);
    assert_str(json_str_at(world_get(W, "pods", "n", "p"), "status.phase"), "Running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(client_is_signed_when_approved),
        WORLD_TEST(masters_are_refused),
        WORLD_TEST(signer_has_rules),
        WORLD_TEST(node_approves_itself),
        WORLD_TEST(names_are_taken_over),
        WORLD_TEST(others_are_left_alone),
        WORLD_TEST(secret_is_filled_and_goes_with_its_account),
        WORLD_TEST(token_without_an_account_goes),
        WORLD_TEST(clients_ca_is_published),
        WORLD_TEST(front_proxys_ca_is_published),
        WORLD_TEST(since_when_old_tokens_are_counted),
        WORLD_TEST(pods_of_a_lost_node_go),
        WORLD_TEST(pods_of_a_node_that_came_back_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
