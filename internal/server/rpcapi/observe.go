package rpcapi

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

func (s *adminService) PeekTag(ctx context.Context, req *leafv1.PeekTagRequest) (*leafv1.PeekTagResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	p, err := tags.Peek(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	return &leafv1.PeekTagResponse{Next: p.Next, Stock: p.Stock, Tag: tagMessage(p.Tag)}, nil
}

func (s *adminService) ObserveTag(ctx context.Context, req *leafv1.ObserveTagRequest) (*leafv1.ObserveTagResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	o, err := tags.Observe(ctx, req.GetName(), req.GetMax())
	if err != nil {
		return nil, err
	}
	res := &leafv1.ObserveTagResponse{Tag: tagMessage(o.Tag), Dropped: o.Dropped}
	if o.OthersBelow > 0 {
		res.OthersBelow = &o.OthersBelow
		res.OthersFor = durationpb.New(s.OutageBudget)
	}
	return res, nil
}
