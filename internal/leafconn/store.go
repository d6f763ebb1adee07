package leafconn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
)

// A Store takes ranges off what servers hold in memory. It is a [segment.Store], a
// [segment.Returner] and a [segment.Catalog]. Its grants are guarded by the servers.
type Store struct{ *Conn }

// Advance takes a range of up to n IDs. An error may have cost IDs.
func (s Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	before, _ := s.latest.Load(tag)
	version, _ := before.(string)
	grant, err := s.advance(ctx, &leafv1.AdvanceRequest{Tag: tag, Count: n, Before: version})
	if err == nil {
		s.latest.Store(tag, grant.Version)
	}
	return grant, err
}

// AdvanceStrict passes a call for a tag with strict order, or for a period, on to the servers' store.
func (s Store) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	grant, err := s.advance(ctx, &leafv1.AdvanceRequest{Tag: tag, Count: n, Strict: true, Period: &period})
	if period != "" && errors.Is(err, leaf.ErrInvalid) {
		err = badPeriod(tag, err)
	}
	return grant, err
}

// badPeriod returns the error of a server about a named period without the name of the server, as
// that of a store in this process.
func badPeriod(tag string, err error) error {
	told, ok := errors.AsType[*answer](err)
	if !ok {
		return err
	}
	reason := strings.TrimPrefix(told.text, fmt.Sprintf("tag %q: ", tag))
	return segment.ErrBadPeriod(strings.TrimPrefix(reason, leaf.ErrInvalid.Error()+": "))
}

// AdvanceMasked passes a call for hidden numbers on to the servers.
func (s Store) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	g, err := s.advance(ctx, &leafv1.AdvanceRequest{Tag: tag, Count: n, Strict: true, Period: new(string), Masked: true})
	if err == nil && g.Masked == nil {
		return segment.Grant{}, fmt.Errorf("tag %q: %w: it has no mask", tag, leaf.ErrUnknownTag)
	}
	return g, err
}

func (s Store) advance(ctx context.Context, req *leafv1.AdvanceRequest) (segment.Grant, error) {
	if err := segment.CheckKnown(req.GetTag()); err != nil {
		return segment.Grant{}, err
	}
	hedging := s.hedge
	if req.GetStrict() {
		hedging = never
	}
	return inTurn(ctx, s.Conn, hedging, func(ctx context.Context, srv *server) (segment.Grant, error) {
		res, err := srv.ids.Advance(ctx, req)
		if loop := s.checkRoute(srv); loop != nil {
			return segment.Grant{}, loop
		}
		if err != nil {
			return segment.Grant{}, err
		}
		if err := s.checkStore(srv, res.GetStore()); err != nil {
			return segment.Grant{}, err
		}
		if req.GetStrict() && !res.GetStrict() { // an older server
			return segment.Grant{}, fmt.Errorf("%w: leaf server %s has no strict order: upgrade it", leaf.ErrUnsupported, srv.host)
		}
		return segment.Grant{
			Range: leaf.Range{Start: res.GetRange().GetStart(), End: res.GetRange().GetEnd()},
			Step:  res.GetStep(), Source: srv.host, Version: res.GetVersion(), Store: res.GetStore(), Guarded: true,
			Period: res.GetPeriod(), Masked: res.GetMasked(),
		}, nil
	})
}

// Return gives the unused end of a grant back to the server that it came from.
func (s Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	if err := segment.CheckKnown(tag); err != nil {
		return err
	}
	_, err := once(ctx, s.Conn, last.Source, func(ctx context.Context, srv *server) (*leafv1.ReturnResponse, error) {
		return srv.ids.Return(ctx, &leafv1.ReturnRequest{Tag: tag, Start: start, End: last.Range.End, Version: last.Version})
	})
	return err
}

// Tags lists the tags of the servers' store.
func (s Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		for tag, err := range TagPages(func(req *leafv1.ListTagsRequest) (*leafv1.ListTagsResponse, error) {
			return repeatable(ctx, s.Conn, func(ctx context.Context, srv *server) (*leafv1.ListTagsResponse, error) {
				return srv.admin.ListTags(ctx, req)
			})
		}) {
			if !yield(Tag(tag), err) {
				return
			}
		}
	}
}

// TagPage is the number of tags in a page of a listing.
const TagPage = 10_000

