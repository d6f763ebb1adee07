package tinyidclient_test

import (
	"testing"

	"github.com/leaf-id/leaf/internal/testserver/tinyidclient"
)

// The segments that TinyID's own code was seen to yield: first and last ID, and how many.
func TestSegments(t *testing.T) {
	tests := []struct {
		body        string
		first, last int64
		count       int
	}{
		{"1,20001,100001,1,0", 2, 100001, 100_000},
		{"1,20001,100001,2,1", 3, 100001, 50_000},
		{"0,20000,100000,2,1", 1, 99999, 50_000},
		{"1000,1200,2000,3,0", 1002, 1998, 333},
	}
	for _, tt := range tests {
		s, err := tinyidclient.Parse(200, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		var first, last int64
		count := 0
		for id, ok := s.Next(); ok; id, ok = s.Next() {
			if count++; count == 1 {
				first = id
			}
			last = id
		}
		if first != tt.first || last != tt.last || count != tt.count {
			t.Errorf("%s: %d..%d, %d IDs", tt.body, first, last, count)
		}
	}
}
