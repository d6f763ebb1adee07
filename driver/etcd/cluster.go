package etcd

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// surveyTime is how long members have to tell which cluster they are of before the
// first call goes ahead without them.
const surveyTime = 500 * time.Millisecond

// A membership is which cluster a member was found to be of.
type membership struct {
	cluster uint64
	addr    string
}

// same reports an error if an answer from addr comes from another cluster than those
// before. The first one decides, for as long as the client lives.
func (c *client) same(addr string, header *etcdserverpb.ResponseHeader) error {
	got := &membership{header.GetClusterId(), addr}
	c.home.CompareAndSwap(nil, got)
	home := c.home.Load()
	if home.cluster == got.cluster {
		return nil
	}
	c.surveyed.Store(false)
	return fmt.Errorf("etcd at %s is of cluster %x, and what answered at %s of cluster %x, which know nothing of each other's writes: "+
		"name the members of one cluster in the URL; if the cluster was restored, raise every counter (leaf tag raise --all) and restart Leaf",
		addr, got.cluster, home.addr, home.cluster)
}

// survey asks the members which cluster they are of, before the first call and again
// after any two differed: one that is never turned to could still serve others. Who
// does not answer is looked at when it does.
func (c *client) survey(ctx context.Context) error {
	if len(c.links) == 1 || c.surveyed.Load() {
		return nil
	}
	c.surveying.Lock()
	defer c.surveying.Unlock()
	if c.surveyed.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	headers := make([]*etcdserverpb.ResponseHeader, len(c.links))
	var wg sync.WaitGroup
	for i, l := range c.links {
		wg.Go(func() {
			if resp, err := l.do(ctx, txn{then: []clientv3.Op{clientv3.OpGet(c.prefix)}}); err == nil {
				headers[i] = resp.Header
			}
		})
	}
	wg.Wait()
	for i, header := range headers {
		if header == nil {
			continue
		}
		c.surveyed.Store(true)
		if err := c.same(c.links[i].addr, header); err != nil {
			return err
		}
	}
	return nil
}

// server names the cluster, as [segment.Grant].Server has it.
func (c *client) server() string { return strconv.FormatUint(c.home.Load().cluster, 16) }
