// usage: prometheus FILE
// Runs Prometheus's own discovery for an entry of kubernetes_sd_configs and prints its targets, before relabelling, as JSON: it is
// what the server's targets are compared with.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"gopkg.in/yaml.v2"
)

const quiet = 4 * time.Second // without a group: all have come

func discover(entry *kubernetes.SDConfig) ([]model.LabelSet, error) {
	registry := prometheus.NewRegistry()
	d, err := entry.NewDiscoverer(discovery.DiscovererOptions{
		Metrics: entry.NewDiscovererMetrics(registry, discovery.NewRefreshMetrics(registry)),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	came := make(chan []*targetgroup.Group)
	go d.Run(ctx, came)
	groups := map[string]*targetgroup.Group{}
	for {
		select {
		case list := <-came:
			for _, g := range list {
				groups[g.Source] = g
			}
			continue
		case <-time.After(quiet):
		}
		break
	}
	targets := []model.LabelSet{}
	for _, g := range groups {
		for _, t := range g.Targets {
			targets = append(targets, g.Labels.Merge(t))
		}
	}
	return targets, nil
}

func main() {
	var entry kubernetes.SDConfig
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = yaml.Unmarshal(text, &entry)
	}
	if err != nil {
		log.Fatal(err)
	}
	targets, err := discover(&entry)
	if err != nil {
		log.Fatal(err)
	}
	out, err := json.Marshal(targets)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(out))
}
