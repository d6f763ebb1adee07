package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// CosId's keys: the braces are a part of them.
const (
	segmentsBefore, segmentsAfter = "cosid:{", "}.adder"
	machinesBefore, machinesAfter = "cosid:{", "}:itc_idx"
)

// Redis reads the keys of CosId.
func Redis(ctx context.Context, client goredis.UniversalClient) (Found, error) {
	r := &redisReader{reader{ctx: ctx, system: "CosId"}, client}
	err := r.scan(segmentsBefore, segmentsAfter, r.segment)
	if err == nil {
		err = r.scan(machinesBefore, machinesAfter, r.machines)
	}
	return r.found, err
}

type redisReader struct {
	reader
	client goredis.UniversalClient
}

// scan calls do for the keys of a form.
func (r *redisReader) scan(before, after string, do func(key, name string) error) error {
	each := func(ctx context.Context, node *goredis.Client) error {
		keys := node.Scan(ctx, 0, before+"*"+after, 1000).Iterator()
		for keys.Next(ctx) {
			name := strings.TrimSuffix(strings.TrimPrefix(keys.Val(), before), after)
			if err := do(keys.Val(), name); err != nil {
				return fmt.Errorf("read %s: %w", keys.Val(), err)
			}
		}
		return keys.Err()
	}
	switch c := r.client.(type) {
	case *goredis.ClusterClient:
		return c.ForEachMaster(r.ctx, each)
	case *goredis.Client:
		return each(r.ctx, c)
	}
	return errors.New("unknown kind of Redis client")
}

func (r *redisReader) segment(key, name string) error {
	text, err := r.client.Get(r.ctx, key).Result()
	if err != nil {
		return err
	}
	high, err := strconv.ParseUint(text, 10, 64)
	r.addCosID(key, name, highest{sql.Null[uint64]{V: high, Valid: err == nil}})
	return nil
}

// machines reads a hash of instances: each has its ID and its last time, as in 3|1700000000000.
func (r *redisReader) machines(key, name string) error {
	instances, err := r.client.HGetAll(r.ctx, key).Result()
	if err != nil {
		return err
	}
	var high, last int64
	for _, value := range instances {
		id, ms, _ := strings.Cut(value, "|")
		n, err1 := strconv.ParseInt(id, 10, 64)
		at, err2 := strconv.ParseInt(ms, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		high, last = max(high, n), max(last, at)
	}
	r.noteMachines(name, int64(len(instances)), high, last)
	return nil
}
