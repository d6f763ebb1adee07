package rpcapi

import (
	"context"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
)

type leafService struct{ Backend }

func (s *leafService) Next(ctx context.Context, req *leafv1.NextRequest) (*leafv1.NextResponse, error) {
	if req.GetScheme() == issuer.UUID {
		texts, err := s.IDs.Texts(req.GetScheme(), req.GetKey(), 1)
		if err != nil {
			return nil, err
		}
		return &leafv1.NextResponse{Text: texts[0]}, nil
	}
	id, err := s.IDs.Next(ctx, req.GetScheme(), req.GetKey())
	if err != nil {
		return nil, err
	}
	return &leafv1.NextResponse{Id: id}, nil
}

func (s *leafService) Take(ctx context.Context, req *leafv1.TakeRequest) (*leafv1.TakeResponse, error) {
	if req.GetScheme() == issuer.UUID {
		texts, err := s.IDs.Texts(req.GetScheme(), req.GetKey(), int(req.GetCount()))
		return &leafv1.TakeResponse{Texts: texts}, err
	}
	ranges, err := s.IDs.Take(ctx, req.GetScheme(), req.GetKey(), nil, int(req.GetCount()))
	if err != nil {
		return nil, err
	}
	res := &leafv1.TakeResponse{Ranges: make([]*leafv1.Range, len(ranges))}
	for i, r := range ranges {
		res.Ranges[i] = &leafv1.Range{Start: r.Start, End: r.End}
	}
	return res, nil
}

func (s *leafService) Decode(_ context.Context, req *leafv1.DecodeRequest) (*leafv1.DecodeResponse, error) {
	d, err := s.Layouts.Decode(req.GetLayout(), req.GetId())
	if err != nil {
		return nil, err
	}
	return &leafv1.DecodeResponse{
		Time: timestamp(d.Time), Tick: &d.Tick, Worker: &d.Worker, Sequence: &d.Sequence, Layout: d.Layout,
	}, nil
}
