#include "cmd/dist/sbom.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/net/percent.h"

static void sbom_add_id(struct sbom_component *c, const char *kind, const char *package)
{
	snprintf(c->id, sizeof(c->id), "%s-%s", kind, package);
	for (char *p = c->id; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-')
			*p = '.';
}

static void sbom_encode(char *out, size_t size, const char *text)
{
	struct buf encoded = { 0 };

	percent_encode(&encoded, str_of(text), PERCENT_VALUE);
	snprintf(out, size, STR_FMT, STR_ARG(buf_str(&encoded)));
	buf_release(&encoded);
}

static void sbom_add_debian(
	struct sbom_component *c, const char *architecture, const char *distribution)
{
	char package[64], name[80], version[80];
	const char *package_of = c->library->package;
	size_t distribution_name = strcspn(distribution, "-");

	snprintf(c->version, sizeof(c->version), "%s", library_version(c->library));
	sbom_add_id(c, "deb", package_of);
	/* packages.sh takes the compiler's version out of this name. */
	if (!strcmp(package_of, "libstdc++-dev"))
		snprintf(package, sizeof(package), "libstdc++-%d-dev", (int)strtol(c->version, NULL, 10));
	else
		snprintf(package, sizeof(package), "%s", package_of);
	sbom_encode(name, sizeof(name), package);
	sbom_encode(version, sizeof(version), c->version);
	snprintf(c->purl, sizeof(c->purl), "pkg:deb/%.*s/%s@%s?arch=%s&distro=%s",
		(int)distribution_name, distribution, name, version, architecture, distribution);
}

/* "preact" and "uPlot": npm's names are in lower case. */
static enum err_code sbom_add_npm(struct sbom_component *c, json_t *lock, struct err *err)
{
	char key[64];
	const char *version;

	snprintf(key, sizeof(key), "node_modules/%s", c->library->name);
	for (char *p = key; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	version = json_string_value(
		json_object_get(json_object_get(json_object_get(lock, "packages"), key), "version"));
	if (!version)
		return err_set(err, ERR_INVALID, "package-lock.json: no version of %s", key);
	snprintf(c->version, sizeof(c->version), "%s", version);
	sbom_add_id(c, "npm", strchr(key, '/') + 1);
	snprintf(c->purl, sizeof(c->purl), "pkg:npm/%s@%s", strchr(key, '/') + 1, version);
	return ERR_OK;
}

enum err_code sbom_collect(struct sbom *out, const char *architecture, const char *distribution,
	struct str lock, struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(lock.len ? lock.ptr : "", lock.len, JSON_REJECT_DUPLICATES, &why);
	enum err_code rc = ERR_OK;

	*out = (struct sbom){ 0 };
	if (!root)
		return err_set(err, ERR_INVALID, "package-lock.json:%d: %s", why.line, why.text);
	out->components = calloc(libraries_n, sizeof(out->components[0]));
	if (!out->components)
		rc = err_nomem(err, "bill of materials");
	for (; !rc && out->n < libraries_n; out->n++) {
		struct sbom_component *c = &out->components[out->n];

		c->library = &libraries[out->n];
		c->license = strcmp(c->library->license, "public domain") ? c->library->license :
																	SBOM_PUBLIC_DOMAIN;
		if (c->library->package)
			sbom_add_debian(c, architecture, distribution);
		else
			rc = sbom_add_npm(c, root, err);
	}
	json_decref(root);
	if (rc)
		sbom_release(out);
	return rc;
}

void sbom_release(struct sbom *s)
{
	free(s->components);
	*s = (struct sbom){ 0 };
}
