#include "base/net/ip_network.h"

#include <arpa/inet.h>

bool ip_address_parse(struct str text, struct in6_addr *out)
{
	char copy[INET6_ADDRSTRLEN + 1];
	struct in_addr in;

	if (text.len >= sizeof(copy))
		return false;
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	if (inet_pton(AF_INET6, copy, out) == 1)
		return strlen(copy) == text.len;
	if (inet_pton(AF_INET, copy, &in) != 1 || strlen(copy) != text.len)
		return false;
	memset(out, 0, sizeof(*out));
	memset(&out->s6_addr[10], 0xff, 2);
	memcpy(&out->s6_addr[12], &in, sizeof(in));
	return true;
}

bool ip_address_is_v4(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a);
}

static void ip_address_keep_bits(struct in6_addr *a, unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		if (bits < 8)
			a->s6_addr[i] &= (uint8_t)(0xff00u >> bits);
		bits = bits > 8 ? bits - 8 : 0;
	}
}

bool ip_network_parse(struct str text, struct ip_network *out)
{
	const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
	size_t at = slash ? (size_t)(slash - text.ptr) : 0;
	uint64_t n, max;

	if (!slash || !ip_address_parse((struct str){ text.ptr, at }, &out->address))
		return false;
	max = memchr(text.ptr, ':', at) ? 128 : 32;
	if (!str_to_u64((struct str){ slash + 1, text.len - at - 1 }, &n) || n > max)
		return false;
	out->bits = (unsigned)n + (max == 32 ? 96 : 0);
	ip_address_keep_bits(&out->address, out->bits);
	return true;
}

bool ip_network_has(const struct ip_network *n, struct in6_addr address)
{
	bool v4 = ip_address_is_v4(&n->address);

	if (v4 != ip_address_is_v4(&address))
		return false;
	ip_address_keep_bits(&address, v4 && n->bits < 96 ? 96 : n->bits);
	return memcmp(&n->address, &address, sizeof(address)) == 0;
}
