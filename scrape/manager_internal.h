/* What manager.c and manager_show.c share: pools, and who may look at them. */
#ifndef SCRAPE_MANAGER_INTERNAL_H
#define SCRAPE_MANAGER_INTERNAL_H

#include "discovery/discovery.h"
#include "scrape/scraper.h"

struct job_pool {
	struct scrape_manager *manager;
	struct config *config; /* held */
	const struct scrape_config *job;
	/* guarded by manager->lock */
	bool live; /* swapped in: its set has scrapers */
	struct target_set *set; /* the latest; NULL: none came yet */
	struct scraper **scrapers; /* of set->v; NULL: no memory for that one, or no memory at all */
	const char *trouble; /* what kept targets from being scraped, or NULL */
	uint64_t told; /* hash of the set's error in the log */
	size_t counted; /* targets in the gauge */
};

struct scrape_manager {
	struct scrape_env env;
	struct discovery *discovery;
	char *listen_address, *external_url;
	struct lane *lanes[LANES_MAX];
	size_t lanes_n;
	struct mutex lock; /* of what is wanted: of pools and their scrapers, never their state */
	struct job_pool **pools; /* sorted by name */
	size_t n;
};

#endif
