package server_test

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/testserver"
)

// The log has every change of a tag, at any level: its author and address, and the tag before and
// after, but not the token.
func TestAudit(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"ops": `rights: [admin]`})
	log := new(testserver.Output)
	r := run(t, nil, func(o *server.Options) {
		o.Config.TokensFile = file
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	client := &http.Client{Transport: withToken{r.client.Transport, tokens["ops"]}}
	admin := leafv1connect.NewAdminServiceClient(client, "http://"+r.addr)
	step, text, by := int64(20), "of the shop", int64(100)
	for _, err := range []error{
		second(admin.CreateTag(t.Context(), &leafv1.CreateTagRequest{Name: "user", Step: 5})),
		second(admin.AlterTag(t.Context(), &leafv1.AlterTagRequest{Name: "user", Step: &step, Description: &text})),
		second(admin.AlterTag(t.Context(), &leafv1.AlterTagRequest{Name: "user", RaiseBy: &by})),
		second(admin.DeleteTag(t.Context(), &leafv1.DeleteTagRequest{Name: "user"})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const by1 = ` by=ops from=127\.0\.0\.1:\d+ `
	for _, want := range []string{
		`msg="audit: tag created" tag=user` + by1 + `after\.max_id=1 after\.step=5 after\.description=""`,
		`msg="audit: tag altered" tag=user force=false` + by1 + `before\.max_id=1 before\.step=5 before\.description="" after\.max_id=1 after\.step=20 after\.description="of the shop"`,
		`msg="audit: tag raised" tag=user by_ids=100` + by1 + `before\.max_id=1 before\.step=20 .*after\.max_id=101 after\.step=20`,
		`msg="audit: tag deleted" tag=user` + by1 + `before\.max_id=101 before\.step=20 before\.description="of the shop"`,
	} {
		if !regexp.MustCompile(want).MatchString(log.String()) {
			t.Errorf("no line %s in\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), tokens["ops"]) || strings.Count(log.String(), "\n") != 4 {
		t.Errorf("the log:\n%s", log)
	}
}

type withToken struct {
	next  http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

func second[T any](_ T, err error) error { return err }
