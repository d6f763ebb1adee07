package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A scenario is one of clients/scenarios.json; docs/clients.md explains the steps.
type scenario struct {
	Name, Behaviour, Kind, World, Token, Trust string
	Only                                       []string
	Options                                    map[string]int64
	Steps                                      []map[string]any
}

func readScenarios(t *testing.T) []scenario {
	t.Helper()
	text, err := os.ReadFile("../scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Options   map[string]int64
		Scenarios []scenario
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for i, s := range file.Scenarios {
		options := make(map[string]int64)
		maps.Copy(options, file.Options)
		maps.Copy(options, s.Options)
		file.Scenarios[i].Options = options
	}
	return file.Scenarios
}

// TestScenarios runs the scenarios of all clients with the one in Go.
func TestScenarios(t *testing.T) {
	testserver.Long(t)
	lab := startLab(t)
	for _, s := range readScenarios(t) {
		if s.Only != nil && !slices.Contains(s.Only, "go") {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			r := &scenarioRun{T: t, lab: lab, scenario: s, clients: make(map[string]*client.Client), seen: make(map[string]bool)}
			send(t, http.MethodPost, lab+"/worlds?"+s.World, &r.world)
			t.Cleanup(r.end)
			for i, step := range s.Steps {
				if err := r.step(step); err != nil {
					t.Fatalf("step %d, %v: %v", i+1, step, err)
				}
			}
		})
	}
}

// A scenarioRun has the clients of a scenario by name, and all IDs that they gave.
type scenarioRun struct {
	*testing.T
	lab      string
	scenario scenario
	world    world
	clients  map[string]*client.Client
	seen     map[string]bool // by period and ID
	latest   []int64
}

func (r *scenarioRun) end() {
	for _, c := range r.clients {
		_ = c.Close(context.Background()) // the servers may be gone
	}
	req, _ := http.NewRequest(http.MethodDelete, r.lab+"/worlds/"+r.world.Name, http.NoBody)
	if answer, err := http.DefaultClient.Do(req); err == nil {
		answer.Body.Close()
	}
}

func (r *scenarioRun) client(name string) *client.Client {
	r.Helper()
	if c := r.clients[name]; c != nil {
		return c
	}
	option := func(name string) time.Duration { return time.Duration(r.scenario.Options[name]) * time.Millisecond }
	o := &client.Options{
		OutageBudget: option("outage_budget"), MaxStock: r.scenario.Options["max_stock"], Wait: option("wait"),
		CallTimeout: option("call_timeout"), Hedge: option("hedge"),
		Token: map[string]string{"all": r.world.Token, "weak": r.world.WeakToken}[r.scenario.Token],
	}
	if r.world.CertFile != "" && r.scenario.Trust != "none" {
		text, err := os.ReadFile(r.world.CertFile)
		if err != nil {
			r.Fatal(err)
		}
		o.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		o.TLS.RootCAs.AppendCertsFromPEM(text)
	}
	c, err := client.New(r.world.URL, o)
	if err != nil {
		r.Fatal(err)
	}
	r.clients[name] = c
	return c
}

// take takes n IDs in calls of batch, of a period if the scenario has them.
func (r *scenarioRun) take(name, period string, n, batch int) error {
	r.latest = nil
	for range n / max(1, batch) {
		got, err := r.call(name, period, batch)
		if err != nil {
			return err
		}
		for _, span := range got.Ranges {
			for id := span.Start; id < span.End; id++ {
				key := fmt.Sprint(got.Period, " ", id)
				if r.seen[key] {
					return fmt.Errorf("%s came twice", key)
				}
				r.seen[key] = true
				r.latest = append(r.latest, id)
			}
		}
	}
	return nil
}

// call takes n IDs in one call.
func (r *scenarioRun) call(name, period string, n int) (got client.Answer, err error) {
	c := r.client(name)
	ids := c.Tag("order")
	switch r.scenario.Kind {
	case "issue":
		got, err = c.Issue(r.Context(), client.Request{Key: "order", Period: period, Count: n})
		return got, cmp.Or(err, r.checkPeriod(period, got.Period))
	case "ordered":
		ids = c.Ordered("segment", "order")
	}
	if n == 1 {
		id, err := ids.Next(r.Context())
		return client.Answer{Ranges: []leaf.Range{{Start: id, End: id + 1}}}, err
	}
	got.Ranges, err = ids.Take(r.Context(), nil, n)
	return got, err
}

// checkPeriod compares the period of an answer with the one of the call; the present one is a year.
func (r *scenarioRun) checkPeriod(asked, got string) error {
	present := ""
	if strings.Contains(r.scenario.World, "period=year") {
		present = time.Now().UTC().Format("2006") + "-01-01"
	}
	if want := cmp.Or(asked, present); got != want {
		return fmt.Errorf("the numbers are of the period %q, want %q", got, want)
	}
	return nil
}

