/* SPDX-License-Identifier: Apache-2.0
 *
 * What libraries of libraries look for in a program. Why: Debian's libcurl brings GnuTLS along (for
 * LDAP and RTMP, which we never speak), and GnuTLS builds its tables when it is loaded, 130 KB in
 * every process, unless the program says otherwise. Must never be needed for anything to work. */

/* GnuTLS: GNUTLS_SKIP_GLOBAL_INIT, lib/includes/gnutls/gnutls.h. */
int _gnutls_global_init_skip(void);
__attribute__((visibility("default"), used)) int _gnutls_global_init_skip(void)
{
    return 1;
}
