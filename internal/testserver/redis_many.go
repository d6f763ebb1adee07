package testserver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const redisSlots = 16384

// A RedisCluster is a Redis Cluster of three primaries, at first without replicas.
type RedisCluster struct {
	Nodes    []*RedisServer
	replicas []*RedisServer
}

// RedisClusterOf3 starts a cluster that ends with t.
func RedisClusterOf3(t TB) *RedisCluster {
	t.Helper()
	c, err := StartRedisCluster()
	return until(t, c, err)
}

// StartRedisCluster starts a cluster that ends with [RedisCluster.Close].
func StartRedisCluster() (*RedisCluster, error) {
	c := &RedisCluster{}
	for range 3 {
		if err := c.add(); err != nil {
			c.Close()
			return nil, err
		}
	}
	if err := c.join(); err != nil {
		c.Close()
		return nil, fmt.Errorf("start redis cluster: %w", err)
	}
	return c, nil
}

// AddReplica starts a replica of a node and returns when it has caught up.
func (c *RedisCluster) AddReplica(t TB, of *RedisServer) *RedisServer {
	t.Helper()
	replica, err := c.addReplica(of)
	if err != nil {
		t.Fatalf("add a replica to the redis cluster: %v", err)
	}
	return replica
}

func (c *RedisCluster) addReplica(of *RedisServer) (*RedisServer, error) {
	if err := c.add(); err != nil {
		return nil, err
	}
	id, err := of.Do("CLUSTER", "MYID")
	if err != nil {
		return nil, err
	}
	replica := c.Nodes[len(c.Nodes)-1]
	c.Nodes = c.Nodes[:len(c.Nodes)-1] // which are the primaries
	c.replicas = append(c.replicas, replica)
	bus := replica.config[len(replica.config)-1][1]
	if _, err := of.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(replica.Port), bus); err != nil {
		return nil, err
	}
	err = replica.proc.await("wait for the cluster", func() error {
		_, err := replica.Do("CLUSTER", "REPLICATE", id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return replica, replica.AwaitInfo("replication", "master_link_status:up")
}

func (c *RedisCluster) add() error {
	bus, err := FreePort()
	if err != nil {
		return err
	}
	node, err := StartRedis(&RedisOptions{Config: [][2]string{{"cluster-enabled", "yes"},
		{"cluster-port", strconv.Itoa(bus)}, {"cluster-node-timeout", "2000"}}})
	if err != nil {
		return err
	}
	node.config = append(node.config, [2]string{"cluster-port", strconv.Itoa(bus)})
	c.Nodes = append(c.Nodes, node)
	return nil
}

// join deals out the slots and has the nodes meet.
func (c *RedisCluster) join() error {
	n := len(c.Nodes)
	for i, node := range c.Nodes {
		from, to := strconv.Itoa(i*redisSlots/n), strconv.Itoa((i+1)*redisSlots/n-1)
		if _, err := node.Do("CLUSTER", "ADDSLOTSRANGE", from, to); err != nil {
			return err
		}
		if _, err := node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		bus := node.config[len(node.config)-1][1]
		if _, err := c.Nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(node.Port), bus); i > 0 && err != nil {
			return err
		}
	}
	for _, node := range c.Nodes {
		err := node.proc.await("wait for the cluster", func() error {
			info, err := node.Do("CLUSTER", "INFO")
			if err == nil && (!strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(n))) {
				err = errors.New(info)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// URL names all nodes.
func (c *RedisCluster) URL() string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// Do sends a command to each node until one takes it, see [RedisServer.Do].
func (c *RedisCluster) Do(args ...string) (answer string, err error) {
	for _, node := range c.Nodes {
		if answer, err = node.Do(args...); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			return answer, err
		}
	}
	return answer, err
}

// Close ends the cluster and deletes its data.
func (c *RedisCluster) Close() {
	for _, node := range append(c.Nodes, c.replicas...) {
		node.Close()
	}
}
