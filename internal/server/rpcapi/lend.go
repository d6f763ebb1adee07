package rpcapi

import (
	"context"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/segment"
)

// Advance charges the caller's limits with the granted IDs, whose number it does not know before.
func (s *leafService) Advance(ctx context.Context, req *leafv1.AdvanceRequest) (*leafv1.AdvanceResponse, error) {
	// The size of a grant without a count is not known before. It is charged as one ID first, so
	// that a caller beyond its limits moves no counter.
	most := int64(s.IDs.MaxRange())
	if req.GetStrict() {
		most = s.IDs.MaxStrict()
	}
	charged := max(1, min(req.GetCount(), most))
	if err := s.mayTake(ctx, issuer.Segment, req.GetTag(), charged); err != nil {
		return nil, err
	}
	advance := func() (segment.Grant, error) {
		return s.IDs.Advance(ctx, req.GetTag(), req.GetCount(), req.GetBefore())
	}
	if req.GetStrict() {
		advance = func() (segment.Grant, error) {
			return s.IDs.AdvanceStrict(ctx, req.GetTag(), req.Period, req.GetMasked(), req.GetCount())
		}
	}
	grant, err := advance()
	if err != nil {
		s.refund(ctx, req.GetTag(), charged)
		return nil, err
	}
	if rest := grant.Len() - charged; rest < 0 {
		s.refund(ctx, req.GetTag(), -rest)
	} else if err := s.mayTake(ctx, issuer.Segment, req.GetTag(), rest); err != nil {
		// The first charge stays: the counter may have moved for this call.
		_ = s.IDs.Return(ctx, req.GetTag(), grant, grant.Range.Start) // else they are lost
		return nil, err
	}
	res := &leafv1.AdvanceResponse{
		Step: grant.Step, Version: grant.Version, Store: grant.Store,
		Strict: req.GetStrict(), Period: grant.Period, Masked: grant.Masked,
	}
	if grant.Masked == nil {
		res.Range = &leafv1.Range{Start: grant.Range.Start, End: grant.Range.End}
	}
	return res, nil
}

// refund takes back the charge for n IDs of a tag that the caller did not get.
func (s *leafService) refund(ctx context.Context, tag string, n int64) {
	frontend.CallerIn(ctx).Refund(issuer.Segment, tag, n)
}

func (s *leafService) Return(ctx context.Context, req *leafv1.ReturnRequest) (*leafv1.ReturnResponse, error) {
	if err := s.mayTake(ctx, issuer.Segment, req.GetTag(), 0); err != nil {
		return nil, err
	}
	last := segment.Grant{Range: leaf.Range{Start: req.GetStart(), End: req.GetEnd()}, Version: req.GetVersion()}
	if err := s.IDs.Return(ctx, req.GetTag(), last, req.GetStart()); err != nil {
		return nil, err
	}
	return new(leafv1.ReturnResponse), nil
}
