/*
 * Tables of a store against its MANIFEST.
 *
 * MANIFEST has the size and the first and last key of each table, with their sequence numbers,
 * which no other table of the store has. LevelDB shows what it read of it in its property
 * "leveldb.sstables", a line " number:size['first' @ sequence : type .. 'last' @ sequence : type]"
 * per table; here that line is made of the table itself.
 */
extern "C" {
#include "tsdb/store/store.h"
}

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>

/* LevelDB's C interface hands an Env over in this. */
struct leveldb_env_t {
	leveldb::Env *rep;
	bool is_default;
};

namespace
{

/* As LevelDB's EscapeString. */
void store_tables_add_escaped(std::string *out, const leveldb::Slice &text)
{
	char hex[8];

	for (size_t i = 0; i < text.size(); i++) {
		if (text[i] >= ' ' && text[i] <= '~') {
			out->push_back(text[i]);
			continue;
		}
		snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)text[i]);
		out->append(hex);
	}
}

/* An internal key: the key, then 8 bytes little-endian of sequence x 256 + type. */
bool store_tables_add_key(std::string *out, const leveldb::Slice &key)
{
	uint64_t tail = 0;
	char text[64];

	if (key.size() < 8)
		return false;
	for (size_t i = 0; i < 8; i++)
		tail |= (uint64_t)(unsigned char)key[key.size() - 8 + i] << (8 * i);
	out->push_back('\'');
	store_tables_add_escaped(out, leveldb::Slice(key.data(), key.size() - 8));
	snprintf(text, sizeof(text), "' @ %" PRIu64 " : %d", tail >> 8, (int)(tail & 255));
	out->append(text);
	return true;
}

/* A page at either end that cannot be read does not identify the table. */
leveldb::Status store_tables_describe(leveldb::Env *env, const std::string &path,
	std::string *first, std::string *last, uint64_t *size)
{
	leveldb::RandomAccessFile *file = nullptr;
	leveldb::Table *table = nullptr;
	leveldb::ReadOptions read;
	leveldb::Options options;
	leveldb::Status s = env->GetFileSize(path, size);

	if (s.ok())
		s = env->NewRandomAccessFile(path, &file);
	const std::unique_ptr<leveldb::RandomAccessFile> owned_file(file);
	options.env = env;
	options.paranoid_checks = true;
	if (s.ok())
		s = leveldb::Table::Open(options, file, *size, &table);
	if (!s.ok())
		return s;
	const std::unique_ptr<leveldb::Table> owned_table(table);
	read.verify_checksums = true;
	read.fill_cache = false;
	std::unique_ptr<leveldb::Iterator> it(table->NewIterator(read));
	it->SeekToFirst();
	if (it->status().ok() && (!it->Valid() || !store_tables_add_key(first, it->key())))
		return leveldb::Status::Corruption("no first key");
	it.reset(table->NewIterator(read));
	it->SeekToLast();
	if (it->status().ok() && (!it->Valid() || !store_tables_add_key(last, it->key())))
		return leveldb::Status::Corruption("no last key");
	return leveldb::Status::OK();
}

/* line: from the number to the closing bracket. */
enum err_code store_tables_check_one(
	leveldb::Env *env, const std::string &dir, const std::string &line, struct err *err)
{
	unsigned long long number = 0, bytes = 0;
	std::string first, last, path;
	uint64_t size = 0;
	char name[40];

	if (sscanf(line.c_str(), "%llu:%llu[", &number, &bytes) != 2)
		return ERR_OK;
	snprintf(name, sizeof(name), "/%06llu.ldb", number);
	path = dir + name;
	if (!env->FileExists(path))
		return ERR_OK; /* LevelDB says so itself when it opens */
	const leveldb::Status s = store_tables_describe(env, path, &first, &last, &size);
	if (!s.ok())
		return err_set(
			err, ERR_CORRUPT, "store %s: %s: %s", dir.c_str(), name + 1, s.ToString().c_str());
	const std::string head = line.substr(0, line.find('[') + 1);
	const std::string tail = last + "]";
	const bool same = size == bytes &&
		(first.empty() ||
			line.compare(0, head.size() + first.size() + 4, head + first + " .. ") == 0) &&
		(last.empty() ||
			(line.size() >= tail.size() &&
				line.compare(line.size() - tail.size(), tail.size(), tail) == 0));
	return same ? ERR_OK :
				  err_set(err, ERR_CORRUPT, "store %s: %s is another table", dir.c_str(), name + 1);
}

} // namespace

enum err_code store_check_tables(struct store *s, struct err *err)
{
	leveldb::Env *env = static_cast<leveldb_env_t *>(store_env())->rep;
	char *property = store_property(s, "leveldb.sstables");
	std::string text = property ? property : "";
	size_t at = 0, end = 0;
	enum err_code rc = ERR_OK;

	free(property);
	for (; at < text.size() && rc == ERR_OK; at = end + 1) {
		end = text.find('\n', at);
		if (end == std::string::npos)
			end = text.size();
		if (text[at] == ' ')
			rc = store_tables_check_one(env, store_dir(s), text.substr(at + 1, end - at - 1), err);
	}
	return rc;
}
