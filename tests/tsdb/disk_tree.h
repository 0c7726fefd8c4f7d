// The files and directories of a disk (disk.h): their state now, the durable part of it, and the
// rest that a power cut leaves. No locks; only adopt and restore touch the real directory.
#ifndef TESTS_TSDB_DISK_TREE_H
#define TESTS_TSDB_DISK_TREE_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

// A change of a file's content that is not synced.
struct disk_change {
	uint64_t at;
	std::string bytes;
	bool truncates; // the file ends at `at`
	bool lost; // its sync failed: no later one makes it durable
};

struct disk_node;

// A change of a directory that is not synced.
struct disk_step {
	enum kind { LINK, UNLINK, RENAME } kind;
	uint64_t number; // of all steps of the disk
	std::string name;
	disk_node *child;
	disk_node *from; // RENAME: the directory and name it had
	std::string from_name;
};

struct disk_node {
	bool is_dir;
	disk_node *parent;
	// a file
	std::string synced;
	uint64_t size; // now
	std::vector<disk_change> changes;
	// a directory
	std::map<std::string, disk_node *> now, durable;
	std::vector<disk_step> steps;
};

class disk_random
{
  public:
	explicit disk_random(uint64_t seed) : state_(seed) {}
	uint64_t below(uint64_t n); // [0, n)

  private:
	uint64_t state_;
};

class disk_tree
{
  public:
	explicit disk_tree(const char *dir);
	disk_node *find(const std::string &path); // nullptr: not there
	disk_node *parent_of(const std::string &path, std::string *name); // nullptr: not there
	disk_node *create(const std::string &path, bool is_dir);
	void unlink(const std::string &path);
	void rename(const std::string &from, const std::string &to);
	void write(disk_node *file, uint64_t at, const char *p, size_t n);
	void truncate(disk_node *file, uint64_t size);
	void sync(disk_node *file);
	void sync_failed(disk_node *file);
	void sync_dir(disk_node *dir);
	// Reads a real directory again, for changes made past the disk.
	void look_again(disk_node *dir);
	// The real directory gets what survives; then all that is there is durable.
	void restore(uint64_t seed);
	uint64_t bytes() const;
	std::string path_of(const disk_node *node) const;

  private:
	disk_node *make(bool is_dir, disk_node *parent);
	void adopt(disk_node *dir, const std::string &name);
	static void apply(disk_node *dir, const disk_step &s);
	static void settle(disk_node *dir, uint64_t up_to);
	static std::string content(const disk_node *file, disk_random *r);
	void put_back(disk_node *dir, const std::string &path, disk_random *r);
	void reset();

	std::string root_path_;
	std::vector<std::unique_ptr<disk_node>> all_;
	disk_node *root_ = nullptr;
	uint64_t steps_ = 0;
};

#endif
