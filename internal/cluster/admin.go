package cluster

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/internal/hint"
)

// An Admin changes and shows a cluster through the ports of its members.
type Admin struct{ caller }

// NewAdmin returns an Admin over the peers of c, with its certificates.
func NewAdmin(c Config) (*Admin, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	caller, err := newCaller(c)
	return &Admin{caller}, err
}

// Add adds a member at an address. A server there may then join once.
func (a *Admin) Add(ctx context.Context, addr string) (info MemberInfo, err error) {
	probe := a.config
	probe.Address = addr
	if _, err := probe.withDefaults(); err != nil {
		return info, err
	}
	if err := probe.checkTLS(addr); err != nil {
		return info, err
	}
	_, err = a.first(ctx, http.MethodPost, pathMembers, addRequest{addr}, &info)
	return info, err
}

// Remove removes the member with an ID or an address.
func (a *Admin) Remove(ctx context.Context, which string) error {
	_, err := a.first(ctx, http.MethodDelete, pathMembers+"/"+url.PathEscape(which), nil, &struct{}{})
	return err
}

// first sends a request to the first peer that answers, and names it.
func (a *Admin) first(ctx context.Context, method, path string, request, answer any) (peer string, err error) {
	var failed failures.List
	for _, peer := range a.config.Peers {
		err := a.ask(ctx, method, peer, path, request, answer)
		if _, answered := errors.AsType[*peerError](err); err == nil || answered {
			return peer, err
		}
		failed = append(failed, err)
	}
	return "", failed.Err()
}

// Status returns the cluster as the first peer knows it that answers, with the members that do not
// answer.
func (a *Admin) Status(ctx context.Context) (status Status, err error) {
	if _, err := a.first(ctx, http.MethodGet, pathMembers, nil, &status); err != nil {
		return status, err
	}
	var wg sync.WaitGroup
	for i := range status.Members {
		wg.Go(func() {
			other := &status.Members[i]
			switch its, err := a.status(ctx, other.Address); {
			case err != nil:
				other.Error = err.Error()
			case its.Token != status.Token:
				other.Error = hint.ErrOtherCluster.Error()
			case its.Member != other.ID:
				other.Error = "another member, " + its.Member + ", answers there"
			}
		})
	}
	wg.Wait()
	slices.SortFunc(status.Members, func(a, b MemberInfo) int { return strings.Compare(a.Address, b.Address) })
	return status, nil
}
