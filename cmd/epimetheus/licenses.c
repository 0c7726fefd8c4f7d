#include "cmd/epimetheus/licenses.h"

struct license {
	const char *name, *license, *copyright, *use;
};

/* clang-format off */
static const struct license table[] = {
	{ "c-ares", "MIT", "the c-ares project and its contributors", "resolves names" },
	{ "Expat", "MIT",
		"Thai Open Source Software Center Ltd, Clark Cooper and the Expat maintainers",
		"reads XML" },
	{ "glibc", "LGPL-2.1-or-later", "Free Software Foundation, Inc. and others", "C library" },
	{ "GMP", "LGPL-3.0-or-later or GPL-2.0-or-later", "Free Software Foundation, Inc.",
		"numbers for TLS" },
	{ "GnuTLS", "LGPL-2.1-or-later", "Free Software Foundation, Inc. and others",
		"TLS of the server" },
	{ "jansson", "MIT", "Petri Lehtinen", "reads JSON" },
	{ "LevelDB", "BSD-3-Clause", "The LevelDB Authors", "storage" },
	{ "libcrypt (libxcrypt)", "LGPL-2.1-or-later", "Thorsten Kukuk, Björn Esser and others",
		"bcrypt" },
	{ "libdeflate", "MIT", "Eric Biggers", "inflates bodies" },
	{ "libevent", "BSD-3-Clause", "Niels Provos and Nick Mathewson", "event loop" },
	{ "libidn2", "LGPL-3.0-or-later or GPL-2.0-or-later", "Simon Josefsson", "used by GnuTLS" },
	{ "liblzma", "public domain", "Lasse Collin and others", "inflates MiniDebugInfo" },
	{ "libmicrohttpd", "LGPL-2.1-or-later", "Christian Grothoff and others", "HTTP server" },
	{ "libstdc++, libgcc", "GPL-3.0-or-later with GCC Runtime Library Exception",
		"Free Software Foundation, Inc.", "C++ runtime" },
	{ "libtasn1", "LGPL-2.1-or-later", "Free Software Foundation, Inc.", "used by GnuTLS" },
	{ "libunistring", "LGPL-3.0-or-later or GPL-2.0-or-later", "Free Software Foundation, Inc.",
		"used by GnuTLS" },
	{ "libyaml", "MIT", "Ingy döt Net and Kirill Simonov", "reads YAML" },
	{ "Nettle, Hogweed", "LGPL-3.0-or-later or GPL-2.0-or-later", "Niels Möller and others",
		"cryptography for GnuTLS" },
	{ "nghttp2", "MIT", "Tatsuhiro Tsujikawa and others", "HTTP/2 of the gRPC server" },
	{ "OpenSSL", "Apache-2.0", "The OpenSSL Project Authors", "TLS of the scraper" },
	{ "preact", "MIT", "Jason Miller", "the page" },
	{ "protobuf-c", "BSD-2-Clause", "Dave Benson and the protobuf-c authors", "messages" },
	{ "RE2", "BSD-3-Clause", "The RE2 Authors", "regular expressions" },
	{ "Snappy", "BSD-3-Clause", "Google Inc.", "used by LevelDB" },
	{ "uPlot", "MIT", "Leon Sorokin", "charts of the page" },
	{ "xxHash", "BSD-2-Clause", "Yann Collet", "hashes" },
	{ "zlib", "Zlib", "Jean-loup Gailly and Mark Adler", "compression" },
	{ "Zstandard", "BSD-3-Clause or GPL-2.0", "Meta Platforms, Inc. and affiliates",
		"compression" },
};
/* clang-format on */

void licenses_print(struct buf *out)
{
	buf_add_cstr(out,
		"Epimetheus is under the Apache License 2.0. Linked into it or embedded in its "
		"page:\n\n");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		buf_printf(out, "%-22s %s\n%-22s Copyright %s (%s)\n", table[i].name, table[i].license, "",
			table[i].copyright, table[i].use);
	buf_add_cstr(out,
		"\nThe full texts are in Debian's packages of these libraries, below "
		"/usr/share/doc,\n"
		"and in the npm packages of the page's.\n");
}
