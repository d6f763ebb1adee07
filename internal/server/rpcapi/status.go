package rpcapi

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/segment"
)

func (s *adminService) Status(ctx context.Context, req *leafv1.StatusRequest) (*leafv1.StatusResponse, error) {
	report := s.Report()
	res := &leafv1.StatusResponse{
		Version:    s.Version,
		Started:    timestamp(s.Started),
		Listen:     s.Address,
		Ready:      report.Err("") == nil,
		Conditions: s.conditions(report),
		Schemes:    s.schemes(report),
		Lease:      s.lease(),
	}
	for _, p := range s.Ports {
		res.Ports = append(res.Ports, &leafv1.Port{Name: p.Name, Title: p.Title, Address: p.Address})
	}
	if s.Tags == nil {
		return res, nil
	}
	res.Store = s.storeStatus(ctx)
	if req.GetSkipTags() {
		return res, nil
	}
	for _, st := range s.Tags.Stats() {
		res.Tags = append(res.Tags, s.stats(st))
	}
	return res, nil
}

func (s *adminService) conditions(report health.Report) []*leafv1.Condition {
	var list []*leafv1.Condition
	for _, c := range report.Conditions {
		list = append(list, &leafv1.Condition{Name: c.Name, Schemes: c.Schemes, Down: c.Down, Text: s.tell(c.Err), Advice: hint.ForCondition(c)})
	}
	return list
}

// schemes lists the enabled schemes, and then disabled ones with a known reason.
func (s *adminService) schemes(report health.Report) []*leafv1.SchemeStatus {
	var list []*leafv1.SchemeStatus
	for _, name := range s.IDs.Schemes() {
		st := &leafv1.SchemeStatus{Name: name, Ready: true}
		if err := report.Err(name); err != nil {
			st.Ready, st.Error = false, s.tell(err)
		}
		list = append(list, st)
	}
	off := s.IDs.Off()
	for _, name := range slices.Sorted(maps.Keys(off)) {
		list = append(list, &leafv1.SchemeStatus{Name: name, Off: off[name]})
	}
	return list
}

func (s *adminService) storeStatus(ctx context.Context) *leafv1.StoreStatus {
	res := &leafv1.StoreStatus{Name: s.store, Reachable: true, Identity: s.Tags.StoreID()}
	if err := s.Tags.Probe(ctx); err != nil {
		res.Reachable, res.LastError = false, s.tell(err)
	}
	return res
}

// lease describes the lease of a worker ID, nil where no scheme needs one.
func (s *adminService) lease() *leafv1.Lease {
	if s.Workers == nil {
		return nil
	}
	st := s.Workers.Status()
	res := &leafv1.Lease{Held: st.Held, Registry: s.registry, PutBacks: st.PutBacks, Lost: st.Lost}
	if step := st.ClockStep.Round(time.Millisecond); step != 0 {
		res.ClockStep = durationpb.New(step)
	}
	if st.Held {
		res.Worker, res.Term = st.Worker, st.Term
		res.Floor, res.Horizon = timestamp(st.Floor), timestamp(st.Horizon)
		res.Since, res.Extended = timestamp(st.Since), timestamp(st.Extended)
	}
	if st.Err != nil {
		res.Error = s.tell(st.Err)
	}
	if supply, ok := s.Workers.Supply(); ok && supply.Max > 0 {
		res.StartsLeft = new(supply.Left())
	}
	for _, l := range s.Layouts {
		res.Layouts = append(res.Layouts, &leafv1.Layout{
			Name: l.Name, Epoch: timestamppb.New(l.Epoch), Tick: durationpb.New(l.Tick),
			TimeBits: int32(l.TimeBits), WorkerBits: int32(l.WorkerBits), SequenceBits: int32(l.SequenceBits),
			Last: timestamp(l.Last()),
		})
	}
	return res
}

func (s *adminService) stats(st segment.Stats) *leafv1.TagStats {
	res := &leafv1.TagStats{
		Tag: st.Tag, Loaded: st.Loaded,
		Stock: st.Stock, Issued: st.Issued, Step: st.Step, Rate: st.Rate, Lasts: durationpb.New(st.Lasts),
		Refills: st.Refills, Failures: st.Failures, Regressions: st.Regressions, Refilling: st.Refilling,
		FailingSince: timestamp(st.FailingSince),
	}
	if st.Err != nil {
		res.Error = s.tell(st.Err)
	}
	for _, seg := range st.Segments {
		r := &leafv1.Range{Start: seg.Range.Start, End: seg.Range.End}
		res.Segments = append(res.Segments, &leafv1.SegmentStats{Range: r, Next: seg.Next})
	}
	return res
}

// timestamp leaves an unknown time out of the message.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
