import { Bindings, Nodes, Pods } from '#apis/core/v1.ts'

import type { KindCases, Ours } from '../case.ts'

/** Upstream loses what kind of error it is and answers 500. */
export function invalidBinding(name: string, cause: { reason: string; message: string; field: string }): Ours {
  return {
    because: 'upstream loses what kind of error it is',
    code: 422,
    reason: 'Invalid',
    message: `Binding "${name}" is invalid: ${cause.field}: ${cause.message}`,
    details: { name, kind: 'Binding', causes: [cause] },
  }
}

const notNode = {
  reason: 'FieldValueNotSupported',
  message: 'Unsupported value: "Service": supported values: "Node", "<empty>"',
  field: 'target.kind',
}
const noName = { reason: 'FieldValueRequired', message: 'Required value', field: 'target.name' }

export const binding: KindCases = {
  kind: Bindings,
  given: [
    { kind: Nodes, object: { metadata: { name: 'node-1' } } },
    { kind: Pods, object: { metadata: { name: 'unbound' }, spec: { containers: [{ name: 'web', image: 'nginx' }] } } },
    {
      kind: Pods,
      object: {
        metadata: { name: 'bound' },
        spec: { nodeName: 'node-1', containers: [{ name: 'web', image: 'nginx' }] },
      },
    },
    {
      kind: Pods,
      object: {
        metadata: { name: 'gated' },
        spec: { schedulingGates: [{ name: 'example.com/wait' }], containers: [{ name: 'web', image: 'nginx' }] },
      },
    },
  ],
  valid: { metadata: { name: 'unbound' }, target: { kind: 'Node', name: 'node-1' } },
  refused: [
    { why: 'the target has no name', set: { '/target/name': '' }, ours: invalidBinding('unbound', noName) },
    { why: 'the target is a service', set: { '/target/kind': 'Service' }, ours: invalidBinding('unbound', notNode) },
    { why: 'the pod does not exist', set: { '/metadata/name': 'nobody' } },
    { why: 'the pod has no name', set: { '/metadata/name': undefined } },
    { why: 'the pod is bound already', set: { '/metadata/name': 'bound' } },
    { why: 'the pod is gated', set: { '/metadata/name': 'gated' } },
    {
      why: 'the namespace is another',
      body: {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: 'unbound', namespace: 'b' },
        target: { name: 'node-1' },
      },
    },
    { why: 'the target is missing', set: { '/target': undefined }, ours: invalidBinding('unbound', noName) },
    { why: 'the target is text', set: { '/target': 'node-1' } },
  ],
  taken: [{ why: 'the pod is another', set: { '/metadata/uid': 'other' } }],
}
