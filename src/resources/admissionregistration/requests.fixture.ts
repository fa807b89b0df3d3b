/** Which requests a hook or a policy of the tests is about, with every member set. New each time: tests change them. */
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
