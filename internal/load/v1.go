package load

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/leaf-id/leaf/internal/issuer"
)

// V1 returns the target of the API for new clients, /v1/ids/{scheme}/{key}. Batches of
// numbers come as ranges.
func V1(server Server, scheme string) *HTTP {
	return &HTTP{
		Server: server,
		Path: func(key string, count int) string {
			path := "/v1/ids/" + scheme + "/" + url.PathEscape(key)
			switch {
			case count == 1:
				return path
			case issuer.SchemeOf(scheme).Text:
				return path + "?n=" + strconv.Itoa(count)
			}
			return path + "?ranges=1&n=" + strconv.Itoa(count)
		},
		read: readV1,
	}
}

func readV1(body []byte, ids *IDs) error {
	var said struct {
		IDs    []string
		Ranges []struct{ Start, Count string }
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return failure(notIDs, clip(string(body)))
	}
	for _, id := range said.IDs {
		if err := ids.addText([]byte(id)); err != nil {
			return err
		}
	}
	for _, r := range said.Ranges {
		start, err := parseID([]byte(r.Start))
		count, err2 := parseID([]byte(r.Count))
		if err != nil || err2 != nil {
			return failure(notIDs, clip(string(body)))
		}
		if err := ids.addRange(start, start+count); err != nil {
			return err
		}
	}
	return nil
}
