import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ServedKind } from '#client/discovery.ts'

import { findNamed } from './resource-names.ts'

function served(text: string, shortNames: readonly string[] = [], singular?: string): ServedKind {
  const [kind = '', plural = '', apiVersion = ''] = text.split(' ')
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  return {
    kind,
    plural,
    singular: singular ?? kind.toLowerCase(),
    group,
    version,
    shortNames,
    isPreferred: !version.includes('beta') && version !== 'v1-old',
  } as unknown as ServedKind
}

const KINDS = [
  served('Pod pods v1', ['po']),
  served('Event events v1', ['ev']),
  served('Event events events.k8s.io/v1', ['ev']),
  served('Deployment deployments apps/v1', ['deploy']),
  served('HorizontalPodAutoscaler horizontalpodautoscalers autoscaling/v2', ['hpa']),
  served('HorizontalPodAutoscaler horizontalpodautoscalers autoscaling/v1-old', ['hpa']),
  served('StorageClass storageclasses storage.k8s.io/v1', ['sc']),
  served('Thief thieves example.com/v1', ['pod', 'deployments', 'po', 'hpa']),
  served('Gadget things example.com/v1', ['th'], 'thing'),
  served('Probe probes example.com/v1beta1', ['th']),
]

function named(text: string): string | undefined {
  const found = findNamed(KINDS, text)?.kind
  return found && `${found.plural}.${found.version}.${found.group}`
}

describe('kubectl resource argument', () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ['po', 'pods.v1.'],
    ['Pod', 'pods.v1.'],
    ['PODS', 'pods.v1.'],
    ['deploy.apps', 'deployments.v1.apps'],
    ['deployments.v1.apps', 'deployments.v1.apps'],
    ['horizontalpodautoscalers.v1-old.autoscaling', 'horizontalpodautoscalers.v1-old.autoscaling'],
    // client-go forgets the version when it expands a short name.
    ['hpa.v1-old.autoscaling', 'horizontalpodautoscalers.v2.autoscaling'],
    ['events', 'events.v1.'],
    ['events.events.k8s.io', 'events.v1.events.k8s.io'],
    ['storageclass.storage', 'storageclasses.v1.storage.k8s.io'],
    ['pods.v1', undefined],
    ['PO', undefined],
  ]
  for (const [text, expected] of cases) it(`may be ${text}`, () => assert.equal(named(text), expected))

  it('refers to the full name of a resource rather than the short name of a custom resource', () => {
    for (const text of ['pod', 'deployments']) assert.deepEqual(findNamed(KINDS, text)?.alsoNamed, [], text)
    assert.equal(named('pod'), 'pods.v1.')
    assert.equal(named('deployments'), 'deployments.v1.apps')
    assert.equal(named('pod.example.com'), 'thieves.v1.example.com')
  })

  it('may be a short name with the beginning of a group name', () => {
    assert.equal(named('hpa.autoscal'), 'horizontalpodautoscalers.v2.autoscaling')
    assert.equal(named('hpa.v1-old.autoscal'), 'horizontalpodautoscalers.v1-old.autoscaling')
    assert.equal(named('sc.storage'), 'storageclasses.v1.storage.k8s.io')
  })

  it('may be a kind whose name differs from its resource, in its group only', () => {
    assert.equal(named('Gadget.example.com'), 'things.v1.example.com')
    assert.equal(named('gadget.v1.example.com'), 'things.v1.example.com')
    assert.equal(named('gadget'), undefined)
    assert.equal(named('gadget.example'), undefined)
  })

  it('causes one warning if other resources have the same short name', () => {
    assert.deepEqual(findNamed(KINDS, 'po')?.alsoNamed, ['thieves.example.com'])
    assert.deepEqual(findNamed(KINDS, 'hpa')?.alsoNamed, ['thieves.example.com'])
    assert.deepEqual(findNamed(KINDS, 'th.example.com')?.alsoNamed, ['probes.example.com'])
    assert.deepEqual(findNamed(KINDS, 'deploy')?.alsoNamed, [])
  })
})
