// Upstream's cloud-controller-manager with a provider that asks the script it was started by, over HTTP: what `--cloud-config` has is its address.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
)

type cloud struct{ url string }

// call asks the script; what it refuses is an error with its text.
func (c *cloud) call(method string, args map[string]any, result any) error {
	body, err := json.Marshal(args)
	if err != nil {
		return err
	}
	answer, err := http.Post(c.url+"/"+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode == http.StatusNotImplemented {
		return cloudprovider.ImplementedElsewhere
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(string(text))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

func (c *cloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool)                 { return c, true }
func (c *cloud) Instances() (cloudprovider.Instances, bool)                       { return nil, false }
func (c *cloud) InstancesV2() (cloudprovider.InstancesV2, bool)                   { return c, true }
func (c *cloud) Zones() (cloudprovider.Zones, bool)                               { return nil, false }
func (c *cloud) Clusters() (cloudprovider.Clusters, bool)                         { return nil, false }
func (c *cloud) Routes() (cloudprovider.Routes, bool)                             { return c, true }
func (c *cloud) ProviderName() string                                             { return "pretend" }
func (c *cloud) HasClusterID() bool                                               { return true }

func (c *cloud) InstanceExists(_ context.Context, node *v1.Node) (exists bool, err error) {
	err = c.call("exists", map[string]any{"node": node.Name}, &exists)
	return exists, err
}

func (c *cloud) InstanceShutdown(_ context.Context, node *v1.Node) (isOff bool, err error) {
	err = c.call("isShutDown", map[string]any{"node": node.Name}, &isOff)
	return isOff, err
}

func (c *cloud) InstanceMetadata(_ context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
	var found *struct {
		ProviderID   string            `json:"providerId"`
		InstanceType string            `json:"instanceType"`
		Addresses    []v1.NodeAddress  `json:"addresses"`
		Zone         string            `json:"zone"`
		Region       string            `json:"region"`
		Labels       map[string]string `json:"labels"`
	}
	if err := c.call("metadata", map[string]any{"node": node.Name}, &found); err != nil || found == nil {
		return nil, err
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:       found.ProviderID,
		InstanceType:     found.InstanceType,
		NodeAddresses:    found.Addresses,
		Zone:             found.Zone,
		Region:           found.Region,
		AdditionalLabels: found.Labels,
	}, nil
}

func about(service *v1.Service, nodes []*v1.Node) map[string]any {
	var hosts []string
	for _, node := range nodes {
		hosts = append(hosts, node.Name)
	}
	return map[string]any{"service": service.Namespace + "/" + service.Name, "nodes": hosts, "ports": len(service.Spec.Ports)}
}

func (c *cloud) GetLoadBalancer(_ context.Context, _ string, service *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	var status *v1.LoadBalancerStatus
	err := c.call("find", about(service, nil), &status)
	return status, status != nil, err
}

func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, service *v1.Service) string {
	return cloudprovider.DefaultLoadBalancerName(service)
}

func (c *cloud) EnsureLoadBalancer(_ context.Context, _ string, service *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	var status *v1.LoadBalancerStatus
	err := c.call("ensure", about(service, nodes), &status)
	return status, err
}

func (c *cloud) UpdateLoadBalancer(_ context.Context, _ string, service *v1.Service, nodes []*v1.Node) error {
	return c.call("update", about(service, nodes), nil)
}

func (c *cloud) EnsureLoadBalancerDeleted(_ context.Context, _ string, service *v1.Service) error {
	return c.call("remove", about(service, nil), nil)
}

type route struct {
	Name           string           `json:"name"`
	Node           string           `json:"node"`
	Addresses      []v1.NodeAddress `json:"addresses"`
	TellsAddresses bool             `json:"tellsAddresses"`
	Destination    string           `json:"destination"`
	IsBlackhole    bool             `json:"isBlackhole"`
}

func (c *cloud) ListRoutes(context.Context, string) ([]*cloudprovider.Route, error) {
	var found []route
	if err := c.call("listRoutes", map[string]any{}, &found); err != nil {
		return nil, err
	}
	var routes []*cloudprovider.Route
	for _, one := range found {
		routes = append(routes, &cloudprovider.Route{
			Name:                one.Name,
			TargetNode:          types.NodeName(one.Node),
			EnableNodeAddresses: one.TellsAddresses,
			TargetNodeAddresses: one.Addresses,
			DestinationCIDR:     one.Destination,
			Blackhole:           one.IsBlackhole,
		})
	}
	return routes, nil
}

func told(one *cloudprovider.Route) map[string]any {
	return map[string]any{"node": string(one.TargetNode), "addresses": one.TargetNodeAddresses, "destination": one.DestinationCIDR}
}

func (c *cloud) CreateRoute(_ context.Context, _ string, _ string, one *cloudprovider.Route) error {
	return c.call("createRoute", told(one), nil)
}

func (c *cloud) DeleteRoute(_ context.Context, _ string, one *cloudprovider.Route) error {
	return c.call("removeRoute", told(one), nil)
}

func main() {
	cloudprovider.RegisterCloudProvider("pretend", func(file io.Reader) (cloudprovider.Interface, error) {
		url, err := io.ReadAll(file)
		return &cloud{url: strings.TrimSpace(string(url))}, err
	})
	settings, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		panic(err)
	}
	open := func(config *config.CompletedConfig) cloudprovider.Interface {
		told := config.ComponentConfig.KubeCloudShared.CloudProvider
		found, err := cloudprovider.InitCloudProvider(told.Name, told.CloudConfigFile)
		if err != nil {
			panic(err)
		}
		return found
	}
	loops := app.DefaultInitFuncConstructors
	os.Exit(cli.Run(app.NewCloudControllerManagerCommand(settings, open, loops, names.CCMControllerAliases(), cliflag.NamedFlagSets{}, wait.NeverStop)))
}
