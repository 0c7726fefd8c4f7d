// Prometheus's own discovery of four kinds, without Prometheus: discoverers KIND FILE runs the entry of the file and prints all
// groups that are known as a line of JSON, after each change: {source: {labels, targets}}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/aws"
	"github.com/prometheus/prometheus/discovery/consul"
	"github.com/prometheus/prometheus/discovery/moby"
	"github.com/prometheus/prometheus/discovery/nomad"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"
)

func run(kind, file string) error {
	c, found := map[string]discovery.Config{
		"consul": &consul.SDConfig{}, "docker": &moby.DockerSDConfig{}, "ec2": &aws.EC2SDConfig{}, "nomad": &nomad.SDConfig{},
	}[kind]
	if !found {
		return fmt.Errorf("no discovery of %q", kind)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	refresh := discovery.NewRefreshMetrics(registry)
	if err := refresh.Register(); err != nil {
		return err
	}
	metrics := c.NewDiscovererMetrics(registry, refresh)
	if err := metrics.Register(); err != nil {
		return err
	}
	d, err := c.NewDiscoverer(discovery.DiscovererOptions{Logger: promslog.New(&promslog.Config{}), Metrics: metrics, SetName: "x"})
	if err != nil {
		return err
	}
	updates := make(chan []*targetgroup.Group)
	go d.Run(context.Background(), updates)
	known := map[string]*targetgroup.Group{}
	for groups := range updates {
		for _, g := range groups {
			known[g.Source] = g
		}
		out := map[string]any{}
		for source, g := range known {
			out[source] = map[string]any{"labels": g.Labels, "targets": g.Targets}
		}
		if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: discoverers KIND FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