// TagPages lists tags page by page; list returns one page. An error ends the listing.
func TagPages(list func(*leafv1.ListTagsRequest) (*leafv1.ListTagsResponse, error)) iter.Seq2[*leafv1.Tag, error] {
	return func(yield func(*leafv1.Tag, error) bool) {
		for token, more := "", true; more; more = token != "" { // a server without pages has no token
			res, err := list(&leafv1.ListTagsRequest{PageSize: TagPage, PageToken: token})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, tag := range res.GetTags() {
				if !yield(tag, nil) {
					return
				}
			}
			token = res.GetNextPageToken()
		}
	}
}

// Tag returns the tag in a message.
func Tag(m *leafv1.Tag) segment.Tag {
	t := segment.Tag{Name: m.GetName(), MaxID: m.GetMaxId(), Step: m.GetStep(), Options: optionsOf(m)}
	if at := m.GetUpdated(); at != nil {
		t.Updated = at.AsTime()
	}
	return t
}

// Create adds a tag.
func (s Store) Create(ctx context.Context, tag segment.Tag) error {
	if err := tag.Check(); err != nil {
		return err
	}
	res, err := once(ctx, s.Conn, "", func(ctx context.Context, srv *server) (*leafv1.CreateTagResponse, error) {
		return srv.admin.CreateTag(ctx, CreateRequest(tag))
	})
	if err != nil {
		return err
	}
	return CheckOptions(tag.Options, res.GetTag())
}

// Alter changes a tag. The server drops its stock below a raised max_id.
func (s Store) Alter(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
	if err := segment.CheckKnown(name); err != nil {
		return segment.Tag{}, err
	}
	if err := c.Check(); err != nil {
		return segment.Tag{}, err
	}
	if c.IsZero() {
		return s.find(ctx, name)
	}
	res, err := once(ctx, s.Conn, "", func(ctx context.Context, srv *server) (*leafv1.AlterTagResponse, error) {
		res, err := srv.admin.AlterTag(ctx, AlterRequest(name, c))
		if err == nil && c.MaxID != nil && *c.MaxID > 0 && !c.Force { // by force it forgets the tag
			_, err = srv.admin.ObserveTag(ctx, &leafv1.ObserveTagRequest{Name: name, Max: *c.MaxID - 1})
		}
		return res, err
	})
	if err != nil {
		return segment.Tag{}, err
	}
	return Tag(res.GetTag()), CheckOptions(c.Options, res.GetTag())
}

func (s Store) find(ctx context.Context, name string) (segment.Tag, error) {
	for tag, err := range s.Tags(ctx) {
		if err != nil || tag.Name == name {
			return tag, err
		}
	}
	return segment.Tag{}, fmt.Errorf("tag %q: %w", name, leaf.ErrUnknownTag)
}

// Periods lists the periods of a tag.
func (s Store) Periods(ctx context.Context, tag string) ([]segment.Period, error) {
	res, err := repeatable(ctx, s.Conn, func(ctx context.Context, srv *server) (*leafv1.ListPeriodsResponse, error) {
		return srv.admin.ListPeriods(ctx, &leafv1.ListPeriodsRequest{Name: tag})
	})
	if err != nil {
		return nil, err
	}
	var all []segment.Period
	for _, p := range res.GetPeriods() {
		all = append(all, segment.Period{Name: p.GetName(), MaxID: p.GetMaxId()})
	}
	return all, nil
}

// RemovePeriod removes a period.
func (s Store) RemovePeriod(ctx context.Context, tag, period string) error {
	_, err := once(ctx, s.Conn, "", func(ctx context.Context, srv *server) (*leafv1.RemovePeriodResponse, error) {
		return srv.admin.RemovePeriod(ctx, &leafv1.RemovePeriodRequest{Name: tag, Period: period})
	})
	return err
}

// Delete removes a tag.
func (s Store) Delete(ctx context.Context, name string) error {
	if err := segment.CheckKnown(name); err != nil {
		return err
	}
	_, err := once(ctx, s.Conn, "", func(ctx context.Context, srv *server) (*leafv1.DeleteTagResponse, error) {
		return srv.admin.DeleteTag(ctx, &leafv1.DeleteTagRequest{Name: name})
	})
	return err
}
