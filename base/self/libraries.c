#include "base/self/libraries.h"

#include <string.h>

#include "base/metrics.h"
#include "base/version.h"

/* clang-format off */
const struct library libraries[] = {
	{ "c-ares", "libc-ares-dev", "MIT",
		"the c-ares project and its contributors", "resolves names" },
	{ "Expat", "libexpat1-dev", "MIT",
		"Thai Open Source Software Center Ltd, Clark Cooper and the Expat maintainers",
		"reads XML" },
	{ "glibc", "libc6-dev", "LGPL-2.1-or-later",
		"Free Software Foundation, Inc. and others", "C library" },
	{ "GMP", "libgmp-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later",
		"Free Software Foundation, Inc.", "numbers for TLS" },
	{ "GnuTLS", "libgnutls28-dev", "LGPL-2.1-or-later",
		"Free Software Foundation, Inc. and others", "TLS of servers" },
	{ "jansson", "libjansson-dev", "MIT", "Petri Lehtinen", "reads JSON" },
	{ "LevelDB", "libleveldb-dev", "BSD-3-Clause", "The LevelDB Authors", "storage" },
	{ "libcrypt (libxcrypt)", "libcrypt-dev", "LGPL-2.1-or-later",
		"Thorsten Kukuk, Björn Esser and others", "bcrypt" },
	{ "libdeflate", "libdeflate-dev", "MIT", "Eric Biggers", "inflates bodies" },
	{ "libevent", "libevent-dev", "BSD-3-Clause", "Niels Provos and Nick Mathewson", "event loop" },
	{ "libidn2", "libidn2-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later",
		"Simon Josefsson", "used by GnuTLS" },
	{ "liblzma", "liblzma-dev", "public domain",
		"Lasse Collin and others", "inflates MiniDebugInfo" },
	{ "libmicrohttpd", "libmicrohttpd-dev", "LGPL-2.1-or-later",
		"Christian Grothoff and others", "HTTP server" },
	{ "libstdc++, libgcc", "libstdc++-dev", "GPL-3.0-or-later WITH GCC-exception-3.1",
		"Free Software Foundation, Inc.", "C++ runtime" },
	{ "libtasn1", "libtasn1-6-dev", "LGPL-2.1-or-later",
		"Free Software Foundation, Inc.", "used by GnuTLS" },
	{ "libunistring", "libunistring-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later",
		"Free Software Foundation, Inc.", "used by GnuTLS" },
	{ "libyaml", "libyaml-dev", "MIT", "Ingy döt Net and Kirill Simonov", "reads YAML" },
	{ "LZ4", "liblz4-dev", "BSD-2-Clause", "Yann Collet", "inflates bodies" },
	{ "Nettle, Hogweed", "nettle-dev", "LGPL-3.0-or-later OR GPL-2.0-or-later",
		"Niels Möller and others", "cryptography for GnuTLS" },
	{ "nghttp2", "libnghttp2-dev", "MIT",
		"Tatsuhiro Tsujikawa and others", "HTTP/2 of the gRPC server" },
	{ "OpenSSL", "libssl-dev", "Apache-2.0", "The OpenSSL Project Authors", "TLS of clients" },
	{ "preact", NULL, "MIT", "Jason Miller", "the page" },
	{ "protobuf-c", "libprotobuf-c-dev", "BSD-2-Clause",
		"Dave Benson and the protobuf-c authors", "messages" },
	{ "RE2", "libre2-dev", "BSD-3-Clause", "The RE2 Authors", "regular expressions" },
	{ "Snappy", "libsnappy-dev", "BSD-3-Clause", "Google Inc.", "used by LevelDB" },
	{ "uPlot", NULL, "MIT", "Leon Sorokin", "charts of the page" },
	{ "xxHash", "libxxhash-dev", "BSD-2-Clause", "Yann Collet", "hashes" },
	{ "zlib", "zlib1g-dev", "Zlib", "Jean-loup Gailly and Mark Adler", "compression" },
	{ "Zstandard", "libzstd-dev", "BSD-3-Clause OR GPL-2.0-only",
		"Meta Platforms, Inc. and affiliates", "compression" },
};
/* clang-format on */
const size_t libraries_n = sizeof(libraries) / sizeof(libraries[0]);

const char *library_version(const struct library *l)
{
	for (size_t i = 0; l->package && i < library_packages_n; i++)
		if (!strcmp(library_packages[i].name, l->package))
			return library_packages[i].version;
	return NULL;
}

/* ---- metrics ---- */

static bool library_build_labels(size_t i, struct metric_label labels[METRIC_INFO_LABELS_MAX])
{
	labels[0] = (struct metric_label){ "version", EPI_VERSION };
	labels[1] = (struct metric_label){ "revision", build_revision };
	return i == 0;
}

METRIC_INFO(build_info, "epimetheus_build_info", "Version and revision of this program.",
	library_build_labels);

static bool library_labels(size_t i, struct metric_label labels[METRIC_INFO_LABELS_MAX])
{
	const struct library *l = libraries;

	for (; l < libraries + libraries_n && (!library_version(l) || i-- > 0); l++)
		;
	if (l == libraries + libraries_n)
		return false;
	labels[0] = (struct metric_label){ "library", l->name };
	labels[1] = (struct metric_label){ "package", l->package };
	labels[2] = (struct metric_label){ "version", library_version(l) };
	return true;
}

METRIC_INFO(library_info, "epimetheus_library_info",
	"Libraries that are linked into this program, with Debian's package and its version.",
	library_labels);

/* ---- as text ---- */

void libraries_print_versions(struct buf *out, const char *program)
{
	buf_printf(out, "%s, version %s", program, EPI_VERSION);
	if (build_revision[0])
		buf_printf(
			out, " (revision %s%s%s)", build_revision, build_date[0] ? ", " : "", build_date);
	buf_add_char(out, '\n');
	for (size_t i = 0; i < libraries_n; i++)
		if (library_version(&libraries[i]))
			buf_printf(out, "  %-22s %s\n", libraries[i].name, library_version(&libraries[i]));
}

void libraries_print_licenses(struct buf *out)
{
	buf_add_cstr(out,
		"Epimetheus is under the Apache License 2.0. Linked into it or embedded in its "
		"page:\n\n");
	for (size_t i = 0; i < libraries_n; i++)
		buf_printf(out, "%-22s %s\n%-22s Copyright %s (%s)\n", libraries[i].name,
			libraries[i].license, "", libraries[i].copyright, libraries[i].use);
	buf_add_cstr(out,
		"\nThe full texts are in Debian's packages of these libraries, below "
		"/usr/share/doc,\n"
		"and in the npm packages of the page's.\n");
}
