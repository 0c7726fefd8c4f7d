/*
 * Addresses of IPv6 without the brackets that a URL needs: 2001:db8::1, ::1:25024.
 *
 * Ownership: none.
 * Threads:   values.
 */
#ifndef BASE_NET_BARE_IPV6_H
#define BASE_NET_BARE_IPV6_H

#include "base/str.h"

/*
 * Whether the address is one, with or without a port behind it. Adds what to write to `out`:
 * "[::1]:25024". Where it can be meant both ways, both: "[2001:db8::1]:80 or [2001:db8::1:80]".
 */
bool bare_ipv6(struct str address, struct buf *out);

#endif
