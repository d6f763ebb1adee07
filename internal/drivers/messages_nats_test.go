package drivers_test

import (
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

func TestMessagesOfNATS(t *testing.T) {
	server := testserver.NATS(t)
	initBoth(t, server.URL()+"/IDS")
	gone := freeAddr(t)
	at := server.URL()
	complain(t, "nats", []complaint{
		{name: "no server", url: "nats://u:hunter2@" + gone, calls: all, want: []string{gone, "check that it runs"}},
		{name: "unknown host", url: "nats://u:hunter2@leaf.invalid", calls: all, want: []string{"leaf.invalid"}},
		{name: "no store", url: at + "/EMPTY", calls: useStore, want: []string{"EMPTY", "leaf init --store"}},
		{name: "no registry", url: at + "/EMPTY", calls: []string{"list workers"}, want: []string{"EMPTY", "leaf init --workers"}},
		{name: "exists", url: at + "/IDS", calls: []string{"init store", "init workers"}, want: []string{"IDS", "already"}},
		{name: "replicas", url: at + "/MORE?replicas=3", calls: []string{"init store", "init workers"}, want: []string{"MORE", "replicas"}},
	})
}
