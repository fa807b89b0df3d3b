/** Creates the match rules of webhooks and policies in tests, with every field set. */
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
