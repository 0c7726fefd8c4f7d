/*
 * IP networks: "10.0.0.0/8", "fd00::/8", or an address alone.
 *
 * An IPv4 address and the same one mapped into IPv6 (::ffff:10.0.0.1) are equal. A network of one
 * family holds no address of the other.
 *
 * Threads: values.
 */
#ifndef BASE_NET_IP_NETWORK_H
#define BASE_NET_IP_NETWORK_H

#include <netinet/in.h>

#include "base/str.h"

struct ip_network {
	struct in6_addr address; /* bits behind the prefix are 0 */
	unsigned bits; /* of the mapped form: an IPv4 /8 has 104 */
};

/* IPv4 addresses become those mapped into IPv6. False: no address. */
bool ip_address_parse(struct str text, struct in6_addr *out);
bool ip_address_is_v4(const struct in6_addr *a);
/* ADDRESS/BITS; false: it is none. */
bool ip_network_parse(struct str text, struct ip_network *out);
bool ip_network_has(const struct ip_network *n, struct in6_addr address);

#endif
