package main

import (
	v1 "github.com/egressfleet/egressfleet/api/v1"
	"github.com/egressfleet/egressfleet/providers"
)

// shownProviders is what the API tells of the configuration; false where there is none
// to tell of.
func (p *process) shownProviders() (v1.ProviderList, bool) {
	if p.providers == nil {
		return v1.ProviderList{}, false
	}
	status := p.providers.Status()
	list := v1.ProviderList{
		Configuration: v1.ProviderConfiguration{
			State: v1.ConfigurationLoaded, File: status.File, LoadedAt: status.LoadedAt.UTC(),
			Error: status.Fault, Since: status.Since.UTC(),
		},
		Items: []v1.Provider{},
	}
	switch {
	case status.LoadedAt.IsZero():
		list.Configuration.State = v1.ConfigurationFailed
	case status.Fault != "":
		list.Configuration.State = v1.ConfigurationRetained
	}
	for _, info := range status.Providers {
		list.Items = append(list.Items, v1.Provider{
			Name: info.Name, Type: info.Type, Profile: axes(info.Profile), LoadedAt: info.BuiltAt.UTC(),
		})
	}
	return list, true
}

// axes are a profile's answers by the name of their axis; none where it has none.
func axes(p providers.Profile) map[string]string {
	all := map[string]string{}
	for _, axis := range p.Axes() {
		if axis.Choice != "" {
			all[axis.Name] = axis.Choice
		}
	}
	return all
}
