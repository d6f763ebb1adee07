package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/textid"
)

// TestForms asks for texts in every way, at a server and at a relay behind it: no two are alike, and
// each is that of a number.
func TestForms(t *testing.T) {
	store := memory.New().Store()
	tag := segment.Tag{Name: "ticket", MaxID: 1, Step: 50, Options: segment.TagOptions{segment.OptionForm: "T-{n:base32:5}{check:mod97-10}"}}
	if err := errors.Join(store.Create(t.Context(), tag), store.Create(t.Context(), segment.Tag{Name: "plain", MaxID: 1, Step: 1})); err != nil {
		t.Fatal(err)
	}
	form, err := textid.New(tag.Options[segment.OptionForm])
	if err != nil {
		t.Fatal(err)
	}
	server := testleaf.Start(t, testleaf.Options{Store: store})
	upstream, err := relay.Open([]string{server.URL()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	edge := testleaf.Start(t, testleaf.Options{Store: upstream.Store()})
	seen := map[int64]string{}
	for name, s := range map[string]*testleaf.Server{"server": server, "edge": edge} {
		c := connect(t, nil, s)
		calls := leafv1connect.NewLeafServiceClient(http.DefaultClient, s.URL())
		for what, take := range map[string]func() ([]string, error){
			"Issue": func() ([]string, error) {
				a, err := c.Issue(t.Context(), client.Request{Key: "ticket", Form: true, Count: 7})
				return a.Texts, err
			},
			"Next": func() ([]string, error) {
				res, err := calls.Next(t.Context(), &leafv1.NextRequest{Key: "ticket", Form: true})
				return []string{res.GetText()}, err
			},
			"Take": func() ([]string, error) {
				res, err := calls.Take(t.Context(), &leafv1.TakeRequest{Key: "ticket", Form: true, Count: 3, Contiguous: true})
				return res.GetTexts(), err
			},
		} {
			texts, err := take()
			if err != nil || len(texts) == 0 {
				t.Fatalf("%s at the %s: %v, %v", what, name, texts, err)
			}
			for _, text := range texts {
				v, err := form.Decode(text)
				if err != nil || seen[v.N] != "" {
					t.Errorf("%s at the %s: %s: %v, before: %s", what, name, text, err, seen[v.N])
				}
				seen[v.N] = fmt.Sprintf("%s by %s at the %s", text, what, name)
			}
		}
		if _, err := c.Issue(t.Context(), client.Request{Key: "plain", Form: true, Count: 1}); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("a tag without a form at the %s: %v", name, err)
		}
	}
}
