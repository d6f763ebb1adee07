package deploy

import (
	"os"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// Envoy's example has only fields of Envoy's own types, with values that these allow, and each route
// leads to a cluster of the file.
func TestEnvoy(t *testing.T) {
	text, err := os.ReadFile("proxies/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	var config bootstrap.Bootstrap
	if err := protojson.Unmarshal(asJSON, &config); err != nil {
		t.Fatal(err)
	}
	clusters := make(map[string]bool)
	for _, c := range config.StaticResources.Clusters {
		clusters[c.Name] = c.LoadAssignment.ClusterName == c.Name
	}
	routes := 0
	visit(t, config.ProtoReflect(), func(m protoreflect.Message) {
		if v, ok := m.Interface().(interface{ ValidateAll() error }); ok {
			if err := v.ValidateAll(); err != nil {
				t.Error(err)
			}
		}
		if m.Descriptor().FullName() == "envoy.config.route.v3.RouteAction" {
			routes++
			name := m.Get(m.Descriptor().Fields().ByName("cluster")).String()
			if !clusters[name] {
				t.Errorf("a route leads to %q; the file has %v", name, clusters)
			}
		}
	})
	if routes != 4 {
		t.Errorf("%d routes, want 4", routes)
	}
}

// visit calls see for a message and all in it, also those inside of Any.
func visit(t *testing.T, m protoreflect.Message, see func(protoreflect.Message)) {
	t.Helper()
	see(m)
	if wrapped, ok := m.Interface().(*anypb.Any); ok {
		inner, err := anypb.UnmarshalNew(wrapped, proto.UnmarshalOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		visit(t, inner.ProtoReflect(), see)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				visit(t, v.Message(), see)
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				visit(t, v.List().Get(i).Message(), see)
			}
		case !f.IsMap() && f.Message() != nil:
			visit(t, v.Message(), see)
		}
		return true
	})
}
