package rpcapi

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/segment"
)

type adminService struct {
	*frontend.Options
	store, registry string // their names, as far as callers may know them
	tell            errorText
	listings        chan struct{} // has one entry for each answer with all tags in progress
}

// NewAdmin returns the calls of AdminService, for callers in this process.
func NewAdmin(opts *frontend.Options) leafv1connect.AdminServiceHandler {
	return &adminService{opts, opts.StoreName, opts.Registry, error.Error, make(chan struct{}, wholeListing)}
}

// newAdmin returns the calls for callers elsewhere.
func newAdmin(opts *frontend.Options) *adminService {
	s := &adminService{opts, opts.StoreName, opts.Registry, opts.ErrorText, make(chan struct{}, wholeListing)}
	if !opts.OnLoopback() {
		s.store, _, _ = strings.Cut(opts.StoreName, ":")
		s.registry, _, _ = strings.Cut(opts.Registry, ":")
	}
	return s
}

const (
	maxTagPage   = 10_000
	wholeListing = 2 // concurrent answers with all tags, which may be very large
)

func (s *adminService) ListTags(ctx context.Context, req *leafv1.ListTagsRequest) (*leafv1.ListTagsResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	size := int(req.GetPageSize())
	switch {
	case size < 0 || size > maxTagPage:
		return nil, fmt.Errorf("%w: page_size %d: it must be from 0 to %d", leaf.ErrInvalid, size, maxTagPage)
	case size == 0:
		size = math.MaxInt32
		select {
		case s.listings <- struct{}{}:
			defer func() { <-s.listings }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	page, err := newTagPage(req, size)
	if err != nil {
		return nil, err
	}
	for tag, err := range tags.All(ctx) {
		if err != nil {
			return nil, err
		}
		page.add(tag)
	}
	if call, ok := connect.CallInfoForHandlerContext(ctx); ok && tags.StoreID() != "" {
		call.ResponseHeader().Set(hops.Store, tags.StoreID())
	}
	return page.answer(), nil
}

func (s *adminService) CreateTag(ctx context.Context, req *leafv1.CreateTagRequest) (*leafv1.CreateTagResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	tag := segment.Tag{Name: req.GetName(), MaxID: 1, Step: req.GetStep(), Options: segment.Describe(req.GetDescription()).With(req.GetOptions())}
	if req.MaxId != nil {
		tag.MaxID = req.GetMaxId()
	}
	tag, err = tags.Create(ctx, tag)
	if err != nil {
		return nil, err
	}
	return &leafv1.CreateTagResponse{Tag: tagMessage(tag)}, nil
}

func (s *adminService) AlterTag(ctx context.Context, req *leafv1.AlterTagRequest) (*leafv1.AlterTagResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	change := issuer.Change{
		Change:  segment.Change{Step: req.Step, MaxID: req.MaxId, Force: req.GetForce(), Options: req.GetOptions()},
		RaiseBy: req.RaiseBy,
	}
	if req.Description != nil {
		change.Options = segment.TagOptions{segment.OptionDescription: req.GetDescription()}
		maps.Copy(change.Options, req.GetOptions())
	}
	tag, err := tags.Alter(ctx, req.GetName(), change)
	if err != nil {
		return nil, err
	}
	return &leafv1.AlterTagResponse{Tag: tagMessage(tag)}, nil
}

func (s *adminService) DeleteTag(ctx context.Context, req *leafv1.DeleteTagRequest) (*leafv1.DeleteTagResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	if err := tags.Delete(ctx, req.GetName()); err != nil {
		return nil, err
	}
	return new(leafv1.DeleteTagResponse), nil
}

func (s *adminService) ListPeriods(ctx context.Context, req *leafv1.ListPeriodsRequest) (*leafv1.ListPeriodsResponse, error) {
	tags, err := s.NeedTags()
	if err != nil {
		return nil, err
	}
	all, err := tags.Periods(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	res := new(leafv1.ListPeriodsResponse)
	for _, p := range all {
		res.Periods = append(res.Periods, &leafv1.Period{Name: p.Name, MaxId: p.MaxID})
	}
	return res, nil
}

func (s *adminService) RemovePeriod(ctx context.Context, req *leafv1.RemovePeriodRequest) (*leafv1.RemovePeriodResponse, error) {
	tags, err := s.NeedTags()
	if err == nil {
		err = tags.RemovePeriod(ctx, req.GetName(), req.GetPeriod())
	}
	if err != nil {
		return nil, err
	}
	return new(leafv1.RemovePeriodResponse), nil
}

func tagMessage(t segment.Tag) *leafv1.Tag {
	return &leafv1.Tag{
		Name: t.Name, MaxId: t.MaxID, Step: t.Step, Description: t.Options.Description(), Options: t.Options.Others(), Updated: timestamp(t.Updated),
	}
}