// reason is the other clients' name of the error.
func reason(err error) string {
	for text, target := range map[string]error{"UNKNOWN_TAG": leaf.ErrUnknownTag, "INVALID_ARGUMENT": leaf.ErrInvalid, "CLOSED": leaf.ErrClosed} {
		if errors.Is(err, target) {
			return text
		}
	}
	switch {
	case errors.Is(err, client.ErrDenied) && strings.Contains(err.Error(), "not allowed"):
		return "FORBIDDEN"
	case errors.Is(err, client.ErrDenied):
		return "UNAUTHENTICATED"
	case errors.Is(err, leaf.ErrExhausted):
		return "EXHAUSTED"
	}
	return fmt.Sprint(err)
}

// poll waits until check reports no error.
func poll(limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (r *scenarioRun) step(step map[string]any) error {
	name, begun := "a", time.Now()
	if by, ok := step["by"]; ok {
		name = by.(string)
	}
	within := 5 * time.Minute
	if ms, ok := step["within"]; ok {
		within = time.Duration(ms.(float64)) * time.Millisecond
	}
	err := r.act(name, step)
	if took := time.Since(begun); err == nil && took > within {
		err = fmt.Errorf("took %s", took)
	}
	return err
}

func (r *scenarioRun) act(name string, step map[string]any) error {
	period, _ := step["period"].(string)
	if want, ok := step["fails"]; ok {
		n, batch := 1, 1
		if size, ok := step["batch"]; ok {
			n, batch = max(1, int(size.(float64))), int(size.(float64))
		}
		return wantReason(r.take(name, period, n, batch), want)
	}
	for kind, value := range step {
		n, _ := value.(float64)
		text, _ := value.(string)
		switch kind {
		case "take":
			return r.take(name, period, int(n), 1)
		case "batch":
			return r.take(name, period, int(n), int(n))
		case "drain":
			return r.drain(name, text)
		case "recover":
			return poll(time.Duration(n)*time.Millisecond, func() error { return r.take(name, period, 1, 1) })
		case "is":
			if err := r.take(name, period, 1, 1); err != nil || r.latest[0] != int64(n) {
				return fmt.Errorf("got %d, %w", r.latest, err)
			}
			return nil
		case "text":
			got, err := r.client(name).Issue(r.Context(), client.Request{Key: "order", Form: true, Count: len(strings.Fields(text))})
			if err != nil || strings.Join(got.Texts, " ") != text {
				return fmt.Errorf("got %v, %w", got, err)
			}
			return nil
		case "increasing":
			if !slices.IsSorted(r.latest) {
				return errors.New("it does not increase")
			}
			return nil
		case "close":
			_ = r.client(text).Close(r.Context()) // the servers may not take the IDs back
			return nil
		case "by", "within", "period":
		default:
			return r.observe(name, kind, text, int64(n))
		}
	}
	return nil
}

func wantReason(err error, want any) error {
	if got := reason(err); got != want {
		return fmt.Errorf("got %s: %w", got, err)
	}
	return nil
}

// drain takes IDs until the store is empty.
func (r *scenarioRun) drain(name, want string) error {
	for {
		if err := r.take(name, "", 1, 1); err != nil {
			return wantReason(err, want)
		}
	}
}

// observe does the steps that concern the lab or the figures of a client.
func (r *scenarioRun) observe(name, kind, text string, n int64) error {
	switch kind {
	case "harm":
		return r.post("/worlds/" + r.world.Name + "/" + text)
	case "freeze":
		pid := os.Getpid() // the lab is in this process
		return exec.CommandContext(r.Context(), "sh", "-c", fmt.Sprintf("kill -STOP %d; sleep %f; kill -CONT %d", pid, float64(n)/1000, pid)).Run()
	case "calls":
		var counts []int64
		send(r.T, http.MethodGet, r.lab+"/worlds/"+r.world.Name+"/calls", &counts)
		return atMost(sum(counts), n)
	case "stock":
		return poll(20*time.Second, func() error {
			if err := r.take(name, "", 1, 1); err != nil { // after a failed call the next caller has it repeated
				return err
			}
			return atMost(n, r.client(name).Stats()[0].Stock)
		})
	case "stock_at_most":
		return atMost(r.client(name).Stats()[0].Stock, n)
	case "granted_at_most":
		s := r.client(name).Stats()[0]
		return atMost(s.Stock+s.Issued, n)
	}
	return fmt.Errorf("unknown step %s", kind)
}

func (r *scenarioRun) post(path string) error {
	if status := send(r.T, http.MethodPost, r.lab+path, nil); status != http.StatusNoContent {
		return fmt.Errorf("%s: status %d", path, status)
	}
	return nil
}

func sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

func atMost(n, limit int64) error {
	if n > limit {
		return fmt.Errorf("%d is above %d", n, limit)
	}
	return nil
}

// TestScenariosAreDocumented holds the table of docs/clients.md to the file.
func TestScenariosAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, s := range readScenarios(t) {
		if line := "| " + s.Name + " | " + s.Behaviour + " |"; !strings.Contains(text, line) {
			t.Errorf("docs/clients.md lacks the line\n%s", line)
		}
	}
}
