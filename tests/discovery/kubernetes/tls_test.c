/* A cluster behind TLS, reached as a kubeconfig says: its CA and the user's certificate inline. */
#include <event2/event.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "discovery/kubernetes/cluster.h"
#include "discovery/kubernetes/watch_internal.h"
#include "tests/base/net/http_server.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"
#include "tests/wait.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#define POD "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"6\"}}"

static struct identity ca, stranger, leaf, person;
static struct http_server server;
static struct client client;
static struct arena arena;
static struct buf heard;

static void changed(void *ctx, const struct kube_watch *w, struct str key, const json_t *object)
{
	buf_printf(&heard, "+" STR_FMT "\n", STR_ARG(key));
	event_base_loopbreak(client.base);
}

static void synced(void *ctx, const struct kube_watch *w)
{
	buf_add_cstr(&heard, "synced\n");
}

static void failed(void *ctx, const struct kube_watch *w, const struct err *why)
{
	buf_printf(&heard, "failed: %s\n", why->msg);
	event_base_loopbreak(client.base);
}

/* A list that is empty, then a stream with one pod. */
static void script(struct peer *p, void *ctx)
{
	static const char list[] = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}";
	static const char event[] = "{\"type\":\"ADDED\",\"object\":" POD "}\n";
	char text[512];

	while (peer_read_request(p)) {
		if (str_find(buf_str(&p->request), STR("watch=1")) < 0)
			snprintf(
				text, sizeof(text), HEAD "Content-Length: %zu\r\n\r\n%s", sizeof(list) - 1, list);
		else
			snprintf(text, sizeof(text), HEAD "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n",
				sizeof(event) - 1, event);
		if (!peer_print(p, text))
			return;
	}
}

/* In base64. */
static const char *data(const struct identity *id, bool key)
{
	struct str pem = identity_pem(&arena, id, key);
	unsigned char *to = arena_alloc(&arena, pem.len * 2);

	EVP_EncodeBlock(to, (const unsigned char *)pem.ptr, (int)pem.len);
	return (const char *)to;
}

static void listen_to(const char *kubeconfig, const char *want)
{
	const struct kube_watch_key key = { KUBE_PODS, STR(""), STR(""), STR("") };
	struct kube_listener listener = { changed, synced, failed, NULL, NULL };
	struct timeval tv = { WAIT_NS / NS_PER_S, 0 };
	struct kube_clusters *clusters;
	struct kube_access access;
	struct kube_watch *w;
	struct err err;

	REQUIRE(client_open(&client, 0, NULL));
	REQUIRE_OK(kubeconfig_parse(&arena, "config", str_of(kubeconfig), &access, &err), &err);
	REQUIRE_OK(kube_clusters_open(client.base, client.http, &clusters, &err), &err);
	REQUIRE_OK(kube_watch_acquire(clusters, &access, &key, &listener, &w, &err), &err);
	event_base_loopexit(client.base, &tv);
	event_base_dispatch(client.base);
	CHECK_STR(buf_str(&heard), want);
	buf_clear(&heard);
	kube_watch_release(w, &listener);
	kube_clusters_close(clusters);
	client_close(&client);
}

static const char *kubeconfig(const struct identity *server_ca, const struct identity *user)
{
	const char *users = "[{name: u}]";

	if (user)
		users = arena_printf(&arena,
			"[{name: u, user: {client-certificate-data: %s, "
			"client-key-data: %s}}]",
			data(user, false), data(user, true));
	return arena_printf(&arena,
		"current-context: c\n"
		"contexts: [{name: c, context: {cluster: k, user: u}}]\n"
		"clusters: [{name: k, cluster: {server: 'https://127.0.0.1:%u', "
		"certificate-authority-data: %s}}]\nusers: %s\n",
		server.port, data(server_ca, false), users);
}

TEST(certificates_of_a_kubeconfig)
{
	SSL_CTX *tls;

	arena_init(&arena, 0);
	REQUIRE(identity_make(&ca, "test CA", NULL, NULL) &&
		identity_make(&stranger, "another CA", NULL, NULL) &&
		identity_make(&leaf, "server", &ca, "IP:127.0.0.1") &&
		identity_make(&person, "client", &ca, "DNS:client"));
	tls = identity_server(&leaf, &ca);
	REQUIRE(http_server_start(&server, script, NULL, tls));
	listen_to(kubeconfig(&ca, &person), "synced\n+n/a\n");
	listen_to(kubeconfig(&ca, NULL),
		arena_printf(&arena,
			"failed: list pods: tls 127.0.0.1:%u: "
			"tlsv13 alert certificate required\n",
			server.port));
	listen_to(kubeconfig(&stranger, &person),
		arena_printf(&arena,
			"failed: list pods: tls "
			"127.0.0.1:%u: certificate verify failed: self-signed certificate in certificate "
			"chain\n",
			server.port));
	http_server_stop(&server);
	SSL_CTX_free(tls);
	identity_release(&ca);
	identity_release(&stranger);
	identity_release(&leaf);
	identity_release(&person);
	buf_release(&heard);
	arena_release(&arena);
}
