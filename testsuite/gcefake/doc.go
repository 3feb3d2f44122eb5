// Package gcefake is a Compute Engine that can be broken: a server that speaks the
// REST protocol of compute/v1 as cloud.google.com/go/compute/apiv1 does, with time in
// the test's hand. Behaviour is that of the API's reference
// (https://cloud.google.com/compute/docs/reference/rest/v1); every page that says
// more is named where it is used. Errors are answers that were captured, in testdata,
// each with its source. Start at Start and Server; docs/gcefake.md has the rest.
package gcefake
