/* bcrypt hashes for the tests' users. */
#ifndef TESTS_WEB_BCRYPT_H
#define TESTS_WEB_BCRYPT_H

#include <crypt.h>
#include <stdio.h>
#include <stdlib.h>

#define SALT "$2b$04$abcdefghijklmnopqrstuu" /* the least cost there is */

/* Stands until the next call. */
static inline const char *hash_of(const char *password, const char *setting)
{
	static char hash[100];
	struct crypt_data *data = calloc(1, sizeof(*data));

	snprintf(hash, sizeof(hash), "%s", crypt_r(password, setting, data));
	free(data);
	return hash;
}

#endif
