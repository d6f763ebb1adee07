package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
)

func TestLimits(t *testing.T) {
	const file = "limits:\n  client: {rate: 10, burst: 1_000, quota: 1e6}\n  tags:\n    order.*: {rate: 5}\n"
	fails(t, config.Source{File: write(t, "leaf.yaml", file)}, `FILE:2: limits.client.quota: "1e6" is not a whole number`)
	want := config.Limits{Connections: 20_000, Client: config.Limit{Rate: 10, Burst: 1000}, Tags: config.TagLimits{
		"order.*": {Rate: 5}, "*.b": {Quota: 7},
	}}
	yaml := "limits:\n  client: {rate: 10, burst: 1_000}\n  tags:\n    order.*: {rate: 5}\n    '*.b': {quota: 7}\n"
	if diff := cmp.Diff(want, load(t, config.Source{File: write(t, "leaf.yaml", yaml)}).Limits); diff != "" {
		t.Errorf("from the file (-want +got):\n%s", diff)
	}
	env := map[string]string{"LEAF_LIMITS_CLIENT_RATE": "10", "LEAF_LIMITS_CLIENT_BURST": "1000", "LEAF_LIMITS_TAGS": "{order.*: {rate: 5}, '*.b': {quota: 7}}"}
	if diff := cmp.Diff(want, load(t, config.Source{Environ: environ(env)}).Limits); diff != "" {
		t.Errorf("from the environment (-want +got):\n%s", diff)
	}
}

func TestBadAccess(t *testing.T) {
	for text, want := range map[string]string{
		"limits: {connections: 0}":        "FILE:1: limits.connections: 0 is not in 1 … 1000000",
		"limits: {client: {burst: 5}}":    "FILE:1: limits.client: there is a burst but no rate",
		"limits: {tags: {a: {rate: -1}}}": "FILE:1: limits.tags.a: rate, burst and quota must not be negative",
		"limits: {tags: {a: {rat: 1}}}":   "FILE:1: limits.tags.a.rat: no such key; did you mean limits.tags.a.rate?",
		"limits: {tags: [a]}":             "FILE:1: limits.tags: this must be a list of keys with their values",
		"tls: {cert: a.pem}":              "FILE:1: tls.cert: tls.cert and tls.key go together: one is empty",
		"tls: {client_ca: a.pem}":         "FILE:1: tls.client_ca: there is no TLS without tls.cert and tls.key",
		"public_read: yes":                `FILE:1: public_read: "yes" is neither true nor false`,
	} {
		fails(t, config.Source{File: write(t, "leaf.yaml", text)}, want)
	}
	fails(t, config.Source{Environ: []string{"LEAF_LIMITS_TAGS=5"}},
		`LEAF_LIMITS_TAGS: "5" is not a list such as {order.*: {rate: 1000, burst: 5000}, trial: {quota: 10_000}}`)
}
