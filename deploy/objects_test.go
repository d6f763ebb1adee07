package deploy

import (
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// objects are the output of a chart, in the types of Kubernetes.
type objects struct {
	kinds      []string
	deployment *apps.Deployment
	set        *apps.StatefulSet
	job        *batch.Job
	config     *core.ConfigMap
	service    *core.Service
	peers      *core.Service // without an address of its own
	claim      *core.PersistentVolumeClaim
	budget     *policy.PodDisruptionBudget
	network    *networking.NetworkPolicy
	monitor    *monitoring.ServiceMonitor
}

// decode takes one object; a field that its type lacks is an error.
func (o *objects) decode(t *testing.T, name, text string) {
	t.Helper()
	var meta v1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	var into any
	switch meta.APIVersion + " " + meta.Kind {
	case "apps/v1 Deployment":
		o.deployment = new(apps.Deployment)
		into = o.deployment
	case "apps/v1 StatefulSet":
		o.set = new(apps.StatefulSet)
		into = o.set
	case "batch/v1 Job":
		o.job = new(batch.Job)
		into = o.job
	case "v1 ConfigMap":
		o.config = new(core.ConfigMap)
		into = o.config
	case "v1 Service":
		service := &o.service
		if strings.Contains(text, "clusterIP: None") {
			service = &o.peers
		}
		*service = new(core.Service)
		into = *service
	case "v1 PersistentVolumeClaim":
		o.claim = new(core.PersistentVolumeClaim)
		into = o.claim
	case "policy/v1 PodDisruptionBudget":
		o.budget = new(policy.PodDisruptionBudget)
		into = o.budget
	case "networking.k8s.io/v1 NetworkPolicy":
		o.network = new(networking.NetworkPolicy)
		into = o.network
	case "monitoring.coreos.com/v1 ServiceMonitor":
		o.monitor = new(monitoring.ServiceMonitor)
		into = o.monitor
	default:
		t.Fatalf("%s: unknown kind %v\n%s", name, meta, text)
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
	o.kinds = append(o.kinds, meta.Kind)
}

// pods returns the template of the servers, and the volumes that come from claims.
func (o *objects) pods() (template core.PodTemplateSpec, claims []core.PersistentVolumeClaim) {
	if o.set != nil {
		return o.set.Spec.Template, o.set.Spec.VolumeClaimTemplates
	}
	return o.deployment.Spec.Template, nil
}

// check compares the references between the objects.
func (o *objects) check(t *testing.T) {
	t.Helper()
	pods, claims := o.pods()
	selected := map[string]*v1.LabelSelector{"service": {MatchLabels: o.service.Spec.Selector}}
	if o.set != nil {
		selected["set"] = o.set.Spec.Selector
	} else {
		selected["deployment"] = o.deployment.Spec.Selector
	}
	if o.budget != nil {
		selected["budget"] = o.budget.Spec.Selector
	}
	if o.network != nil {
		selected["network policy"] = &o.network.Spec.PodSelector
	}
	if o.peers != nil {
		selected["peers"] = &v1.LabelSelector{MatchLabels: o.peers.Spec.Selector}
		if o.set.Spec.ServiceName != o.peers.Name || !o.peers.Spec.PublishNotReadyAddresses || o.set.Spec.PodManagementPolicy != apps.ParallelPodManagement {
			t.Errorf("the members do not find each other: %+v, %+v", o.set.Spec, o.peers)
		}
	}
	for name, selector := range selected {
		if s, err := v1.LabelSelectorAsSelector(selector); err != nil || s.Empty() || !s.Matches(labels.Set(pods.Labels)) {
			t.Errorf("the %s selects %v, the pods have %v", name, selector, pods.Labels)
		}
	}
	o.checkPorts(t, &pods.Spec.Containers[0])
	checkVolumes(t, &pods.Spec, claims)
	if o.job != nil {
		checkVolumes(t, &o.job.Spec.Template.Spec, nil)
		if s := o.job.Labels; labels.SelectorFromSet(o.service.Spec.Selector).Matches(labels.Set(o.job.Spec.Template.Labels)) {
			t.Errorf("the service sends requests to the job: %v", s)
		}
	}
}

// checkPorts fails where a named port is not a port of the container.
func (o *objects) checkPorts(t *testing.T, c *core.Container) {
	t.Helper()
	ports := make(map[string]bool)
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	want := []string{c.ReadinessProbe.HTTPGet.Port.StrVal, c.LivenessProbe.HTTPGet.Port.StrVal}
	named := make(map[string]bool)
	for _, service := range []*core.Service{o.service, o.peers} {
		if service == nil {
			continue
		}
		for _, p := range service.Spec.Ports {
			want, named[p.Name] = append(want, p.TargetPort.StrVal), true
		}
	}
	if len(named) != len(ports) {
		t.Errorf("the service has the ports %v, the pods %v", named, ports)
	}
	if o.network != nil {
		for _, p := range o.network.Spec.Ingress[0].Ports {
			want = append(want, p.Port.StrVal)
		}
		if len(o.network.Spec.Ingress[0].From) == 0 {
			t.Error("the network policy lets everyone in")
		}
	}
	for _, name := range want {
		if !ports[name] {
			t.Errorf("no port %q of %v", name, c.Ports)
		}
	}
	if o.monitor == nil {
		return
	}
	selector, err := v1.LabelSelectorAsSelector(&o.monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(o.service.Labels)) || !named[o.monitor.Spec.Endpoints[0].Port] {
		t.Errorf("the monitor %v does not find the service %v", o.monitor.Spec, o.service.Labels)
	}
}

// checkVolumes wants each mount to have a volume and each volume a mount, and each variable that
// names a file to name one in a mount.
func checkVolumes(t *testing.T, pod *core.PodSpec, claims []core.PersistentVolumeClaim) {
	t.Helper()
	volumes := make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range claims {
		volumes[c.Name] = true
	}
	c := pod.Containers[0]
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 {
		t.Errorf("unmounted: %v", volumes)
	}
	for _, e := range c.Env {
		found := !strings.HasPrefix(e.Value, "/")
		for _, m := range c.VolumeMounts {
			found = found || e.Value == m.MountPath || strings.HasPrefix(e.Value, m.MountPath+"/")
		}
		if !found {
			t.Errorf("%s=%s is in no mount", e.Name, e.Value)
		}
	}
	if pod.SecurityContext == nil || !*pod.SecurityContext.RunAsNonRoot || !*c.SecurityContext.ReadOnlyRootFilesystem || *pod.AutomountServiceAccountToken {
		t.Errorf("the pod has more rights than it needs: %v, %v", pod.SecurityContext, c.SecurityContext)
	}
}
