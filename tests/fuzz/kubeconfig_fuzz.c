/*
 * fuzz: discovery
 *
 * Any bytes as a kubeconfig: no crash, and what is made of it has a server and an identity.
 */
#include "discovery/kubernetes/cluster.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct kube_access access;
	struct arena a;
	struct err err;

	arena_init(&a, 64u << 20);
	if (!kubeconfig_parse(&a, "d/config", text, &access, &err)) {
		const struct http_config *h = &access.http;

		if (!str_has_prefix(access.server, STR("http")) || access.identity.len != 64 ||
				(h->has_basic_auth && h->has_authorization) ||
				(h->tls_cert.len && h->tls_cert_file.len) ||
				(h->tls_key.len && h->tls_key_file.len))
			abort();
	}
	arena_release(&a);
	return 0;
}
