package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	rpc "connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	sdk "github.com/leaf-id/leaf/client"
)

// numbers are an answer with those of a period.
type numbers struct {
	period string
	ranges []leaf.Range
}

// v1Get asks a route of a tag with periods.
func v1Get(addr, tag, period string, count int, more string) (header http.Header, body []byte, err error) {
	url := fmt.Sprintf("http://%s/v1/ids/segment/%s?n=%d%s", addr, tag, count, more)
	if period != "" {
		url += "&period=" + period
	}
	resp, err := client.Get(url)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return resp.Header, body, err
}

// parseNumbers returns an answer's period and numbers, which must be as many as wanted.
func parseNumbers(period string, texts []string, count int) (n numbers, err error) {
	n.period = period
	for _, text := range texts {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return n, err
		}
		n.ranges = append(n.ranges, leaf.Range{Start: id, End: id + 1})
	}
	if len(texts) != count {
		err = fmt.Errorf("%d numbers, not %d: %v", len(texts), count, texts)
	}
	return n, err
}

func v1Numbers(addr string) numberCall {
	return func(tag, period string, count int) (numbers, error) {
		_, body, err := v1Get(addr, tag, period, count, "")
		var answer struct {
			IDs    []string `json:"ids"`
			Period string   `json:"period"`
		}
		if err == nil {
			err = json.Unmarshal(body, &answer)
		}
		if err != nil {
			return numbers{}, err
		}
		return parseNumbers(answer.Period, answer.IDs, count)
	}
}

func v1Text(addr string) numberCall {
	return func(tag, period string, count int) (numbers, error) {
		header, body, err := v1Get(addr, tag, period, count, "&format=text")
		if err != nil {
			return numbers{}, err
		}
		return parseNumbers(header.Get("Leaf-Period"), strings.Fields(string(body)), count)
	}
}

// rpcNumbers calls by gRPC, or by Connect.
func rpcNumbers(url string, grpc bool) numberCall {
	client, opts := client, []rpc.ClientOption(nil)
	if grpc {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{Protocols: protocols}}
		opts = append(opts, rpc.WithGRPC())
	}
	ids := leafv1connect.NewLeafServiceClient(client, url, opts...)
	return func(tag, period string, count int) (n numbers, err error) {
		if count == 1 {
			res, err := ids.Next(context.Background(), &leafv1.NextRequest{Key: tag, Period: period})
			return numbers{res.GetPeriod(), []leaf.Range{{Start: res.GetId(), End: res.GetId() + 1}}}, err
		}
		res, err := ids.Take(context.Background(), &leafv1.TakeRequest{Key: tag, Period: period, Count: int32(count)})
		n.period = res.GetPeriod()
		for _, r := range res.GetRanges() {
			n.ranges = append(n.ranges, leaf.Range{Start: r.GetStart(), End: r.GetEnd()})
		}
		return n, err
	}
}

// sdkNumbers calls through one Go client of several servers.
func sdkNumbers(t *testing.T, addrs ...string) numberCall {
	ids, err := sdk.New("http://"+strings.Join(addrs, ","), &sdk.Options{CallTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ids.Close(context.Background()) })
	return func(tag, period string, count int) (numbers, error) {
		got, err := ids.Issue(context.Background(), sdk.Request{Key: tag, Period: period, Count: count})
		return numbers{got.Period, got.Ranges}, err
	}
}
