//go:build linux

package kubelab

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grant gives a user exactly some rights in a namespace, by a Role of the user's name,
// and waits until the API server has heard of them. What was granted there before is
// replaced.
func (c *Cluster) Grant(ctx context.Context, user, namespace string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: user, Namespace: namespace}
	roles, bindings := c.Admin.RbacV1().Roles(namespace), c.Admin.RbacV1().RoleBindings(namespace)
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	_, err := roles.Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if _, err = roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			return err
		}
		return c.granted(ctx, user, namespace, rules)
	}
	_, bound := bindings.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err := errors.Join(err, bound); err != nil {
		return err
	}
	return c.granted(ctx, user, namespace, rules)
}

// granted waits until every right is there: the API server learns of a Role as any other
// client does.
func (c *Cluster) granted(ctx context.Context, user, namespace string, rules []rbacv1.PolicyRule) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	for _, ask := range reviews(rules) {
		ask.Namespace = namespace
		err := c.api.until(ctx, func(ctx context.Context) error {
			review, err := c.Admin.AuthorizationV1().SubjectAccessReviews().Create(ctx,
				&authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &ask},
				}, metav1.CreateOptions{})
			if err == nil && !review.Status.Allowed {
				err = fmt.Errorf("%s may not %s %s in %q yet", user, ask.Verb, ask.Resource, namespace)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reviews are the questions for the rights of some rules, one by one.
func reviews(rules []rbacv1.PolicyRule) (all []authorizationv1.ResourceAttributes) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					names := rule.ResourceNames
					if len(names) == 0 {
						names = []string{""}
					}
					for _, name := range names {
						all = append(all, authorizationv1.ResourceAttributes{
							Group: group, Resource: resource, Verb: verb, Name: name,
						})
					}
				}
			}
		}
	}
	return all
}

// GrantEverywhere gives a user exactly some rights in every namespace of the cluster.
func (c *Cluster) GrantEverywhere(ctx context.Context, user string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: user}
	_, made := c.Admin.RbacV1().ClusterRoles().Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	_, bound := c.Admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err := errors.Join(made, bound); err != nil {
		return err
	}
	return c.granted(ctx, user, "", rules)
}
