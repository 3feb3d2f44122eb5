package gcp

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	namePart    = `[a-z]([-a-z0-9]{0,61}[a-z0-9])?`
	projectPart = `([a-z0-9.-]{1,63}:)?[a-z][-a-z0-9]{4,28}[a-z0-9]`
)

var (
	imageWhole  = regexp.MustCompile(`^projects/` + projectPart + `/global/images/(family/)?` + namePart + `$`)
	imageShort  = regexp.MustCompile(`^(family/)?` + namePart + `$`)
	imageOther  = regexp.MustCompile(`^` + projectPart + `/(family/)?` + namePart + `$`)
	networkForm = regexp.MustCompile(`^projects/` + projectPart + `/global/networks/` + namePart + `$`)
	subnetForm  = regexp.MustCompile(`^projects/` + projectPart + `/regions/[a-z0-9-]+/subnetworks/` + namePart + `$`)
)

// imagePath returns the path of an image: one of this project by its name or family,
// one of another project with that project before it, or a whole path.
func imagePath(project, image string) (string, error) {
	switch {
	case imageWhole.MatchString(image):
		return image, nil
	case imageShort.MatchString(image):
		return "projects/" + project + "/global/images/" + image, nil
	case imageOther.MatchString(image):
		other, rest, _ := strings.Cut(image, "/")
		return "projects/" + other + "/global/images/" + rest, nil
	}
	return "", fmt.Errorf("%q is no image: want IMAGE, family/FAMILY, PROJECT/IMAGE, PROJECT/family/FAMILY "+
		"or projects/PROJECT/global/images/…", image)
}

func networkPath(project, network string) (string, error) {
	switch {
	case networkForm.MatchString(network):
		return network, nil
	case resource.MatchString(network):
		return "projects/" + project + "/global/networks/" + network, nil
	}
	return "", fmt.Errorf("%q is neither a name nor projects/PROJECT/global/networks/NAME", network)
}

// subnetworkPath returns "" for "": the network then chooses, if it is one that can.
func subnetworkPath(project, subnetwork, region string) (string, error) {
	switch {
	case subnetwork == "", subnetForm.MatchString(subnetwork):
		return subnetwork, nil
	case resource.MatchString(subnetwork):
		return "projects/" + project + "/regions/" + region + "/subnetworks/" + subnetwork, nil
	}
	return "", fmt.Errorf("%q is neither a name nor projects/PROJECT/regions/REGION/subnetworks/NAME", subnetwork)
}

// regionOf is the region that a zone is in: us-central1 of us-central1-a.
func regionOf(zone string) string { return zone[:strings.LastIndexByte(zone, '-')] }

// last is the last part of a path or a link.
func last(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }
