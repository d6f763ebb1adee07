package rpcapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

type adminService struct {
	ids  *issuer.Issuer
	tags *issuer.Tags
	info Info
}

func (s *adminService) ListTags(ctx context.Context, _ *leafv1.ListTagsRequest) (*leafv1.ListTagsResponse, error) {
	res := new(leafv1.ListTagsResponse)
	for tag, err := range s.tags.All(ctx) {
		if err != nil {
			return nil, err
		}
		res.Tags = append(res.Tags, tagMessage(tag))
	}
	slices.SortFunc(res.Tags, func(a, b *leafv1.Tag) int { return strings.Compare(a.GetName(), b.GetName()) })
	return res, nil
}

func (s *adminService) CreateTag(ctx context.Context, req *leafv1.CreateTagRequest) (*leafv1.CreateTagResponse, error) {
	tag := segment.Tag{Name: req.GetName(), MaxID: 1, Step: req.GetStep(), Description: req.GetDescription()}
	if req.MaxId != nil {
		tag.MaxID = req.GetMaxId()
	}
	tag, err := s.tags.Create(ctx, tag)
	if err != nil {
		return nil, err
	}
	return &leafv1.CreateTagResponse{Tag: tagMessage(tag)}, nil
}

func (s *adminService) AlterTag(ctx context.Context, req *leafv1.AlterTagRequest) (*leafv1.AlterTagResponse, error) {
	change := issuer.Change{
		Change:  segment.Change{Step: req.Step, MaxID: req.MaxId, Force: req.GetForce(), Description: req.Description},
		RaiseBy: req.RaiseBy,
	}
	tag, err := s.tags.Alter(ctx, req.GetName(), change)
	if err != nil {
		return nil, err
	}
	return &leafv1.AlterTagResponse{Tag: tagMessage(tag)}, nil
}

func (s *adminService) DeleteTag(ctx context.Context, req *leafv1.DeleteTagRequest) (*leafv1.DeleteTagResponse, error) {
	if err := s.tags.Delete(ctx, req.GetName()); err != nil {
		return nil, err
	}
	return new(leafv1.DeleteTagResponse), nil
}

func (s *adminService) Status(ctx context.Context, _ *leafv1.StatusRequest) (*leafv1.StatusResponse, error) {
	res := &leafv1.StatusResponse{
		Version: s.info.Version,
		Started: timestamp(s.info.Started),
		Listen:  s.info.Address,
		Store:   s.storeStatus(ctx),
	}
	for _, scheme := range s.ids.Schemes() {
		ready := scheme != issuer.Segment || s.tags.Ready()
		res.Schemes = append(res.Schemes, &leafv1.SchemeStatus{Name: scheme, Ready: ready})
	}
	for _, st := range s.tags.Stats() {
		res.Tags = append(res.Tags, statsMessage(st))
	}
	return res, nil
}

func (s *adminService) storeStatus(ctx context.Context) *leafv1.StoreStatus {
	res := &leafv1.StoreStatus{Name: s.info.StoreName, Reachable: true}
	if err := s.tags.Probe(ctx); err != nil {
		res.Reachable, res.LastError = false, err.Error()
	}
	return res
}

func tagMessage(t segment.Tag) *leafv1.Tag {
	return &leafv1.Tag{
		Name: t.Name, MaxId: t.MaxID, Step: t.Step, Description: t.Description, Updated: timestamp(t.Updated),
	}
}

func statsMessage(s segment.Stats) *leafv1.TagStats {
	res := &leafv1.TagStats{
		Tag: s.Tag, Loaded: s.Loaded,
		Stock: s.Stock, Issued: s.Issued, Step: s.Step, Rate: s.Rate, Lasts: durationpb.New(s.Lasts),
		Refills: s.Refills, Failures: s.Failures, Regressions: s.Regressions, Refilling: s.Refilling,
		FailingSince: timestamp(s.FailingSince),
	}
	if s.Err != nil {
		res.Error = s.Err.Error()
	}
	for _, seg := range s.Segments {
		r := &leafv1.Range{Start: seg.Range.Start, End: seg.Range.End}
		res.Segments = append(res.Segments, &leafv1.SegmentStats{Range: r, Next: seg.Next})
	}
	return res
}

// timestamp leaves a time that is not known out of the message.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
