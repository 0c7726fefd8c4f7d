/*
 * fuzz: web
 * A web configuration of any bytes is refused with a message, or keeps what its readers rely on:
 * versions in order, hashes that can be verified, names of headers that exist, roles of each user.
 */
#include <assert.h>

#include "tests/fuzz/fuzz.h"
#include "web/http/config_file.h"
#include "web/http/users.h"

static void check_users(const struct yaml_list *l)
{
	const struct rights_entry *v = l->v;

	for (size_t i = 0; i < l->n; i++) {
		assert(v[i].name.len && v[i].roles && !(v[i].roles & ~(unsigned)ROLES_ALL));
		assert(!v[i].set.n || v[i].roles & ROLE_READ);
		assert(!(v[i].roles & ROLE_ADMIN) || v[i].roles == ROLES_ALL);
		assert(rights_find(l, v[i].name) == &v[i]);
	}
}

static void check(const struct web_file *f)
{
	if (f->has_tls) {
		assert(f->tls.cert_file.len && f->tls.key_file.len);
		assert(f->tls.min >= 0 && f->tls.min <= f->tls.max && f->tls.max <= 3);
		assert(!tls_client_auth_verifies(f->tls.auth) || f->tls.client_ca_file.len);
	}
	for (size_t i = 0; i < f->users.n; i++)
		assert(!users_check_hash(f->users.v[i].value, NULL));
	check_users(&f->rights.users);
	check_users(&f->rights.proxy.users);
	check_users(&f->rights.proxy.groups);
	for (size_t i = 0; i < f->users.n && f->rights.has_users; i++)
		assert(rights_find(&f->rights.users, f->users.v[i].name));
	assert(!f->rights.has_proxy || (f->rights.proxy.networks_n && f->rights.proxy.user_header.len));
	for (size_t i = 0; i < f->http.headers.n; i++)
		assert(web_file_header(f->http.headers.v[i].name)[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct web_file f = { 0 };
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 64u << 20);
	if (web_file_decode(&a, "web.yml", (struct str){ (const char *)data, size }, &f, &err))
		assert(err.msg[0]);
	else
		check(&f);
	web_file_release(&f);
	arena_release(&a);
	return 0;
}
