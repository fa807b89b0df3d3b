/**
 * The match rules of test webhooks and policies, with every member set. A new object each time, because tests change
 * it.
 */
export function rule(): object {
  return {
    operations: ['CREATE', 'UPDATE'],
    apiGroups: ['apps'],
    apiVersions: ['v1'],
    resources: ['deployments', 'pods/status'],
    scope: 'Namespaced',
  }
}

export function selector(): object {
  return { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'k', operator: 'In', values: ['v'] }] }
}
