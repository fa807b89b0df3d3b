import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ServedKind } from '#client/discovery.ts'

import type { Info } from '../builder/select-options.ts'
import { PODS } from '../streams/target-pod.ts'
import { applySetId, membersOf, parentPatch } from './applyset.ts'

const SECRETS: ServedKind = { ...PODS, kind: 'Secret', plural: 'secrets' }
const PARENT = { kind: SECRETS, name: 'mine', namespace: 'default' }

test('an apply set derives its ID from its parent object', () => {
  // sha256 of "mine.default.Secret.", in the alphabet of URLs.
  assert.match(applySetId(PARENT), /^applyset-[\w-]{43}-v1$/)
  assert.notEqual(applySetId(PARENT), applySetId({ ...PARENT, namespace: 'other' }))
})

test('an apply set records kinds and namespaces in annotations of its parent object', () => {
  const deployments = { ...PODS, group: 'apps', kind: 'Deployment' }
  const infos: Info[] = [
    { kind: PODS, namespace: 'default', name: 'a', source: '' },
    { kind: deployments, namespace: 'b', name: 'a', source: '' },
    { kind: { ...PODS, kind: 'Node', namespaced: false }, namespace: '', name: 'a', source: '' },
  ]
  const { metadata } = parentPatch(PARENT, membersOf(infos)) as { metadata: { annotations: Record<string, string> } }
  assert.equal(metadata.annotations['applyset.kubernetes.io/contains-group-kinds'], 'Deployment.apps,Node,Pod')
  assert.equal(metadata.annotations['applyset.kubernetes.io/additional-namespaces'], 'b')
})
