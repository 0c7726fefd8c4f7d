#include "tests/tsdb/disk_tree.h"

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512u

uint64_t disk_random::below(uint64_t n)
{
	uint64_t v = state_ += UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (v ^ (v >> 31)) % n;
}

// ---- the real directory ----

[[noreturn]] static void broken(const char *what, const std::string &path)
{
	fprintf(stderr, "disk: %s %s: %m\n", what, path.c_str());
	abort();
}

static std::vector<std::string> names_in(const std::string &path)
{
	std::vector<std::string> out;
	DIR *d = opendir(path.c_str());

	if (!d)
		broken("list", path);
	while (const struct dirent *e = readdir(d)) {
		std::string name = e->d_name;

		if (name != "." && name != "..")
			out.push_back(name);
	}
	closedir(d);
	return out;
}

static bool is_dir(const std::string &path)
{
	struct stat st;

	return lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

static bool read_file(const std::string &path, std::string *out)
{
	FILE *f = fopen(path.c_str(), "re");
	char piece[65536];
	size_t n;

	out->clear();
	if (!f)
		return false;
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		out->append(piece, n);
	fclose(f);
	return true;
}

static void write_file(const std::string &path, const std::string &content)
{
	FILE *f = fopen(path.c_str(), "we");

	if (!f || fwrite(content.data(), 1, content.size(), f) != content.size() || fclose(f))
		broken("write", path);
}

static void remove_all(const std::string &path)
{
	if (!is_dir(path)) {
		if (unlink(path.c_str()))
			broken("remove", path);
		return;
	}
	for (const std::string &name : names_in(path))
		remove_all(path + "/" + name);
	if (rmdir(path.c_str()))
		broken("remove", path);
}

// ---- nodes ----

disk_tree::disk_tree(const char *dir) : root_path_(dir)
{
	reset();
}

void disk_tree::reset()
{
	all_.clear();
	root_ = make(true, nullptr);
	look_again(root_);
}

// Nodes live as long as the tree: steps that are not durable yet may speak of any.
disk_node *disk_tree::make(bool is_directory, disk_node *parent)
{
	all_.push_back(std::make_unique<disk_node>());
	all_.back()->is_dir = is_directory;
	all_.back()->parent = parent;
	return all_.back().get();
}

std::string disk_tree::path_of(const disk_node *node) const
{
	if (!node->parent)
		return root_path_;
	for (const auto &e : node->parent->now)
		if (e.second == node)
			return path_of(node->parent) + "/" + e.first;
	return path_of(node->parent) + "/(removed)";
}

void disk_tree::adopt(disk_node *dir, const std::string &name)
{
	std::string path = path_of(dir) + "/" + name;
	disk_node *node = make(is_dir(path), dir);

	dir->now[name] = dir->durable[name] = node;
	if (node->is_dir) {
		look_again(node);
	} else if (read_file(path, &node->synced)) {
		node->size = node->synced.size();
	}
}

void disk_tree::look_again(disk_node *dir)
{
	std::string path = path_of(dir), child_path;
	std::map<std::string, disk_node *> before = dir->now;
	struct stat st;

	for (const std::string &name : names_in(path)) {
		auto at = before.find(name);

		child_path = path + "/" + name;
		if (at == before.end()) {
			adopt(dir, name);
			continue;
		}
		if (at->second->is_dir)
			look_again(at->second);
		else if (lstat(child_path.c_str(), &st) == 0 && (uint64_t)st.st_size != at->second->size)
			adopt(dir, name);
		before.erase(at);
	}
	for (const auto &gone : before) {
		dir->now.erase(gone.first);
		dir->durable.erase(gone.first);
	}
}

disk_node *disk_tree::parent_of(const std::string &path, std::string *name)
{
	disk_node *dir = root_;
	size_t at = root_path_.size(), end;

	if (path.compare(0, at, root_path_) != 0)
		return nullptr;
	name->clear();
	for (; at < path.size(); at = end) {
		while (at < path.size() && path[at] == '/')
			at++;
		if ((end = path.find('/', at)) == std::string::npos)
			end = path.size();
		if (at == end)
			break;
		if (!name->empty()) {
			auto child = dir->now.find(*name);

			if (child == dir->now.end() || !child->second->is_dir)
				return nullptr;
			dir = child->second;
		}
		*name = path.substr(at, end - at);
	}
	return dir;
}

disk_node *disk_tree::find(const std::string &path)
{
	std::string name;
	disk_node *dir = parent_of(path, &name);

	if (!dir || name.empty())
		return dir;
	auto at = dir->now.find(name);
	return at == dir->now.end() ? nullptr : at->second;
}

// ---- operations: what is so now, and the step that is not durable yet ----

disk_node *disk_tree::create(const std::string &path, bool is_directory)
{
	std::string name;
	disk_node *dir = parent_of(path, &name), *child;

	if (!dir)
		return nullptr;
	child = make(is_directory, dir);
	dir->now[name] = child;
	dir->steps.push_back({ disk_step::LINK, ++steps_, name, child, nullptr, "" });
	return child;
}

void disk_tree::unlink(const std::string &path)
{
	std::string name;
	disk_node *dir = parent_of(path, &name), *child = find(path);

	if (!child)
		return;
	dir->now.erase(name);
	dir->steps.push_back({ disk_step::UNLINK, ++steps_, name, child, nullptr, "" });
}

void disk_tree::rename(const std::string &from, const std::string &to)
{
	std::string from_name, to_name;
	disk_node *from_dir = parent_of(from, &from_name), *child = find(from),
			  *to_dir = parent_of(to, &to_name);

	if (!child || !to_dir)
		return;
	from_dir->now.erase(from_name);
	to_dir->now[to_name] = child;
	child->parent = to_dir;
	to_dir->steps.push_back({ disk_step::RENAME, ++steps_, to_name, child, from_dir, from_name });
}

void disk_tree::write(disk_node *file, uint64_t at, const char *p, size_t n)
{
	if (!n)
		return;
	file->changes.push_back({ at, std::string(p, n), false, false });
	if (file->size < at + n)
		file->size = at + n;
}

void disk_tree::truncate(disk_node *file, uint64_t size)
{
	if (file->size == size)
		return;
	file->changes.push_back({ size, "", true, false });
	file->size = size;
}

static void change(std::string *content, const disk_change &c)
{
	if (c.truncates)
		content->resize(c.at);
	else if (content->size() < c.at + c.bytes.size())
		content->resize(c.at + c.bytes.size());
	if (!c.truncates)
		content->replace(c.at, c.bytes.size(), c.bytes);
}

// Bytes that were written anew are not those that were lost.
static void cover(std::vector<disk_change> *lost, const disk_change &c)
{
	std::vector<disk_change> left;
	uint64_t end = c.truncates ? UINT64_MAX : c.at + c.bytes.size();

	for (disk_change &l : *lost) {
		uint64_t l_end = l.at + l.bytes.size();

		if (l.truncates || l_end <= c.at || end <= l.at) {
			left.push_back(std::move(l));
			continue;
		}
		if (l.at < c.at)
			left.push_back({ l.at, l.bytes.substr(0, c.at - l.at), false, true });
		if (end < l_end)
			left.push_back({ end, l.bytes.substr(end - l.at), false, true });
	}
	*lost = std::move(left);
}

void disk_tree::sync(disk_node *file)
{
	disk_node *dir = file->parent;
	std::vector<disk_change> lost;

	for (disk_change &c : file->changes) {
		if (c.lost) {
			lost.push_back(std::move(c));
		} else {
			change(&file->synced, c);
			cover(&lost, c);
		}
	}
	file->changes = std::move(lost);
	for (size_t i = dir->steps.size(); i-- > 0;)
		if (dir->steps[i].child == file && dir->steps[i].kind != disk_step::UNLINK) {
			settle(dir, dir->steps[i].number);
			break;
		}
}

void disk_tree::sync_failed(disk_node *file)
{
	for (disk_change &c : file->changes)
		c.lost = true;
}

void disk_tree::sync_dir(disk_node *dir)
{
	settle(dir, UINT64_MAX);
}

// A rename needs the earlier steps of the directory that it takes from.
void disk_tree::apply(disk_node *dir, const disk_step &s)
{
	switch (s.kind) {
	case disk_step::LINK:
		dir->durable[s.name] = s.child;
		break;
	case disk_step::UNLINK:
		dir->durable.erase(s.name);
		break;
	case disk_step::RENAME:
		if (s.from != dir)
			settle(s.from, s.number);
		s.from->durable.erase(s.from_name);
		dir->durable[s.name] = s.child;
		break;
	}
}

void disk_tree::settle(disk_node *dir, uint64_t up_to)
{
	std::vector<disk_step> steps = std::move(dir->steps);

	dir->steps.clear();
	for (disk_step &s : steps) {
		if (s.number <= up_to)
			apply(dir, s);
		else
			dir->steps.push_back(std::move(s));
	}
}

// ---- after a power cut ----

// Bytes of a change in the sector that follows its first `done` bytes.
static uint64_t piece_bytes(const disk_change &c, uint64_t done)
{
	uint64_t n = SECTOR - (c.at + done) % SECTOR;

	return n < c.bytes.size() - done ? n : c.bytes.size() - done;
}

// Some of what was not synced: none, all, or a prefix to a sector's edge; with bad sectors or not.
std::string disk_tree::content(const disk_node *file, disk_random *r)
{
	std::string out = file->synced;
	uint64_t how = r->below(5), pieces = 0;
	bool bad_ones = how > 2;

	if (how == 0 || file->changes.empty())
		return out;
	for (const disk_change &c : file->changes)
		for (uint64_t done = 0; done < c.bytes.size(); done += piece_bytes(c, done))
			pieces++;
	if (how % 2 == 0)
		pieces = r->below(pieces + 1);
	for (const disk_change &c : file->changes) {
		if (c.truncates)
			change(&out, c);
		for (uint64_t done = 0, n; done < c.bytes.size(); done += n) {
			n = piece_bytes(c, done);
			if (!pieces--)
				return out;
			disk_change piece = { c.at + done, c.bytes.substr(done, n), false, false };
			uint64_t bad = bad_ones ? r->below(5) : 2;
			if (bad < 2) // zeros, or what was there before
				for (char &byte : piece.bytes)
					byte = bad ? (char)r->below(256) : 0;
			change(&out, piece);
		}
	}
	return out;
}

void disk_tree::put_back(disk_node *dir, const std::string &path, disk_random *r)
{
	std::string is;

	for (const std::string &name : names_in(path))
		if (!dir->durable.count(name))
			remove_all(path + "/" + name);
	for (const auto &e : dir->durable) {
		std::string child_path = path + "/" + e.first;
		disk_node *child = e.second;
		struct stat st;

		if (lstat(child_path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) != child->is_dir)
			remove_all(child_path);
		if (child->is_dir) {
			if (!::is_dir(child_path) && mkdir(child_path.c_str(), 0755))
				broken("make", child_path);
			put_back(child, child_path, r);
			continue;
		}
		std::string want = content(child, r);
		if (!read_file(child_path, &is) || is != want)
			write_file(child_path, want);
	}
}

void disk_tree::restore(uint64_t seed)
{
	disk_random r(seed);

	look_again(root_);
	for (size_t i = 0; i < all_.size(); i++) {
		disk_node *dir = all_[i].get();
		size_t n = dir->steps.size();

		if (!n)
			continue;
		switch (r.below(3)) {
		case 0:
			break;
		case 1:
			settle(dir, UINT64_MAX);
			break;
		default:
			settle(dir, dir->steps[r.below(n)].number);
		}
	}
	put_back(root_, root_path_, &r);
	reset();
}

static uint64_t bytes_of(const disk_node *node)
{
	uint64_t n = node->size;

	for (const auto &e : node->now)
		n += bytes_of(e.second);
	return n;
}

uint64_t disk_tree::bytes() const
{
	return bytes_of(root_);
}
