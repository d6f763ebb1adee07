package tinyid_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver/tinyidclient"
	"github.com/leaf-id/leaf/segment"
)

// Java clients share a tag with each other, and with callers of single IDs.
func TestJavaClients(t *testing.T) {
	s := newServer(t, nil, segment.Tag{Name: "order", MaxID: 100, Step: 500})
	var ids drivertest.IDs
	var wg sync.WaitGroup
	for range 4 {
		c := &tinyidclient.Client{HTTP: s.Client(), URL: func() string { return s.URL }, Token: "0f673adf80504e2eaa552f5d791b644c", Type: "order"}
		shard := ids.Shard()
		wg.Go(func() {
			for range 5_000 {
				id, err := c.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				shard.Add(id)
			}
			if loads := c.Wait(); loads < 10 || loads > 60 { // 5,000 IDs, 500 of a full segment
				t.Errorf("%d loads", loads)
			}
		})
	}
	shard := ids.Shard()
	for range 200 {
		_, body := s.get(t, "/tinyid/id/nextIdSimple?bizType=order&batchSize=10")
		for text := range strings.SplitSeq(body, ",") {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			shard.Add(id)
		}
	}
	wg.Wait()
	if err := ids.Check(); err != nil {
		t.Error(err)
	}
}
