/* Pools, and what manager.c, manager_show.c and profile_now.c share of the manager. */
#ifndef SCRAPE_MANAGER_INTERNAL_H
#define SCRAPE_MANAGER_INTERNAL_H

#include "discovery/discovery.h"
#include "scrape/scraper.h"

struct job_pool {
	struct scrape_manager *manager;
	struct config *config; /* held */
	const struct scrape_config *job;
	/* guarded by manager->lock */
	bool live; /* swapped in: its set is scraped */
	struct target_set *set; /* the latest; NULL: none came yet */
	bool synced; /* the users of the set's chunks are its scrapers; one that is NULL: out of memory
				  */
	const char *trouble; /* why some targets are not scraped, or NULL */
	uint64_t logged; /* hash of the set's error that was logged last */
	size_t counted, elsewhere; /* targets in the gauges */
};

struct scrape_manager {
	struct scrape_env env;
	struct discovery *discovery;
	char *listen_address, *external_url;
	struct mutex expanding; /* held while sets are made and rules change; before `lock` */
	struct mutex
		applying; /* held while a configuration, or a rule, takes effect; before `expanding` */
	struct lane *lanes[LANES_MAX];
	size_t lanes_n;
	struct mutex lock; /* guards pools and which scrapers they have; not the state of scrapers */
	struct job_pool **pools; /* sorted by name */
	size_t n;
};

#endif
