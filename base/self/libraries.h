/*
 * Libraries: all code of others that is linked into the programs or embedded in the page, with its
 * licence; and what this build took: its commit, and the versions of Debian's packages.
 *
 * Threads: constants.
 * Source:  the Makefile names the packages, packages.sh writes their versions (library_packages).
 */
#ifndef BASE_SELF_LIBRARIES_H
#define BASE_SELF_LIBRARIES_H

#include "base/str.h"

struct library {
	const char *name;
	const char *package; /* Debian's; NULL: of the page, from npm */
	const char *license; /* an SPDX expression, or "public domain" */
	const char *copyright, *use;
};
extern const struct library libraries[];
extern const size_t libraries_n;

struct library_package {
	const char *name, *version; /* "unknown": it was not installed as a package */
};
extern const struct library_package library_packages[];
extern const size_t library_packages_n;

extern const char build_revision[]; /* "": not known; "-dirty" behind it: files differ from it */
extern const char build_date[]; /* of the commit, so that builds are reproducible; RFC 3339 or "" */

/* Of its package; NULL: it has none. */
const char *library_version(const struct library *l);

/* The program with its version and revision, and a line for each library with a package. */
void libraries_print_versions(struct buf *out, const char *program);
void libraries_print_licenses(struct buf *out);

#endif
