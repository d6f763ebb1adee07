package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/server"
)

// The access log names tokens, and never shows one.
func TestAccessLogNamesTheToken(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"billing": "take: ['*']"})
	r := run(t, nil, func(o *server.Options) { o.Config.TokensFile, o.Config.Log.Access = file, 1 })
	wrong := tokens["billing"] + "x"
	for _, token := range []string{tokens["billing"], wrong, ""} {
		req, err := http.NewRequest(http.MethodGet, "http://"+r.addr+"/v1/ids/segment/order", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	r.wantStop(t)
	log := r.log.String()
	for _, part := range []string{" token=billing ", " token=unknown ", " token=anonymous "} {
		if !strings.Contains(log, part) {
			t.Errorf("no%s in the log:\n%s", part, log)
		}
	}
	if strings.Contains(log, tokens["billing"]) {
		t.Errorf("a token is in the log:\n%s", log)
	}
}
