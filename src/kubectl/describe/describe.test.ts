import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import { DESCRIBERS } from './describers.ts'
import { ANY_KIND, readable } from './generic.ts'
import type { RelatedObjects } from './related.ts'

function around(lists: Readonly<Record<string, readonly object[]>> = {}): RelatedObjects {
  return {
    nowMs: Date.parse('2026-01-01T01:00:00Z'),
    showsEvents: true,
    list: (resource) => Promise.resolve((lists[resource] ?? []) as never[]),
    get: () => Promise.reject(new Error('not there')),
  }
}

function describeKind(
  kind: string,
  object: object,
  lists: Readonly<Record<string, readonly object[]>> = {},
): Promise<string> {
  const found = DESCRIBERS[kind]
  assert.ok(found)
  return found.describe(object as KubeObject, around(lists))
}

const POD = {
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shown', labels: { b: '2', a: '1' }, uid: 'u' },
  spec: {
    nodeName: 'n',
    containers: [{ name: 'main', image: 'nginx', ports: [{ containerPort: 80, protocol: 'TCP' }] }],
    tolerations: [{ operator: 'Exists' }],
  },
  status: { phase: 'Running', hostIP: '10.0.0.1', podIP: '10.1.0.1', podIPs: [{ ip: '10.1.0.1' }] },
}

describe('kubectl describe', () => {
  it('prints a pod in columns, with one label per line', async () => {
    const text = await describeKind('Pod', POD)
    assert.ok(
      text.startsWith(
        'Name:         web\nNamespace:    shown\nNode:         n/10.0.0.1\nLabels:       a=1\n              b=2\n',
      ),
      text,
    )
    assert.ok(
      text.includes(
        'Containers:\n  main:\n    Image:        nginx\n    Port:         80/TCP\n    Host Port:    0/TCP\n',
      ),
      text,
    )
    assert.ok(
      text.endsWith(
        'QoS Class:        BestEffort\nNode-Selectors:   <none>\nTolerations:      op=Exists\nEvents:           <none>\n',
      ),
      text,
    )
  })

  it('sorts events by their last occurrence and prints the count', async () => {
    const event = (reason: string, lastTimestamp: string, count: number): object => ({
      metadata: {},
      type: 'Normal',
      reason,
      message: ` ${reason} it `,
      count,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp,
      involvedObject: { fieldPath: 'spec' },
      source: { component: 'kubelet' },
    })
    const events = [event('Late', '2026-01-01T00:59:00Z', 3), event('Early', '2026-01-01T00:00:00Z', 1)]
    const text = await describeKind(
      'ConfigMap',
      { kind: 'ConfigMap', metadata: { name: 'c' }, data: { k: 'v' } },
      { 'v1/events': events },
    )
    assert.ok(text.includes('Data\n====\nk:\n----\nv\n\n\nBinaryData\n====\n\n'), text)
    assert.match(
      text,
      / {2}Normal {2}Early {3}60m {16}kubelet {2}spec: Early it\n {2}Normal {2}Late {4}60s \(x3 over 60m\) {2}kubelet {2}spec: Late it\n$/,
    )
  })

  it('prints rules of a role by resource', async () => {
    const rules = [
      { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['list', 'get'] },
      { nonResourceURLs: ['/healthz'], verbs: ['get'] },
    ]
    const text = await describeKind('ClusterRole.rbac.authorization.k8s.io', {
      kind: 'ClusterRole',
      metadata: { name: 'r' },
      rules,
    })
    assert.ok(
      text.includes(
        '             [/healthz]         []              [get]\n  pods       []                 []              [list get]\n',
      ),
      text,
    )
  })

  it('escapes control characters for terminals', async () => {
    const text = await describeKind('Secret', { kind: 'Secret', metadata: { name: '\u001b[1mx' }, data: { a: 'aGk=' } })
    assert.ok(text.includes('^[[1mx') && text.includes('a:  2 bytes\n'), text)
  })
})

describe('kubectl describe of a kind without a describer', () => {
  it('prints fields in order with readable names', async () => {
    const object = {
      apiVersion: 'example.com/v1',
      kind: 'W',
      metadata: { name: 'w', managedFields: [{}] },
      spec: { podCIDRs: ['a'], n: 1 },
    }
    const text = await ANY_KIND.describe(object, { ...around(), showsEvents: false })
    assert.equal(
      text,
      'Name:         w\nNamespace:    \nLabels:       <none>\nAnnotations:  <none>\nAPI Version:  example.com/v1\nKind:         W\nMetadata:\nSpec:\n  N:  1\n  Pod CIDRs:\n    a\n',
    )
  })

  it("makes names readable with upstream's rules", () => {
    const rows = {
      apiVersion: 'API Version',
      podCIDRs: 'Pod CIDRs',
      uid: 'UID',
      'a.b': 'a.b',
      hostIP: 'Host IP',
      x: 'X',
    }
    for (const [name, text] of Object.entries(rows)) assert.equal(readable(name), text)
  })
})
