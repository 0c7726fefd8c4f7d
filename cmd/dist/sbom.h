/*
 * Bill of materials of both programs: what is linked into them or embedded in the page, with
 * versions and licences, as SPDX and as CycloneDX. It has no time and no number of its own, so the
 * same build gives the same bytes.
 *
 * Errors:    ERR_INVALID: a lock file that is no JSON, or lacks a library of the page; ERR_NOMEM.
 * Ownership: sbom_release frees what sbom_collect made; libraries are constants.
 * Threads:   values.
 * Source:    base/self/libraries.h; SPDX 2.3 (spdx.github.io/spdx-spec/v2.3); CycloneDX 1.5
 *            (cyclonedx.org/docs/1.5/json); package-url/purl-spec.
 */
#ifndef CMD_DIST_SBOM_H
#define CMD_DIST_SBOM_H

#include "base/err.h"
#include "base/self/libraries.h"

#define SBOM_LICENSE "Apache-2.0" /* of the programs themselves */
#define SBOM_COPYRIGHT "The Epimetheus Authors"

/* An SPDX document names each licence that SPDX's list lacks. */
#define SBOM_PUBLIC_DOMAIN "LicenseRef-public-domain"

struct sbom_component {
	const struct library *library;
	const char *license; /* an SPDX expression */
	char version[64];
	char purl[192]; /* pkg:deb/debian/libssl-dev@3.0.19?arch=amd64&distro=debian-12 */
	char id[80]; /* "deb-libssl-dev": letters, digits, dots and hyphens */
};

struct sbom {
	struct sbom_component *components;
	size_t n;
};

/* architecture: "amd64"; distribution: "debian-12"; lock: the page's package-lock.json. */
MUST_CHECK enum err_code sbom_collect(struct sbom *out, const char *architecture,
	const char *distribution, struct str lock, struct err *err);
void sbom_release(struct sbom *s);

void sbom_write_spdx(struct buf *out, const struct sbom *s);
void sbom_write_cyclonedx(struct buf *out, const struct sbom *s);

#endif
