package rpcapi

import (
	"cmp"
	"context"
	"errors"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

type leafService struct {
	*frontend.Options
	requests *telemetry.Requests
	stop     context.Context // ends calls that wait; nil: their own context ends with it
}

func (s *leafService) Next(ctx context.Context, req *leafv1.NextRequest) (*leafv1.NextResponse, error) {
	if req.GetForm() {
		res, err := s.Take(ctx, &leafv1.TakeRequest{Scheme: req.GetScheme(), Key: req.GetKey(), Count: 1, Period: req.GetPeriod(), Form: true})
		if err != nil {
			return nil, err
		}
		return &leafv1.NextResponse{Text: res.GetTexts()[0], Period: res.GetPeriod()}, nil
	}
	id, period, err := s.takeOne(ctx, req.GetScheme(), req.GetKey(), req.GetPeriod())
	if err != nil {
		return nil, err
	}
	return &leafv1.NextResponse{Id: id.Number, Text: id.Text, Period: period}, nil
}

// takeOne returns an ID and its period, if the caller may have it.
func (s *leafService) takeOne(ctx context.Context, scheme, key, period string) (issuer.ID, string, error) {
	if err := s.mayTake(ctx, scheme, key, 1); err != nil {
		return issuer.ID{}, "", err
	}
	return s.next(ctx, scheme, key, period)
}

// next returns an ID and its period. Only where it has to wait for one does it cost to watch for the
// stop. A tag without a stock always has to.
func (s *leafService) next(ctx context.Context, scheme, key, period string) (issuer.ID, string, error) {
	if s.Traces == nil && period == "" { // else a call of the store would not be in the span of this call
		id, err := s.IDs.Next(frontend.NoWait, scheme, key)
		if !errors.Is(err, frontend.ErrWaits) {
			return id, "", err
		}
	}
	if s.stop != nil {
		var cancel context.CancelFunc
		ctx, cancel = untilStop(ctx, s.stop)
		defer cancel()
	}
	stockless, err := s.IDs.Stockless(ctx, scheme, key)
	switch {
	case err != nil:
		return issuer.ID{}, "", err
	case !stockless && period == "":
		id, err := s.IDs.Next(ctx, scheme, key)
		return id, "", err
	}
	ids, err := s.IDs.TakeIn(ctx, scheme, key, period, 1, false)
	if err != nil {
		return issuer.ID{}, "", err
	}
	return issuer.ID{Number: ids.Ranges[0].Start}, ids.Period, nil
}

func (s *leafService) Take(ctx context.Context, req *leafv1.TakeRequest) (*leafv1.TakeResponse, error) {
	if err := s.mayTake(ctx, req.GetScheme(), req.GetKey(), 0); err != nil {
		return nil, err
	}
	if err := s.checkCount(req); err != nil { // it counts for no limit
		return nil, err
	}
	if err := s.mayTake(ctx, req.GetScheme(), req.GetKey(), int64(req.GetCount())); err != nil {
		return nil, err
	}
	ids, err := s.take(ctx, req)
	if err != nil {
		return nil, err
	}
	texts, err := s.MakeTexts(ctx, ids)
	if err == nil {
		err = s.Charge(ctx, len(ids.Ranges))
	}
	if err != nil {
		frontend.CallerIn(ctx).Refund(req.GetScheme(), req.GetKey(), int64(req.GetCount()))
		return nil, err
	}
	res := &leafv1.TakeResponse{Texts: texts, Period: ids.Period, Ranges: make([]*leafv1.Range, len(ids.Ranges))}
	for i, r := range ids.Ranges {
		res.Ranges[i] = &leafv1.Range{Start: r.Start, End: r.End}
	}
	if req.GetTellStore() && cmp.Or(req.GetScheme(), issuer.Segment) == issuer.Segment && s.Tags != nil {
		res.Store = s.Tags.StoreID()
	}
	return res, nil
}

// mayTake says why the caller that the guard let through may not have n IDs.
func (s *leafService) mayTake(ctx context.Context, scheme, key string, n int64) error {
	if s.Access.Open() { // saves the search for the caller
		return nil
	}
	return frontend.CallerIn(ctx).Take(scheme, key, n)
}

func (s *leafService) take(ctx context.Context, req *leafv1.TakeRequest) (issuer.IDs, error) {
	stockless, err := s.IDs.Stockless(ctx, req.GetScheme(), req.GetKey())
	if err != nil {
		return issuer.IDs{}, err
	}
	return s.IDs.Issue(ctx, issuer.Request{
		Scheme: req.GetScheme(), Key: req.GetKey(), N: int(req.GetCount()), Period: req.GetPeriod(), Stockless: stockless,
		Contiguous: req.GetContiguous(), Ranges: !issuer.SchemeOf(req.GetScheme()).Text, Form: req.GetForm(),
	})
}

func (s *leafService) checkCount(req *leafv1.TakeRequest) error {
	if req.GetForm() || issuer.SchemeOf(req.GetScheme()).Text {
		return s.IDs.CheckCount(int(req.GetCount()))
	}
	return s.IDs.CheckRange(int(req.GetCount()))
}

func (s *leafService) Decode(_ context.Context, req *leafv1.DecodeRequest) (*leafv1.DecodeResponse, error) {
	d, err := s.Layouts.Decode(req.GetLayout(), req.GetId())
	if err != nil {
		return nil, err
	}
	l := d.Of
	return &leafv1.DecodeResponse{
		Time: timestamp(d.Time), Tick: &d.Tick, Worker: &d.Worker, Sequence: &d.Sequence, Layout: d.Layout,
		TimeBits: int32(l.TimeBits), WorkerBits: int32(l.WorkerBits), SequenceBits: int32(l.SequenceBits),
	}, nil
}
