/**
 * Tests which fields no manager owns after a write (reset fields), for every kind with subresources, against upstream's
 * table.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { resetsOf } from '#apiserver/registry/field-tracking.ts'

import { createResources } from './index.ts'

/** By subresource, only where it differs from STATUS and WHOLE. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  certificatesigningrequests: ['spec', 'status'],
  'certificatesigningrequests/approval': ['spec', 'status.certificate'],
  'certificatesigningrequests/status': ['spec', 'status.conditions'],
  'deployments/status': ['spec', 'metadata.labels'],
  'namespaces/finalize': ['status'],
  podcertificaterequests: [],
  podgroups: [],
  'pods/binding': [],
  'pods/ephemeralcontainers': [],
  'pods/resize': [],
  'pods/status': ['spec', 'metadata.deletionTimestamp', 'metadata.ownerReferences'],
}

/** Kinds whose metadata can be written, and so owned, through status. */
const SPEC_ONLY = new Set([
  'cronjobs',
  'customresourcedefinitions',
  'daemonsets',
  'horizontalpodautoscalers',
  'ingresses',
  'jobs',
  'namespaces',
  'nodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'podcertificaterequests',
  'poddisruptionbudgets',
  'replicasets',
  'replicationcontrollers',
  'resourcequotas',
  'services',
  'statefulsets',
])

function expected(plural: string, part: string, hasStatus: boolean): readonly string[] {
  const own = OTHERS[part === '' ? plural : `${plural}/${part}`]
  if (own !== undefined) return own
  if (part === 'status') return SPEC_ONLY.has(plural) ? ['spec'] : ['metadata', 'spec']
  return hasStatus ? ['status'] : []
}

describe('fields that an update cannot change', () => {
  // The allocator of Services does not matter here.
  for (const resource of createResources({ services: {} as never })) {
    const { plural, subresources } = resource.kind
    const hasStatus = subresources.some(({ name }) => name === 'status')
    for (const part of ['', ...(hasStatus ? ['status'] : []), ...Object.keys(resource.parts ?? {})]) {
      it(`are upstream's for ${plural}${part && `/${part}`}`, () =>
        assert.deepEqual(resetsOf(resource, part), expected(plural, part, hasStatus)))
    }
  }
})
